"""Resize, centre crop and scaling of images by Pillow alone: torchvision's values, bit for bit, without its import.

Importing torchvision costs a process seconds of its start, for a few lines of geometry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor


def resized(image: Image, size: Sequence[int], filter_: str = "bilinear") -> Image:
    """The image resized, antialiased; the image itself where it has that size.

    Args:
        image: of 8 bits.
        size: (height, width), or the shorter side alone; the longer one is then truncated, not rounded.
        filter_: name of one of Pillow's, in lower case.
    Source: `torchvision.transforms.functional.resize`.
    """
    from PIL.Image import Resampling

    if len(size) == 1:
        shorter, longer = sorted(image.size)
        new_longer = int(size[0] * longer / shorter)
        size = (new_longer, size[0]) if image.width <= image.height else (size[0], new_longer)
    height, width = size
    return image if image.size == (width, height) else image.resize((width, height), Resampling[filter_.upper()])


def centre_crop(image: Image, height: int, width: int, *, fill: tuple[int, ...] | None = None) -> Image:
    """The centre of an image, with `fill` (black) where the image is smaller.

    Args:
        image: what is cropped.
        height, width: of the result.
        fill: a value per channel, 0 to 255.
    Source: `torchvision.transforms.functional.center_crop`.
    """
    from PIL.Image import new

    left, top = _before(image.width, width), _before(image.height, height)
    if fill is None or (width <= image.width and height <= image.height):
        return image.crop((left, top, left + width, top + height))
    canvas = new(image.mode, (width, height), fill if len(fill) > 1 else fill[0])
    canvas.paste(image, (-left, -top))
    return canvas


def _before(side: int, cropped: int) -> int:
    """Where the crop of a side begins: halves are rounded to even inside the image, and down in what is added."""
    return round((side - cropped) / 2) if cropped <= side else -((cropped - side) // 2)


def to_tensor(image: Image) -> Tensor:
    """An image as a float32 tensor [C, H, W] in [0, 1]; one of other modes than 8 bits as torchvision has it."""
    import numpy as np
    import torch

    if image.mode not in ("RGB", "L"):
        from torchvision.transforms import functional

        other: Tensor = functional.to_tensor(image)
        return other
    pixels = torch.from_numpy(np.array(image)).view(image.height, image.width, -1)
    return pixels.permute(2, 0, 1).contiguous().to(torch.float32).div(255)
