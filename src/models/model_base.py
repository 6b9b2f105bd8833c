"""What a classifier is to the testbed: `Model`, and the usual image transform and normalization."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from testbed.errors import DefinitionError
from testbed.signatures import check_arguments, check_name

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor


@dataclass(frozen=True)
class StandardTransform:
    """Resize of the shorter side (bilinear, antialiased), then a centre crop; to [0, 1] and nothing more.

    Args:
        img_resize_size: length of the shorter side after the resize, in pixels.
        img_crop_size: side of the square that is kept, in pixels.
    """

    img_resize_size: int
    img_crop_size: int

    def __post_init__(self) -> None:
        if not 0 < self.img_crop_size <= self.img_resize_size:
            raise DefinitionError(
                f"StandardTransform resizes to {self.img_resize_size} px and crops {self.img_crop_size} px. "
                "The crop must be positive and no larger than the resize."
            )

    def to_pixels(self, image: Image) -> Image:
        """The transformed 8-bit image, before it is scaled to [0, 1]."""
        from torchvision.transforms import functional

        resized: Image = functional.resize(image, [self.img_resize_size])
        cropped: Image = functional.center_crop(resized, [self.img_crop_size])
        return cropped

    def __call__(self, image: Image) -> Tensor:
        """A PIL image as a float tensor [C, H, W] in [0, 1]."""
        from torchvision.transforms import functional

        tensor: Tensor = functional.to_tensor(self.to_pixels(image))
        return tensor

    def on_tensor(self, images: Tensor) -> Tensor:
        """The same geometry on a float batch [n, C, H, W], for images that were perturbed in another space."""
        from torchvision.transforms import functional

        resized: Tensor = functional.resize(images, [self.img_resize_size], antialias=True)
        cropped: Tensor = functional.center_crop(resized, [self.img_crop_size])
        return cropped


@dataclass(frozen=True)
class StandardNormalization:
    """(x - mean) / std per channel, after all perturbations.

    Args:
        mean, std: one number per channel, in [0, 1] pixel units.
        input_space: 'RGB', or 'BGR' to reverse the channels first.
    """

    mean: Sequence[float]
    std: Sequence[float]
    input_space: Literal["RGB", "BGR"] = "RGB"

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or not self.mean:
            raise DefinitionError(f"StandardNormalization has {len(self.mean)} means and {len(self.std)} deviations.")
        if min(self.std) <= 0:
            raise DefinitionError(f"StandardNormalization has std {list(self.std)}. Every value must be positive.")
        if self.input_space not in ("RGB", "BGR"):
            raise DefinitionError(f"StandardNormalization has input_space '{self.input_space}'. Use 'RGB' or 'BGR'.")


@dataclass(frozen=True, kw_only=True)
class Model:
    """A classifier and all it takes to run it.

    Args:
        name: what users type; unique within a label space.
        transform: PIL image -> float tensor [C, H, W] in [0, 1]; None takes images as the data set has them.
        classifier_loader: returns the classifier, a torch module or whatever `classify` understands. May take `seed`
            and `dataset`, where a model is fitted in every run.
        eval_batch_size: images per forward pass.
        normalization: applied after all perturbations; None for none.
        arch: architecture, for the listing.
        classify: `classify(images, model[, class_sublist][, adversarial_attack])` -> logits [n, classes], in place of
            calling the classifier; `images` are normalized.
        adversarial_batch_size: images per pass where gradients are needed; the eval batch divided by 8 if not given.
        label_space: whose classes the outputs are, e.g. 'imagenet-1k', 'cifar10', 'digits'.
        is_random: `classify` draws random numbers; each seed is then a run of its own, also on clean images.
        version: bump it when the definition changes what the model computes; without one the file is the version.
        weights: file of the parameters, part of the model's identity.
        description: one line for listings.
    """

    name: str
    transform: Callable[[Image], Tensor] | None
    classifier_loader: Callable[..., Any]
    eval_batch_size: int
    normalization: StandardNormalization | None = None
    arch: str | None = None
    classify: Callable[..., Any] | None = None
    adversarial_batch_size: int | None = None
    label_space: str = "imagenet-1k"
    is_random: bool = False
    version: str | None = None
    weights: Path | None = None
    description: str = ""

    def __post_init__(self) -> None:
        check_name(self.name, what="Model")
        where = f"Model '{self.name}':"
        if not isinstance(self.eval_batch_size, int) or self.eval_batch_size < 1:
            raise DefinitionError(f"{where} eval_batch_size is {self.eval_batch_size!r}. It must be 1 or more.")
        check_arguments(self.classifier_loader, where=f"{where} classifier_loader", required=(),
                        optional=("seed", "dataset"))  # fmt: skip
        check_arguments(self.classify, where=f"{where} classify", required=("images", "model"),
                        optional=("class_sublist", "adversarial_attack"))  # fmt: skip
        if self.transform is not None and not callable(self.transform):
            raise DefinitionError(f"{where} transform must take a PIL image, but is {self.transform!r}.")
