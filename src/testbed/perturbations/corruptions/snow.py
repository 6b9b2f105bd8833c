"""Snow: flakes that a wind has drawn out, over a whitened image."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from testbed.perturbations.corruptions.chunks import chunks
from testbed.perturbations.corruptions.colour import luma
from testbed.perturbations.corruptions.corruption import Corruption, severities
from testbed.perturbations.corruptions.filters import clipped_zoom, line_filter
from testbed.randomness import SampleKeys

if TYPE_CHECKING:
    from torch import Tensor


def snow(
    images: Tensor,
    *,
    keys: SampleKeys,
    mean: float,
    deviation: float,
    zoom: float,
    threshold: float,
    radius: int,
    sigma: float,
    mix: float,
) -> Tensor:
    """`images` in snow: mix x + (1 - mix) max(x, 1.5 luma(x) + 0.5), and on it a layer of flakes, twice: once turned by
    180 degrees.

    Args:
        images: (n, C, H, W) float32 in [0, 1].
        keys: of the n samples.
        mean, deviation, zoom, threshold, radius, sigma: of the flakes, see `flakes`.
        mix: weight of the image against the whitened one.
    Returns: (n, C, H, W) float32 in [0, 1]; the same bits in any batch.
    Source: Hendrycks & Dietterich, ICLR 2019.
    """
    import torch

    snowed = torch.empty_like(images)
    height, width = images.shape[2:]
    for chunk in chunks(images):
        part, target, some = images[chunk], snowed[chunk], keys.take(chunk.start, chunk.stop)
        units = some.uniform("snow/field", (1, height, width), images.device, dtype="float64")
        angles = some.uniform("snow/angle", (), images.device, dtype="float64").mul_(90).sub_(135).deg2rad_()
        field = _middle_normal(units, zoom).mul_(deviation).add_(mean)
        layer = flakes(field, angles, zoom=zoom, threshold=threshold, radius=radius, sigma=sigma)
        white = torch.maximum(part, luma(part).mul(1.5).add_(0.5)).mul_(1 - mix)
        torch.mul(part, mix, out=target).add_(white).add_(layer + layer.flip(2, 3)).clamp_(0, 1)
    return snowed


def _middle_normal(units: Tensor, zoom: float) -> Tensor:
    """Normal numbers, as float32, of the part of `units` (n, 1, H, W) that is seen once enlarged; they are slow."""
    import torch

    crops = [(size, math.ceil(size / zoom)) for size in units.shape[2:]]
    rows, columns = (slice((size - crop) // 2, (size - crop) // 2 + crop) for size, crop in crops)
    units[:, :, rows, columns] = torch.special.ndtri(units[:, :, rows, columns])
    return units.float()


def flakes(field: Tensor, angles: Tensor, *, zoom: float, threshold: float, radius: int, sigma: float) -> Tensor:
    """The layer of flakes, in whole grey levels k / 255.

    The middle of the field is enlarged, what is too dark vanishes, the rest is cut to 8 bits, blurred along a line, and
    rounded to 8 bits again, as the published code did with pictures on their way through ImageMagick.

    Args:
        field: (n, 1, H, W) float32 noise.
        angles: (n,) of the wind, in radians.
        zoom: enlargement, at least 1.
        threshold: what is below it becomes 0.
        radius, sigma: of the motion blur, in pixels, see `line_filter`.
    Returns: (n, 1, H, W) float32 in [0, 1].
    """
    enlarged = clipped_zoom(field, zoom)
    levels = enlarged.mul_(enlarged >= threshold).clamp_(0, 1).mul_(255).floor_()
    return line_filter(levels, radius=radius, sigma=sigma, angles=angles).round_().div_(255)


_NAMES = "mean deviation zoom threshold radius sigma mix"
_TABLE_224 = severities(
    _NAMES,
    (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
    (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
    (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
    (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
)
_TABLE_64 = severities(
    _NAMES,
    (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
    (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
    (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
    (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
    (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
)
_MIXES_32 = (0.95, 0.9, 0.9, 0.85, 0.8)

CORRUPTIONS = (
    Corruption(
        name="snow",
        group="weather",
        function=snow,
        parameters={
            "imagenet224": _TABLE_224,
            "tinyimagenet64": _TABLE_64,
            "cifar32": tuple({**row, "mix": mix} for row, mix in zip(_TABLE_64, _MIXES_32, strict=True)),
            "mnist28": _TABLE_224,
        },
        description="flakes drawn out by a wind, over a whitened image",
    ),
)
