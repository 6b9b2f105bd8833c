"""One picture to show corruptions on: a sample of a data set, or any image file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.errors import DataError, DefinitionError
from testbed.perturbations.corruptions.corrupt import SMALLEST_SIDE
from testbed.randomness import SampleKeys

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture in [0, 1], and what its random numbers depend on.

    Args:
        source: where it comes from, for a caption.
        name: for a file name.
        pixels: (1, C, H, W) float32.
        keys: of this one sample.
    """

    source: str
    name: str
    pixels: Tensor
    keys: SampleKeys

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return int(self.pixels.shape[2]), int(self.pixels.shape[3])


@dataclass(frozen=True)
class Fit:
    """Brings an image to a size: the shorter side is resized (bilinear, antialiased), then the centre cut out."""

    height: int
    width: int

    def __call__(self, image: Image) -> Image:
        """The image, `height` x `width` pixels."""
        from PIL import Image as Images
        from PIL import ImageOps

        return ImageOps.fit(image, (self.width, self.height), method=Images.Resampling.BILINEAR)


def fit_to(size: str) -> Fit:
    """What brings an image to '224', a square, or to '96x160', height x width.

    Raises: DefinitionError: neither, or too small.
    """
    if not (found := re.fullmatch(r"([1-9]\d{0,4})(?:x([1-9]\d{0,4}))?", size)):
        raise DefinitionError(f"--size {size} is no size. Give the side of a square in pixels, or HEIGHTxWIDTH.")
    height, width = (int(side or found[1]) for side in found.groups())
    if min(height, width) < SMALLEST_SIDE:
        raise DefinitionError(f"--size {size} is too small: corruptions take {SMALLEST_SIDE} x {SMALLEST_SIDE} pixels.")
    return Fit(height, width)


def sample_picture(dataset: str, index: int, fit: Fit | None, *, seed: int) -> Picture:
    """Sample `index` of the split that settings of a data set evaluate, with the keys that it has in evaluations.

    Args:
        fit: to another size than that of the data set's canonical space; or None.
        seed: of the run.
    Raises: DataError: no such data set or sample, or it is no image.
    """
    from eval_settings.eval_setting_base import StandardDataset
    from registry import registry
    from testbed.data.datasets import load_samples, resolve_dataset
    from testbed.data.imagepipeline import DamagedFile, Pipeline

    found = resolve_dataset(StandardDataset(name=dataset), registry.datasets)
    numbers = DataError(f"Data set '{dataset}' holds numbers, which no corruption takes. Name one of images.")
    if found.domain != "pixels":
        raise numbers
    samples = load_samples(found, found.eval_split)
    if not 0 <= index < len(samples):
        raise DataError(f"--sample {index}: '{dataset}' ({samples.split}) has the samples 0 to {len(samples) - 1}.")
    size = None if fit else found.canonical_size
    values = Pipeline(
        samples=samples, canonical_size=size, setting_transform=fit, model_transform=None
    ).sample(index)  # fmt: skip
    if isinstance(values, DamagedFile):
        raise DataError(values.reason)
    if values.ndim != 3:
        raise numbers
    return Picture(
        source=f"sample {index} of {dataset} ({samples.sample_ids[index]})",
        name=f"{dataset}-{index}",
        pixels=_in_unit_range(values),
        keys=_keys(dataset, index, seed),
    )


def file_picture(path: Path, fit: Fit | None, *, seed: int) -> Picture:
    """The picture in an image file, in colour, in its own size or fitted to another. Raises: DataError: unreadable."""
    from testbed.data.decoding import decode

    image = decode(path, color_mode="RGB")
    pixels = np.asarray(fit(image) if fit else image)
    return Picture(
        source=path.name, name=path.stem, pixels=_in_unit_range(np.moveaxis(pixels, 2, 0)),
        keys=_keys(path.name, 0, seed),
    )  # fmt: skip


def _in_unit_range(values: NDArray[Any]) -> Tensor:
    """(C, H, W) uint8, or float32 in [0, 1], as a batch of one."""
    import torch

    tensor = torch.from_numpy(np.array(values))[None]
    return tensor.float().div_(255) if tensor.dtype == torch.uint8 else tensor


def _keys(dataset: str, index: int, seed: int) -> SampleKeys:
    return SampleKeys(seed=seed, purpose="eval", dataset=dataset, sample_indices=np.array([index]), draw=0)
