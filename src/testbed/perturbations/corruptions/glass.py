"""Blur by frosted glass: pixels change places with near ones, between two smoothings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from testbed.perturbations.corruptions import filter_loops, filters
from testbed.perturbations.corruptions.compiled import compiled
from testbed.perturbations.corruptions.corruption import Corruption, severities
from testbed.randomness import SampleKeys

if TYPE_CHECKING:
    from torch import Tensor

Exchange = Literal["published", "copy", "swap"]

_DRAWS_AT_ONCE = 1 << 20  # 4 MB of random numbers: they stay in the cache


def glass_blur(
    images: Tensor,
    *,
    keys: SampleKeys,
    sigma: float,
    max_delta: int,
    iterations: int,
    probability: float = 1.0,
    exchange: Exchange = "published",
) -> Tensor:
    """`images` (n, C, H, W) smoothed, cut to 8 bits, their pixels moved about, and smoothed again.

    In every iteration each pixel in turn, from the last row and column backwards, meets a random one at most
    `max_delta` away. The published code is written to exchange the two, but on colour images overwrites the first one
    before it is read, so that both get the value of the second; on arrays of one channel it does exchange them.

    Args:
        images: (n, C, H, W) float32 in [0, 1].
        keys: of the n samples.
        sigma: of the smoothing, in pixels; edges are replicated.
        max_delta: in pixels; offsets are integers in [-max_delta, max_delta).
        iterations: how often every pixel is visited.
        probability: that a visited pixel takes part.
        exchange: 'copy' the value of the second pixel to the first, 'swap' the two, or 'published': copy on three
            channels, swap on one.
    """
    is_swap = images.shape[1] == 1 if exchange == "published" else exchange == "swap"
    sources = _sources(
        keys, *images.shape[2:], max_delta=max_delta, iterations=iterations, probability=probability, is_swap=is_swap
    )
    return through_glass(images, sources, sigma=sigma)


def through_glass(images: Tensor, sources: Tensor, *, sigma: float) -> Tensor:
    """`images` smoothed, cut to 8 bits, with the pixels `sources` in the place of their own, and smoothed again.

    Args:
        images: (n, C, H, W) float32 in [0, 1].
        sources: (n, H W) int32 on the CPU.
        sigma: in pixels.
    Returns: (n, C, H, W) float32. No value leaves [0, 1]: float64 sums are rounded to float32.
    """
    import torch

    weights = filters.gaussian_weights(sigma)
    rows, columns = (filters.border_indices(size, len(weights) // 2, mode="nearest") for size in images.shape[2:])
    if not filters.on_cpu(images):
        return _through_glass_torch(images, sources, weights, rows, columns)
    images = images.contiguous()
    out = torch.empty_like(images)
    filter_loops.smooth_moved(images.numpy(), sources.numpy(), weights, rows, columns, out.numpy())
    return out


def _sources(
    keys: SampleKeys, height: int, width: int, *, max_delta: int, iterations: int, probability: float, is_swap: bool
) -> Tensor:
    """Which pixel is where in the end, (n, H W) int32; drawn on the CPU, as the order of the moves matters."""
    import torch

    sources = torch.empty((len(keys), height * width), dtype=torch.int32)
    visited = (iterations, max(height - 2 * max_delta, 0), max(width - 2 * max_delta, 0))
    step = max(_DRAWS_AT_ONCE // max(2 * int(np.prod(visited)), 1), 1)
    for start in range(0, len(keys), step):
        part = keys.take(start, min(start + step, len(keys)))
        offsets = part.uniform("glass_blur/offset", (*visited, 2))
        chances = part.uniform("glass_blur/chance", visited if probability < 1 else (1, 1, 1))
        _move(
            offsets.numpy(), chances.numpy(), probability, max_delta, is_swap,
            sources[start : start + step].view(-1, height, width).numpy(),
        )  # fmt: skip
    return sources


@compiled()
def _move(offsets: Any, chances: Any, probability: float, max_delta: int, is_swap: bool, sources: Any) -> None:
    """Fills `sources` (n, H, W) with the index of the pixel that each gets; `offsets` are uniform numbers in (0, 1)."""
    n, height, width = sources.shape
    for index in range(n):
        image = sources[index]
        for y in range(height):
            for x in range(width):
                image[y, x] = y * width + x
        for iteration in range(offsets.shape[1]):
            for row in range(offsets.shape[2]):
                for column in range(offsets.shape[3]):
                    if probability < 1 and chances[index, iteration, row, column] >= probability:
                        continue
                    y, x = height - max_delta - row, width - max_delta - column
                    draw = offsets[index, iteration, row, column]
                    other_x = x - max_delta + int(draw[0] * (2 * max_delta))
                    other_y = y - max_delta + int(draw[1] * (2 * max_delta))
                    mine, other = image[y, x], image[other_y, other_x]
                    image[y, x] = other
                    if is_swap:
                        image[other_y, other_x] = mine


def _through_glass_torch(images: Tensor, sources: Tensor, weights: Any, rows: Any, columns: Any) -> Tensor:
    import torch

    levels = images.double() * 255
    nearest = levels.round()
    exact = torch.where((levels - nearest).abs() < filter_loops.LEVEL_ROUNDING, nearest, levels) / 255
    soft = filters.smooth_torch(exact, weights, rows, columns)
    places = sources.to(images.device).long()[:, None].expand(-1, images.shape[1], -1)
    moved = (soft * 255).floor().flatten(2).gather(2, places).view_as(soft) / 255
    return filters.smooth_torch(moved, weights, rows, columns).float()


_FIELDS = "sigma max_delta iterations"
_IMAGENET = severities(_FIELDS, (0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2))

CORRUPTIONS = (
    Corruption(
        name="glass_blur",
        group="blur",
        function=glass_blur,
        parameters={
            "imagenet224": _IMAGENET,
            "tinyimagenet64": severities(_FIELDS, (0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
            "cifar32": severities(_FIELDS, (0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
            "mnist28": tuple({**row, "probability": 0.5} for row in _IMAGENET),
        },
        options={"exchange": ("published", "copy", "swap")},
        description="seen through frosted glass",
    ),
)
