"""Fog: a plasma fractal over the image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.perturbations.corruptions.chunks import chunks
from testbed.perturbations.corruptions.compiled import compiled
from testbed.perturbations.corruptions.corruption import Corruption, severities
from testbed.randomness import SampleKeys

if TYPE_CHECKING:
    from torch import Tensor

_FIRST_AMPLITUDE = 100.0


def fog(images: Tensor, *, keys: SampleKeys, strength: float, decay: float) -> Tensor:
    """`images` in fog, (x + strength P) max(x) / (max(x) + strength), P one plasma fractal for all channels.

    max(x) is that of the whole image, so a black image stays black.

    Args:
        images: (n, C, H, W) float32 in [0, 1].
        keys: of the n samples.
        strength: weight of the fractal, whose values fill [0, 1].
        decay: what the amplitude is divided by at each halving of the distance: fog of large decay is smooth.
    Returns: (n, C, H, W) float32 in [0, 1]; the same bits in any batch and on any device.
    Source: Hendrycks & Dietterich, ICLR 2019.
    """
    import torch

    shape = (smallest_side(*images.shape[2:]),) * 2
    if images.device.type != "cpu":
        return fog_torch(images, keys.uniform("fog/plasma", shape, images.device), strength=strength, decay=decay)
    images = images.contiguous()
    fogged = torch.empty_like(images)
    for part in chunks(images):
        units = keys.take(part.start, part.stop).uniform("fog/plasma", shape)
        _fog_loop(images[part].numpy(), units.numpy(), strength, decay, fogged[part].numpy())
    return fogged


def fog_torch(images: Tensor, units: Tensor, *, strength: float, decay: float) -> Tensor:
    """`fog` in plain torch operations on any device, given its random numbers: the reference, to the same bits."""
    height, width = images.shape[2:]
    plasma = plasma_fractal(units, decay=decay)[:, None, :height, :width]
    brightest = images.amax((1, 2, 3), keepdim=True)
    return (images + plasma * strength).mul_(brightest / (brightest + strength)).clamp_(0, 1)


def plasma_fractal(units: Tensor, *, decay: float) -> Tensor:
    """Heights by the diamond-square recursion on a torus, scaled so that each map fills [0, 1].

    From the corner, of height 0, every halving of the distance first sets the centres of the squares, then those of the
    diamonds, to the mean of their four neighbours and w^2 (2 u - 1), where w begins at 100 and is divided by `decay`.

    Args:
        units: (n, side, side) float32 in (0, 1), each for the height in its place. The side is a power of two.
        decay: positive.
    Returns: (n, side, side) float32.
    Source: Fournier, Fussell & Carpenter, Communications of the ACM 1982; amplitudes as in the published fog.
    """
    heights = units * 2 - 1
    heights[:, 0, 0] = 0
    step, amplitude = heights.shape[1], _FIRST_AMPLITUDE
    while step >= 2:
        half, scale = step // 2, amplitude * amplitude
        corners, centres = heights[:, ::step, ::step], heights[:, half::step, half::step]
        above, beside = heights[:, ::step, half::step], heights[:, half::step, ::step]
        pairs = corners + corners.roll(-1, 1)
        centres.mul_(scale).add_((pairs + pairs.roll(-1, 2)).mul_(0.25))
        above.mul_(scale).add_((centres + centres.roll(1, 1) + (corners + corners.roll(-1, 2))).mul_(0.25))
        beside.mul_(scale).add_((centres + centres.roll(1, 2) + (corners + corners.roll(-1, 1))).mul_(0.25))
        step, amplitude = half, amplitude / decay
    heights -= heights.amin((1, 2), keepdim=True)
    return heights.div_(heights.amax((1, 2), keepdim=True))


def smallest_side(height: int, width: int) -> int:
    """Side of the smallest map that covers an image: a power of two, in pixels."""
    return 1 << (max(height, width) - 1).bit_length()


def _raise_heights(heights: Any, amplitude: float, decay: float) -> None:
    """The recursion of `plasma_fractal` on one map of numbers in (-1, 1), in their places."""
    side, quarter = len(heights), np.float32(0.25)
    last = side - 1  # `& last` wraps round the torus
    step = side
    while step >= 2:
        half, scale = step // 2, np.float32(amplitude * amplitude)
        for y in range(0, side, step):
            row, below, middle = heights[y], heights[(y + step) & last], heights[y + half]
            for x in range(half, side, step):
                left, right = x - half, (x + half) & last
                total = (row[left] + below[left]) + (row[right] + below[right])
                middle[x] = middle[x] * scale + total * quarter
        for y in range(0, side, step):
            row, below = heights[y], heights[(y + step) & last]
            above, middle = heights[(y - half) & last], heights[y + half]
            for x in range(0, side, step):
                centre, right, left = x + half, (x + step) & last, (x - half) & last
                row[centre] = row[centre] * scale + ((middle[centre] + above[centre]) + (row[x] + row[right])) * quarter
                middle[x] = middle[x] * scale + ((middle[centre] + middle[left]) + (row[x] + below[x])) * quarter
        step, amplitude = half, amplitude / decay


def _bounds(rows: Any) -> Any:
    """Lowest and highest value; column by column, which the compiler makes vector code of."""
    lowest, highest = rows[0].copy(), rows[0].copy()
    for row in rows:
        for x in range(len(row)):
            lowest[x] = row[x] if row[x] < lowest[x] else lowest[x]
            highest[x] = row[x] if row[x] > highest[x] else highest[x]
    return lowest.min(), highest.max()


@compiled(_raise_heights, _bounds)
def _fog_loop(images: Any, units: Any, strength: float, decay: float, out: Any) -> None:
    """`fog_torch`, image by image; every sum has the same order. `units` are written over."""
    one, weight = np.float32(1), np.float32(strength)
    channels, height, width = images.shape[1:]
    for index in range(len(images)):
        heights, brightest = units[index], np.float32(0)
        for row in heights:
            for x in range(len(row)):
                row[x] = row[x] * np.float32(2) - one
        heights[0, 0] = 0
        _raise_heights(heights, _FIRST_AMPLITUDE, decay)
        lowest, highest = _bounds(heights)
        for plane in images[index]:
            brightest = max(brightest, _bounds(plane)[1])
        share = brightest / (brightest + weight)
        for y in range(height):
            fog_row = heights[y]
            for x in range(width):
                fog_row[x] = (fog_row[x] - lowest) / (highest - lowest) * weight
            for channel in range(channels):
                row, target = images[index, channel, y], out[index, channel, y]
                for x in range(width):
                    value = (row[x] + fog_row[x]) * share
                    target[x] = value if value < one else one


_TABLE_224 = severities("strength decay", (1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4))

CORRUPTIONS = (
    Corruption(
        name="fog",
        group="weather",
        function=fog,
        parameters={
            "imagenet224": _TABLE_224,
            "tinyimagenet64": severities("strength decay", (0.4, 3.0), (0.7, 3.0), (1.0, 2.5), (1.5, 2.0), (2.0, 1.75)),
            "cifar32": severities("strength decay", (0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75)),
            "mnist28": _TABLE_224,
        },
        description="a plasma fractal over the image",
    ),
)
