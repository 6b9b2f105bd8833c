"""Images as files would have them: 8 bits per value, and JPEG."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.perturbations.corruptions.compiled import compiled

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

# Of a grey level: float32 sums that should give a whole one fall short of it by less; the published code has float64.
_ROUNDING = 2.0**-12


def truncated(images: Tensor) -> Tensor:
    """`images` (float in [0, 1]) with every value cut down to a whole grey level, k / 255, as an integer cast does."""
    return to_levels(images).float().div_(255)


def to_levels(images: Tensor) -> Tensor:
    """Whole grey levels, uint8 of the same shape: 255 times `images` (float in [0, 1]), cut down."""
    import torch

    return images.mul(255).add_(_ROUNDING).floor_().clamp_(0, 255).to(torch.uint8)


def as_jpeg(images: Tensor, *, quality: int) -> Tensor:
    """`images` written as JPEG (Pillow, 4:2:0) and read again.

    The published files' Huffman codes are optimized, which changes their size alone.

    Args:
        images: (n, C, H, W) float in [0, 1], C = 1 or 3; values that are no whole grey level are rounded to one.
        quality: 1 to 95.
    Returns: (n, C, H, W) float32 of whole grey levels, on the device of `images`.
    """

    def encoded(image: Image) -> Image:
        from PIL import Image as Images

        buffer = io.BytesIO()
        image.save(buffer, format="JPEG", quality=quality)
        return Images.open(buffer, formats=("JPEG",))

    return through_pillow(images, encoded)


def through_pillow(images: Tensor, change: Callable[[Image], Image]) -> Tensor:
    """Each image as Pillow has it, changed by `change` (image -> image of the same size), as float32 again.

    Args:
        images: (n, C, H, W) float in [0, 1]; rounded to whole grey levels.
        change: a function of a PIL image of mode 'L' or 'RGB'.
    Returns: (n, C, H, W) float32 of whole grey levels in [0, 1], on the device of `images`.
    """
    import torch
    from PIL import Image as Images

    source = images.cpu().contiguous()
    out = torch.empty_like(source)
    channels, height, width = source.shape[1:]
    pixels = np.empty((height, width, channels), np.uint8)
    for before, after in zip(source.numpy(), out.numpy(), strict=True):
        _to_pixels(before, pixels)
        changed = change(Images.fromarray(pixels[..., 0] if channels == 1 else pixels))
        _from_pixels(np.asarray(changed).reshape(pixels.shape), after)
    return out.to(images.device)


@compiled()
def _to_pixels(image: Any, pixels: Any) -> None:
    """Grey levels (H, W, C) of an image (C, H, W)."""
    channels, height, width = image.shape
    for channel in range(channels):
        for y in range(height):
            for x in range(width):
                pixels[y, x, channel] = np.uint8(np.int32(image[channel, y, x] * np.float32(255) + np.float32(0.5)))


@compiled()
def _from_pixels(pixels: Any, image: Any) -> None:
    """The image (C, H, W) of grey levels (H, W, C)."""
    height, width, channels = pixels.shape
    for channel in range(channels):
        for y in range(height):
            for x in range(width):
                image[channel, y, x] = np.float32(pixels[y, x, channel]) / np.float32(255)
