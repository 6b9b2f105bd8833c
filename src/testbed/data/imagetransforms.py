"""Transforms that fit images to a space: the canonical one of a data set, and a model's own after perturbation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from models.model_base import StandardTransform
from testbed.errors import DefinitionError

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

# Steps of a torchvision or timm pipeline that make a tensor of an image; what is given here is one already.
_TO_TENSOR = frozenset({"ToTensor", "PILToTensor", "ConvertImageDtype", "ToImage", "ToDtype", "MaybeToTensor"})


@dataclass(frozen=True)
class CanonicalTransform:
    """An 8-bit image in a data set's canonical space: `size` x `size` pixels.

    Images that have that size are left as they are. Others have their shorter side resized to 256/224 of it and the
    centre cut out, as is usual for ImageNet.
    """

    size: int

    def __call__(self, image: Image) -> Image:
        """The image, `size` x `size`."""
        if image.size == (self.size, self.size):
            return image
        return StandardTransform(round(self.size * 256 / 224), self.size).to_pixels(image)


def canonical_transform(size: int) -> CanonicalTransform:
    """The transform into the canonical space of `size` x `size` pixels."""
    return CanonicalTransform(size)


@dataclass(frozen=True)
class _KeepingStandardTransform(StandardTransform):
    """A StandardTransform that leaves an image alone which has the size of its crop."""

    def to_pixels(self, image: Image) -> Image:
        return image if image.size == (self.img_crop_size,) * 2 else super().to_pixels(image)


class _KeepingCompose:
    """A torchvision Compose that leaves out the resize before its crop for an image that has the size of that."""

    def __init__(self, compose: Any, crop: tuple[int, int]) -> None:
        self.compose, self.crop = compose, crop
        steps = list(_flat(compose))
        last_crop = max(place for place, step in enumerate(steps) if type(step).__name__ == "CenterCrop")
        before = (step for step in steps[:last_crop] if not type(step).__name__.startswith("Resize"))
        self._unresized = [*before, *steps[last_crop:]]

    def __call__(self, image: Image) -> Tensor:
        if image.size != self.crop:
            transformed: Tensor = self.compose(image)
            return transformed
        result: Any = image
        for step in self._unresized:
            result = step(result)
        unresized: Tensor = result
        return unresized

    def __repr__(self) -> str:
        return f"{self.compose!r} without its resize for images of {self.crop[0]} x {self.crop[1]} px"


def keeping_size(transform: Callable[[Image], Tensor] | None) -> Callable[[Image], Tensor] | None:
    """`transform`, which an image that already has the size of its centre crop passes without the resize before it.

    For images that were resized and cropped when they were made. Those of another size pass `transform` as usual, and
    all do where it has no centre crop.

    Raises: DefinitionError: a transform of a kind whose resize cannot be told.
    """
    if transform is None:
        return None
    if isinstance(transform, StandardTransform):
        return _KeepingStandardTransform(transform.img_resize_size, transform.img_crop_size)
    if (keeping := getattr(transform, "keeping_size", None)) is not None:
        kept: Callable[[Image], Tensor] = keeping()
        return kept
    if type(transform).__name__ != "Compose":
        raise DefinitionError(
            f"This setting takes images that were resized already, and cannot tell what in {transform!r} resizes them "
            "again. Use a StandardTransform or a torchvision Compose, or a setting that resizes (..._on-disk-resized)."
        )
    crops = [step.size for step in _flat(transform) if type(step).__name__ == "CenterCrop"]
    if not crops:
        return transform
    height, width = (crops[-1],) * 2 if isinstance(crops[-1], int) else crops[-1]
    return _KeepingCompose(transform, (width, height))


def transform_on_tensor(transform: Callable[[Image], Tensor] | None, images: Tensor) -> Tensor:
    """Float images [n, C, H, W] in [0, 1] as a model's transform would make them, had it been given these.

    For images that were perturbed in another space than the model's. A StandardTransform, or any transform with a
    method `on_tensor`, answers itself; of a torchvision Compose all steps but the conversion to a tensor are applied,
    and the result is clipped to [0, 1], which 8-bit images never leave either.

    Raises: DefinitionError: a transform of another kind, or a Compose of steps that take no tensors.
    """
    if transform is None:
        return images
    if (on_tensor := getattr(transform, "on_tensor", None)) is not None:
        transformed: Tensor = on_tensor(images)
        return transformed
    if type(transform).__name__ != "Compose":
        raise DefinitionError(
            f"The transform {transform!r} takes PIL images only, but this setting perturbs before it. Use a "
            "StandardTransform or a torchvision Compose, or give it a method on_tensor(images) of tensors [n, C, H, W]."
        )
    for step in _flat_steps(transform):
        images = step(images)
    return images.clamp(0, 1)


def _flat(compose: Any) -> Iterator[Any]:
    """All steps of a Compose, nested ones unpacked."""
    for step in compose.transforms:
        if type(step).__name__ == "Compose":
            yield from _flat(step)
        else:
            yield step


def _flat_steps(compose: Any) -> list[Callable[[Tensor], Tensor]]:
    """The steps of a Compose, nested ones unpacked, without those that make a tensor."""
    from torch import nn

    steps: list[Callable[[Tensor], Tensor]] = []
    for step in _flat(compose):
        kind = type(step).__name__
        if kind not in _TO_TENSOR and isinstance(step, nn.Module):
            steps.append(step)
        elif kind not in _TO_TENSOR:
            raise DefinitionError(
                f"The step {step!r} of a model's transform may take PIL images only, but this setting perturbs before "
                "it. Use torchvision's own transforms, or give the transform a method on_tensor(images)."
            )
    return steps
