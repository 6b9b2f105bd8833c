"""The resize and crop of published classifiers, as timm and torchvision do it: the same pixels, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from models._pixels import centre_crop, resized, to_tensor
from testbed.errors import DefinitionError

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

CropMode = Literal["center", "squash", "border"]
_PILLOW_ONLY = ("box", "hamming", "lanczos")  # no filters for tensors
INTERPOLATIONS = ("nearest", "bilinear", "bicubic", *_PILLOW_ONLY)


@dataclass(frozen=True, kw_only=True)
class ImageTransform:
    """A resize, then a crop of the centre; to [0, 1] and nothing more.

    Args:
        crop_size: height and width of the result, in pixels.
        resize_size: height and width of a frame, in pixels.
        crop_mode: 'center' keeps the ratio of the sides and fills the frame; 'squash' makes the image exactly the
            frame; 'border' keeps the ratio and fits the image into the frame, with `fill` around it.
        interpolation: filter of the resize, antialiased.
        fill: a value per channel, 0 to 255, of what is outside the image in 'border'; elsewhere it is black.
        channels: 3, or 1 for grey images.
        keeps_size: leave images alone that have `crop_size` already.
    Source: `timm.data.create_transform` for evaluation, and torchvision's `ImageClassification`.
    """

    crop_size: tuple[int, int]
    resize_size: tuple[int, int]
    crop_mode: CropMode = "center"
    interpolation: str = "bilinear"
    fill: tuple[int, ...] = (0, 0, 0)
    channels: int = 3
    keeps_size: bool = False

    def __post_init__(self) -> None:
        if min(*self.crop_size, *self.resize_size) < 1:
            raise DefinitionError(f"ImageTransform resizes to {self.resize_size} and crops {self.crop_size} pixels.")
        if self.crop_mode not in get_args(CropMode):
            raise DefinitionError(f"Crop mode '{self.crop_mode}' is none of {', '.join(get_args(CropMode))}.")
        if self.interpolation not in INTERPOLATIONS:
            raise DefinitionError(f"Interpolation '{self.interpolation}' is none of {', '.join(INTERPOLATIONS)}.")
        if self.channels not in (1, 3):
            raise DefinitionError(f"ImageTransform has {self.channels} channels. Images have 3, or 1.")

    def to_pixels(self, image: Image) -> Image:
        """The transformed 8-bit image, before it is scaled to [0, 1]."""
        image = image if self.channels == 3 else image.convert("L")
        if self.keeps_size and image.size == self.crop_size[::-1]:
            return image
        made = resized(image, self._new_size((image.height, image.width)), self.interpolation)
        if self.crop_mode != "border":
            return centre_crop(made, *self.crop_size)
        return centre_crop(made, *self.crop_size, fill=self.fill if image.mode == "RGB" else self.fill[:1])

    def __call__(self, image: Image) -> Tensor:
        """A PIL image as a float tensor [C, H, W] in [0, 1]."""
        return to_tensor(self.to_pixels(image))

    def on_tensor(self, images: Tensor) -> Tensor:
        """The same geometry on a float batch [n, C, H, W], for images that were perturbed in another space.

        Raises: DefinitionError: an interpolation that only Pillow has.
        """
        if self.interpolation in _PILLOW_ONLY:
            raise DefinitionError(
                f"This setting perturbs images before the model resizes them, by '{self.interpolation}', which there "
                "is for 8-bit images alone. Choose a setting in the model's own space."
            )
        height, width = images.shape[-2:]
        if self.keeps_size and (height, width) == self.crop_size:
            return images
        made = self._resized(images)
        if self.crop_mode != "border":
            return self._cropped(made).clamp(0, 1)  # a bicubic filter overshoots, 8-bit images do not
        values = images.new_tensor(self.fill[: images.shape[1]]).view(-1, 1, 1) / 255
        return (values + self._cropped(made - values)).clamp(0, 1)

    def keeping_size(self) -> ImageTransform:
        """The same for images that were resized and cropped when they were made."""
        return replace(self, keeps_size=True)

    def _resized(self, images: Tensor) -> Tensor:
        from torchvision.transforms import InterpolationMode, functional

        size, filter_ = self._new_size((images.shape[-2], images.shape[-1])), InterpolationMode(self.interpolation)
        made: Tensor = functional.resize(images, size, filter_, antialias=True)
        return made

    def _new_size(self, size: tuple[int, int]) -> list[int]:
        """What torchvision's resize is told for an image of this height and width."""
        target_height, target_width = self.resize_size
        if self.crop_mode == "squash":
            return [target_height, target_width]
        if self.crop_mode == "center" and target_height == target_width:
            return [target_height]  # the shorter side; the longer one is truncated, not rounded
        ratios = (size[0] / target_height, size[1] / target_width)
        ratio = max(ratios) if self.crop_mode == "border" else min(ratios)
        return [round(side / ratio) for side in size]

    def _cropped(self, images: Tensor) -> Tensor:
        from torchvision.transforms import functional

        cropped: Tensor = functional.center_crop(images, list(self.crop_size))  # 0 around it
        return cropped
