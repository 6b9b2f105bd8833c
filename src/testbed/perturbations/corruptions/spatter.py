"""Spatter: drops of water or splashes of mud on the lens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from testbed.perturbations.corruptions.chunks import chunks
from testbed.perturbations.corruptions.colour import luma
from testbed.perturbations.corruptions.corruption import Corruption, Severities
from testbed.perturbations.corruptions.filters import gaussian_filter
from testbed.perturbations.corruptions.water_loops import thicken
from testbed.randomness import SampleKeys

if TYPE_CHECKING:
    from torch import Tensor

_WATER = (175, 238, 238)  # pale turquoise
_MUD = (63, 42, 20)  # brown
_GREY_MUD = (63, 63, 63)
_THINNEST_MUD = 0.8


def spatter(
    images: Tensor,
    *,
    keys: SampleKeys,
    mean: float,
    deviation: float,
    sigma: float,
    threshold: float,
    intensity: float = 1.0,
    mud_sigma: float | None = None,
    mud_colour: tuple[int, int, int] = _MUD,
) -> Tensor:
    """`images` behind drops: x + intensity m water, or x (1 - m) + m mud, with m in [0, 1] of each pixel.

    One-channel images are spattered as colour images and taken back by luma.

    Args:
        images: (n, C, H, W) float32 in [0, 1].
        keys: of the n samples.
        mean, deviation, sigma: of a normal field, and of the Gaussian that smooths it, in pixels.
        threshold: drops are where the field reaches it. Where it nowhere does, the image stays as it is.
        intensity: of water; mud has none.
        mud_sigma: of the Gaussian that softens the edge of mud, in pixels; None for water.
        mud_colour: red, green and blue of mud, in 255ths.
    Returns: (n, C, H, W) float32 in [0, 1]; the same bits in any batch.
    Source: Hendrycks & Dietterich, ICLR 2019.
    """
    import torch

    spattered = torch.empty_like(images)
    height, width = images.shape[2:]
    for chunk in chunks(images):
        part = images[chunk].expand(-1, 3, -1, -1)
        field = keys.take(chunk.start, chunk.stop).normal("spatter/field", (1, height, width), images.device)
        field = gaussian_filter(field.mul_(deviation).add_(mean), sigma, mode="nearest")
        if mud_sigma is None:
            layer = water_thickness(field, threshold=threshold).mul_(intensity)
            covered = (layer * _colour(_WATER, images)).add_(part)
        else:
            layer = mud_thickness(field, threshold=threshold, sigma=mud_sigma)
            covered = (part * (1 - layer)).add_(layer * _colour(mud_colour, images))
        covered.clamp_(0, 1)
        spattered[chunk] = covered if images.shape[1] == 3 else luma(covered)
    return spattered


def water_thickness(field: Tensor, *, threshold: float) -> Tensor:
    """How thick the water is, relative to the thickest of the image: lit from one corner, and thin at its edges.

    Like the published code this goes through 8-bit pictures, in which a field of 256/255 or more wraps round to dark.
    It runs on the CPU whatever the device.

    Args:
        field: (n, 1, H, W) float32; drops are where it is at least `threshold`.
    Returns: (n, 1, H, W) float32 in [0, 1], on the device of `field`.
    """
    import torch

    levels = (field * (field >= threshold)).mul_(255).long().bitwise_and_(255).cpu()
    thickness = torch.empty_like(levels)
    thicken(levels[:, 0].numpy(), thickness[:, 0].numpy())
    thickest = thickness.amax((1, 2, 3), keepdim=True).clamp_(min=1)
    return (thickness.float() / thickest.float()).to(field.device)


def mud_thickness(field: Tensor, *, threshold: float, sigma: float) -> Tensor:
    """Share of mud in each pixel, 0 or from 0.8 to 1: where `field` (n, 1, H, W) exceeds the threshold, softened."""
    soft = gaussian_filter((field > threshold).float(), sigma, mode="nearest")
    return soft.mul_(soft >= _THINNEST_MUD)


def _colour(levels: tuple[int, int, int], images: Tensor) -> Tensor:
    return images.new_tensor(levels).div_(255).view(1, 3, 1, 1)


def _rows(*rows: tuple[float, float, float, float, float], num_water: int) -> Severities:
    """Parameters of the severities, of which the first `num_water` are water and the others mud."""
    names = ("mean", "deviation", "sigma", "threshold")
    return tuple(
        dict(zip((*names, "intensity" if index < num_water else "mud_sigma"), row, strict=True))
        for index, row in enumerate(rows)
    )


_ROWS_224 = (
    (0.65, 0.3, 4, 0.69, 0.6),
    (0.65, 0.3, 3, 0.68, 0.6),
    (0.65, 0.3, 2, 0.68, 0.5),
    (0.65, 0.3, 1, 0.65, 1.5),
    (0.67, 0.4, 1, 0.65, 1.5),
)
_TABLE_64 = _rows(
    (0.62, 0.1, 0.7, 0.7, 0.6),
    (0.65, 0.1, 0.8, 0.7, 0.6),
    (0.65, 0.3, 1, 0.69, 0.6),
    (0.65, 0.1, 0.7, 0.68, 0.6),
    (0.65, 0.1, 0.5, 0.67, 0.6),
    num_water=3,
)
_TABLE_32 = _rows(
    (0.62, 0.1, 0.7, 0.7, 0.5),
    (0.65, 0.1, 0.8, 0.7, 0.5),
    (0.65, 0.3, 1, 0.69, 0.5),
    (0.65, 0.1, 0.7, 0.69, 0.6),
    (0.65, 0.1, 0.5, 0.68, 0.6),
    num_water=3,
)
# MNIST-C takes ImageNet's numbers for mud at every severity: the last one is then the sigma of its edge.
_TABLE_28 = tuple({**row, "mud_colour": _GREY_MUD} for row in _rows(*_ROWS_224, num_water=0))

CORRUPTIONS = (
    Corruption(
        name="spatter",
        group="weather",
        function=spatter,
        parameters={
            "imagenet224": _rows(*_ROWS_224, num_water=3),
            "tinyimagenet64": _TABLE_64,
            "cifar32": _TABLE_32,
            "mnist28": _TABLE_28,
        },
        description="drops of water or mud on the lens",
    ),
)
