"""What files and screens do: pixels enlarged, and JPEG."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testbed.perturbations.corruptions.compiled import compiled
from testbed.perturbations.corruptions.corruption import Corruption, severities
from testbed.perturbations.corruptions.output import as_jpeg

if TYPE_CHECKING:
    from torch import Tensor

_SHARE_BITS = 22  # Pillow's weights are whole numbers of 2^-22
Indices = NDArray[np.int64]


def pixelate(images: Tensor, *, scale: float) -> Tensor:
    """`images` made smaller, and as large again, by means over boxes of pixels in 8 bits, as Pillow's BOX filter does.

    The pixels are Pillow's to the bit: means along rows, then along columns, each rounded to a grey level; columns come
    first where the height loses more than twice as many pixels as the width. Before version 13, Pillow always took rows
    first, which there differs by a grey level.

    Args:
        images: (n, C, H, W) float32 in [0, 1]; rounded to grey levels.
        scale: in (0, 1): the sides become int(side * scale), at least 1.
    Returns: (n, C, H, W) float32 of whole grey levels, on the device of `images`.
    Source: Hendrycks & Dietterich, ICLR 2019.
    """
    import torch

    height, width = images.shape[2:]
    small_height, small_width = (max(1, int(side * scale)) for side in (height, width))
    first, last = _boxes(width, small_width), _boxes(height, small_height)
    source = images.cpu()
    if are_columns_first := height - small_height > 2 * (width - small_width):
        first, last, source = last, first, source.mT
    source = source.contiguous()
    out = torch.empty_like(source)
    _pixelate(source.flatten(0, 1).numpy(), *last, *first, out.flatten(0, 1).numpy())
    return (out.mT.contiguous() if are_columns_first else out).to(images.device)


def jpeg_compression(images: Tensor, *, quality: int) -> Tensor:
    """`images` as JPEG of a quality shows them (Pillow, colours at half the resolution); see `as_jpeg`.

    Its last bits are those of the JPEG library that Pillow was built with.
    """
    return as_jpeg(images, quality=quality)


@lru_cache(maxsize=64)
def _boxes(side: int, num_boxes: int) -> tuple[Indices, Indices, Indices, Indices]:
    """The boxes of `side` pixels: first pixel, end and weight in 2^-22 of each (num_boxes,), and each pixel's (side,).

    A box has the pixels whose centres lie within its width, that at its left end not counted. Where rounding decides,
    it has those that it has in Pillow, which takes a window by its own rounding first.
    """
    width = side / num_boxes
    places, centres = np.arange(side), ((np.arange(num_boxes) + 0.5) * width)[:, None]
    start, stop = (centres - 0.5 * width + 0.5).astype(np.int64), (centres + 0.5 * width + 0.5).astype(np.int64)
    away = (places - centres + 0.5) * (1 / width)
    is_within = (away > -0.5) & (away <= 0.5) & (places >= start) & (places < stop)
    first, size = is_within.argmax(axis=1), is_within.sum(axis=1)
    shares = (0.5 + (1 << _SHARE_BITS) / size).astype(np.int64)
    return first, first + size, shares, ((places + 0.5) * (num_boxes / side)).astype(np.int64)


@compiled()
def _pixelate(
    planes: Any,
    tops: Any, bottoms: Any, row_shares: Any, row_boxes: Any,
    lefts: Any, rights: Any, column_shares: Any, column_boxes: Any,
    out: Any,
) -> None:  # fmt: skip
    """Planes (num_planes, H, W) in boxes; see `_boxes`."""
    height, width = planes.shape[1:]
    half, level = 1 << (_SHARE_BITS - 1), np.float32(255)
    turned, narrow = np.empty((width, height), np.int32), np.empty((height, len(lefts)), np.int32)
    line, small = np.empty(max(height, width), np.int64), np.empty((len(tops), len(lefts)), np.float32)
    for index in range(len(planes)):
        for y in range(height):
            source = planes[index, y]
            for x in range(width):  # turned, so that means along rows are sums of rows, which vector code is fast at
                turned[x, y] = np.int32(source[x] * level + np.float32(0.5))
        for box in range(len(lefts)):
            line[:] = half
            for x in range(lefts[box], rights[box]):
                for y in range(height):
                    line[y] += turned[x, y] * column_shares[box]
            for y in range(height):
                narrow[y, box] = line[y] >> _SHARE_BITS
        for row in range(len(tops)):
            line[:] = half
            for y in range(tops[row], bottoms[row]):
                for box in range(len(lefts)):
                    line[box] += narrow[y, box] * row_shares[row]
            for box in range(len(lefts)):
                small[row, box] = np.float32(line[box] >> _SHARE_BITS) / level
        for y in range(height):
            target, source = out[index, y], small[row_boxes[y]]
            for x in range(width):
                target[x] = source[column_boxes[x]]


_PIXELATE_224 = severities("scale", 0.6, 0.5, 0.4, 0.3, 0.25)
_JPEG_224 = severities("quality", 25, 18, 15, 10, 7)

CORRUPTIONS = (
    Corruption(
        name="pixelate",
        group="digital",
        function=pixelate,
        parameters={
            "imagenet224": _PIXELATE_224,
            "tinyimagenet64": severities("scale", 0.9, 0.8, 0.7, 0.6, 0.5),
            "cifar32": severities("scale", 0.95, 0.9, 0.85, 0.75, 0.65),
            "mnist28": _PIXELATE_224,
        },
        description="fewer, larger pixels",
    ),
    Corruption(
        name="jpeg_compression",
        group="digital",
        function=jpeg_compression,
        parameters={
            "imagenet224": _JPEG_224,
            "tinyimagenet64": severities("quality", 65, 58, 50, 40, 25),
            "cifar32": severities("quality", 80, 65, 58, 50, 40),
            "mnist28": _JPEG_224,
        },
        description="JPEG of low quality",
    ),
)
