"""One sample on its way into the image bank: decoded, transformed, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testbed.data.decoding import decode
from testbed.data.imagetransforms import canonical_transform
from testbed.errors import DataError, DefinitionError
from testbed.records import Samples

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class DamagedFile:
    """A file that cannot be decoded, and the sentence that says why."""

    index: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """The transforms that a split's samples pass, in this order: canonical, the setting's, the model's.

    Args:
        samples: the split.
        canonical_size: side of the canonical space in pixels, where images are to be brought there; or None.
        setting_transform: PIL image -> PIL image, or None.
        model_transform: PIL image -> float tensor [C, H, W] in [0, 1], or None for the image's own pixels.
    """

    samples: Samples
    canonical_size: int | None
    setting_transform: Callable[[Image], Image] | None
    model_transform: Callable[[Image], Tensor] | None

    def __post_init__(self) -> None:
        if not self._is_numbers or (self.setting_transform is None and self.model_transform is None):
            return
        raise DefinitionError(
            f"Data set '{self.samples.dataset}' holds {self._kind}, which cannot pass a transform of PIL images. Use a "
            "model and a setting without a transform (no --input-size), or store the images as uint8."
        )

    def sample(self, index: int) -> NDArray[Any] | DamagedFile:
        """Sample `index`: uint8 or float32 [C, H, W], or float32 [D] for rows; or what is wrong with its file."""
        if self._is_numbers:
            return self._numbers(index)
        if self._is_untouched:
            return _channels_first(np.asarray(self.samples.items[index]))
        try:
            image = self._decoded(index)
        except DataError as error:
            return DamagedFile(index=index, reason=str(error))
        try:
            return self._transformed(image, index)
        except DefinitionError:
            raise
        except Exception as error:  # whatever a user's transform raises
            raise DefinitionError(
                f"A transform failed on {self.name(index)} ({type(error).__name__}: {error}). The setting's is "
                f"{self.setting_transform!r}, the model's {self.model_transform!r}."
            ) from error

    def check_same_shape(self, index: int, array: NDArray[Any], first_index: int, first: NDArray[Any]) -> None:
        """Raises where two samples came out in different shapes."""
        if array.shape == first.shape:
            return
        sizes = f"{self.name(first_index)} has {_size(first)} and {self.name(index)} has {_size(array)}"
        if self.model_transform is not None:
            raise DefinitionError(f"The transform {self.model_transform!r} gives different sizes: {sizes}. Add a crop.")
        raise DataError(
            f"Images of data set '{self.samples.dataset}' differ in size: {sizes}. Give one size for all: "
            "--canonical-size PX, or canonical_size= in add_dataset."
        )

    def name(self, index: int) -> str:
        """The file of a sample, or its id where it has none."""
        item = self.samples.items[index]
        return str(item) if isinstance(item, Path) else self.samples.sample_ids[index]

    @property
    def _array(self) -> NDArray[Any] | None:
        return self.samples.items if isinstance(self.samples.items, np.ndarray) else None

    @property
    def _is_numbers(self) -> bool:
        """Samples that are no 8-bit images: rows, or float images, which PIL cannot hold exactly."""
        return self._array is not None and self._array.dtype != np.uint8

    @cached_property
    def _is_untouched(self) -> bool:
        """8-bit images in memory that pass no transform: there is nothing to do for an image library."""
        if self._array is None or self.setting_transform is not None or self.model_transform is not None:
            return False
        size = self.canonical_size
        return size is None or self._array.shape[1:3] == (size, size)

    @property
    def _kind(self) -> str:
        return "rows of numbers" if self.samples.color_mode is None else "float images"

    def _numbers(self, index: int) -> NDArray[np.float32]:
        values = np.asarray(self.samples.items[index], dtype=np.float32)
        size = self.canonical_size
        if size is not None and values.shape[:2] != (size, size):
            raise DataError(
                f"Data set '{self.samples.dataset}' holds {self._kind} of shape {values.shape}, which cannot be "
                f"brought to its canonical size of {size} px. Store uint8 images, or leave canonical_size out."
            )
        return values if values.ndim == 1 else _channels_first(values)

    def _decoded(self, index: int) -> Image:
        item = self.samples.items[index]
        if isinstance(item, Path):
            return decode(item, color_mode=self.samples.color_mode or "RGB")
        from PIL import Image

        return Image.fromarray(np.ascontiguousarray(item))

    def _transformed(self, image: Image, index: int) -> NDArray[Any]:
        if self.canonical_size is not None:
            image = canonical_transform(self.canonical_size)(image)
        if self.setting_transform is not None:
            image = self.setting_transform(image)
        if self.model_transform is None:
            return self._pixels(image, index)
        if (to_pixels := getattr(self.model_transform, "to_pixels", None)) is not None:
            return self._pixels(to_pixels(image), index)
        return self._checked_tensor(self.model_transform(image), index)

    def _pixels(self, image: Image, index: int) -> NDArray[np.uint8]:
        mode = getattr(image, "mode", type(image).__name__)
        if mode not in ("L", "RGB"):
            raise DefinitionError(
                f"A transform turned {self.name(index)} into '{mode}'. It must return a PIL image in mode L or RGB."
            )
        return _channels_first(np.asarray(image))

    def _checked_tensor(self, output: Any, index: int) -> NDArray[np.float32]:
        array = np.asarray(output.detach().cpu() if hasattr(output, "detach") else output)
        if array.dtype.kind != "f" or array.ndim != 3:
            found = f"{array.dtype} of shape {array.shape}"
        elif not 0 <= array.min() <= array.max() <= 1:
            found = f"values from {array.min():g} to {array.max():g}"
        else:
            return np.ascontiguousarray(array, dtype=np.float32)
        raise DefinitionError(
            f"The transform {self.model_transform!r} made {found} of {self.name(index)}. It must return a float tensor "
            "[C, H, W] in [0, 1]; normalization belongs in Model(normalization=...)."
        )


def _channels_first(image: NDArray[Any]) -> NDArray[Any]:
    """[H, W] or [H, W, C] as [C, H, W]."""
    return image[np.newaxis] if image.ndim == 2 else np.moveaxis(image, 2, 0)


def _size(image: NDArray[Any]) -> str:
    return f"{image.shape[-1]} x {image.shape[-2]} px" + (f" in {len(image)} channels" if image.ndim == 3 else "")
