"""Blur: Gaussian, out of focus, along a line of motion, and towards the middle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from testbed.perturbations.corruptions.corruption import Corruption, severities
from testbed.perturbations.corruptions.filters import (
    Floats,
    border_indices,
    correlate,
    gaussian_filter,
    gaussian_weights,
    line_filter,
    zoom_sum,
)
from testbed.randomness import SampleKeys

if TYPE_CHECKING:
    from torch import Tensor

_SMALL_DISK = 8  # pixels: up to this radius the published kernels have 17 x 17 values
_NEGLIGIBLE = 1e-9  # of a kernel's sum


def gaussian_blur(images: Tensor, *, sigma: float) -> Tensor:
    """`images` (n, C, H, W) smoothed by a Gaussian of `sigma` pixels; edges are replicated."""
    return gaussian_filter(images, sigma, mode="nearest").clamp_(0, 1)


def defocus_blur(images: Tensor, *, radius: float, alias_sigma: float) -> Tensor:
    """`images` (n, C, H, W) as a lens out of focus shows them: each point is a disk; edges are mirrored.

    Args:
        images: (n, C, H, W) float32 in [0, 1].
        radius: of the disk, in pixels; below 1 the disk is a point.
        alias_sigma: of the Gaussian that softens the disk's edge, in pixels.
    """
    return correlate(images, disk_kernel(radius, alias_sigma=alias_sigma), mode="mirror").clamp_(0, 1)


def motion_blur(images: Tensor, *, keys: SampleKeys, radius: int, sigma: float) -> Tensor:
    """`images` (n, C, H, W) blurred along a line at a random angle within 45 degrees of the horizontal.

    As published, the result is rounded to whole grey levels (the simulator passes it through an 8-bit file).

    Args:
        images: (n, C, H, W) float32 in [0, 1].
        keys: of the n samples.
        radius, sigma: of the line, in pixels, see `line_filter`.
    """
    units = keys.uniform("motion_blur/angle", (), dtype="float64")
    blurred = line_filter(images, radius=radius, sigma=sigma, angles=(units - 0.5) * (math.pi / 2))
    return blurred.mul_(255).round_().div_(255)


def zoom_blur(
    images: Tensor, *, stop: float, step: float, count: int, ends: Literal["published", "exclusive"] = "published"
) -> Tensor:
    """`images` (n, C, H, W) while the camera zooms in: the mean of them and of `count` enlargements.

    The factors are 1, 1 + step, ...; the first of them is the image itself, which so counts twice.

    Args:
        images: (n, C, H, W) float32 in [0, 1].
        stop: where the factors end. The published ones include it where the rounding of floating point lets it in.
        step: between factors.
        count: how many of them the published code takes.
        ends: 'exclusive' takes the factors below `stop` alone, as was meant.
    """
    if ends == "exclusive":
        count = math.ceil(round((stop - 1) / step, 6))
    delta = (1 + step) - 1  # rounded as the published code has it: the size of an enlargement may depend on it
    enlarged = zoom_sum(images, [1 + index * delta for index in range(count)])
    return enlarged.add_(images).div_(count + 1).clamp_(0, 1)


def disk_kernel(radius: float, *, alias_sigma: float) -> Floats:
    """Weights of a disk with a softened edge, (side, side) float64 with an odd side.

    The softening is that of the published kernels: over 3 x 3 pixels, or 5 x 5 for a radius above 8, and mirrored at
    the edges of their array. Disks of radius 8 and 10 touch them, and their weights add up to 1.013 and 1.011: the
    published images are that much brighter.
    """
    reach = math.ceil(max(radius, _SMALL_DISK))
    squares = np.arange(-reach, reach + 1) ** 2
    disk = (squares[:, None] + squares <= radius**2).astype(np.float64)
    disk /= disk.sum()
    taps = 1 if radius <= _SMALL_DISK else 2
    weights = gaussian_weights(alias_sigma, truncate=taps / alias_sigma)
    places = border_indices(len(disk), taps, mode="mirror")
    for _ in range(2):  # down, and after turning the array across
        padded = disk[places]
        disk = sum(weight * padded[tap : tap + len(disk)] for tap, weight in enumerate(weights)).T
    used = int(np.flatnonzero((disk > _NEGLIGIBLE).any(axis=0))[0])
    inner = disk[used : len(disk) - used, used : len(disk) - used]
    return np.where(inner > _NEGLIGIBLE, inner, 0.0)


_CIFAR_AND_TINY_ZOOM = severities(
    "stop step count", (1.06, 0.01, 7), (1.11, 0.01, 12), (1.16, 0.01, 16), (1.21, 0.01, 21), (1.26, 0.01, 26)
)
_IMAGENET_ZOOM = severities(
    "stop step count", (1.11, 0.01, 12), (1.16, 0.01, 16), (1.21, 0.02, 11), (1.26, 0.02, 13), (1.31, 0.03, 11)
)
_IMAGENET_DEFOCUS = severities("radius alias_sigma", (3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5))
_IMAGENET_MOTION = severities("radius sigma", (10, 3), (15, 5), (15, 8), (15, 12), (20, 15))

CORRUPTIONS = (
    Corruption(
        name="gaussian_blur",
        group="blur",
        function=gaussian_blur,
        parameters={
            "imagenet224": severities("sigma", 1, 2, 3, 4, 6),
            "tinyimagenet64": severities("sigma", 0.5, 0.75, 1, 1.25, 1.5),
            "cifar32": severities("sigma", 0.4, 0.6, 0.7, 0.8, 1),
            "mnist28": severities("sigma", 1, 2, 3, 4, 6),
        },
        description="smoothed by a Gaussian",
    ),
    Corruption(
        name="defocus_blur",
        group="blur",
        function=defocus_blur,
        parameters={
            "imagenet224": _IMAGENET_DEFOCUS,
            "tinyimagenet64": severities("radius alias_sigma", (0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
            "cifar32": severities("radius alias_sigma", (0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
            "mnist28": _IMAGENET_DEFOCUS,
        },
        description="out of focus",
    ),
    Corruption(
        name="motion_blur",
        group="blur",
        function=motion_blur,
        parameters={
            "imagenet224": _IMAGENET_MOTION,
            "tinyimagenet64": severities("radius sigma", (10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
            "cifar32": severities("radius sigma", (6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
            "mnist28": _IMAGENET_MOTION,
        },
        description="moved along a line while the shutter was open",
    ),
    Corruption(
        name="zoom_blur",
        group="blur",
        function=zoom_blur,
        parameters={
            "imagenet224": _IMAGENET_ZOOM,
            "tinyimagenet64": _CIFAR_AND_TINY_ZOOM,
            "cifar32": _CIFAR_AND_TINY_ZOOM,
            "mnist28": _IMAGENET_ZOOM,
        },
        options={"ends": ("published", "exclusive")},
        description="zoomed in while the shutter was open",
    ),
)
