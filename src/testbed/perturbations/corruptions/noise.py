"""Noise on every value: Gaussian, shot, impulse and speckle."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testbed.perturbations.corruptions.chunks import chunks
from testbed.perturbations.corruptions.compiled import compiled
from testbed.perturbations.corruptions.corruption import Corruption, severities
from testbed.perturbations.corruptions.normals import standard_normals
from testbed.randomness import SampleKeys

if TYPE_CHECKING:
    from torch import Tensor

_UNIT_BITS = 23  # random bits of a uniform float32
_LEVELS = 255  # the table of Poisson distributions has one for each grey level
_STARTS = 256  # where the search in a distribution begins, for each 256th of (0, 1)


def gaussian_noise(images: Tensor, *, keys: SampleKeys, sigma: float) -> Tensor:
    """`images` + sigma z, z standard normal and independent for every value; clipped.

    Args:
        images: (n, C, H, W) float32 in [0, 1].
        keys: of the n samples.
        sigma: standard deviation in [0, 1] pixel units.
    Returns: (n, C, H, W) float32 in [0, 1].
    Source: Hendrycks & Dietterich, ICLR 2019; so are the other three.
    """
    import torch

    out = torch.empty_like(images, memory_format=torch.contiguous_format)
    for part in chunks(images):
        noise = _normals(images[part], keys.take(part.start, part.stop), "gaussian_noise/value")
        torch.add(images[part], noise.mul_(sigma), out=out[part]).clamp_(0, 1)
    return out


def speckle_noise(images: Tensor, *, keys: SampleKeys, sigma: float) -> Tensor:
    """`images` + `images` sigma z: as `gaussian_noise`, in proportion to the value."""
    import torch

    out = torch.empty_like(images, memory_format=torch.contiguous_format)
    for part in chunks(images):
        noise = _normals(images[part], keys.take(part.start, part.stop), "speckle_noise/value")
        torch.add(images[part], noise.mul_(sigma).mul_(images[part]), out=out[part]).clamp_(0, 1)
    return out


def impulse_noise(images: Tensor, *, keys: SampleKeys, fraction: float) -> Tensor:
    """`images` with a random `fraction` of the values set to 1 or 0, with equal chance.

    Each channel of a pixel by itself, so that impulses have colours. Those of a lower fraction are among those of a
    higher one, and as white or black as there.
    """
    import torch

    out = torch.empty_like(images, memory_format=torch.contiguous_format)
    for part in chunks(images):
        stream, shape = "impulse_noise/value", tuple(images.shape[1:])
        units = keys.take(part.start, part.stop).uniform(stream, shape, images.device)
        if images.device.type == "cpu":
            values, numbers = images[part].reshape(-1).numpy(), out[part].view(-1).numpy()
            _set_impulses(values, units.view(-1).numpy(), float(fraction), numbers)
        else:
            out[part] = impulses_torch(images[part], units, fraction=fraction)
    return out


def impulses_torch(images: Tensor, units: Tensor, *, fraction: float) -> Tensor:
    """`images` where `units` (n, C, H, W) are at least `fraction`, else 1 or 0: the reference, in plain torch.

    The last random bit of a unit says which of the two.
    """
    import torch

    is_white = (units * 2.0**_UNIT_BITS).int() & 1
    return torch.where(units < torch.tensor(fraction, device=units.device), is_white.float(), images)


def shot_noise(images: Tensor, *, keys: SampleKeys, photons: float) -> Tensor:
    """The brightness by photons counted: Poisson(photons x) / photons, independent for every value; clipped.

    The smallest count whose distribution function reaches a uniform number of 32 bits, hence exactly Poisson up to
    these, for any level x.

    Args:
        images: (n, C, H, W) float32 in [0, 1].
        keys: of the n samples.
        photons: mean count of a white pixel, up to 700.
    Returns: (n, C, H, W) float32 in [0, 1]; the same bits in any batch.
    """
    import torch

    out = torch.empty_like(images, memory_format=torch.contiguous_format)
    for part in chunks(images):
        stream, shape = "shot_noise/count", tuple(images.shape[1:])
        units = keys.take(part.start, part.stop).uniform(stream, shape, images.device, dtype="float64")
        if images.device.type == "cpu":
            values, numbers = images[part].reshape(-1).numpy(), out[part].view(-1).numpy()
            _count_photons(values, units.view(-1).numpy(), float(photons), *_poisson_tables(photons), numbers)
        else:
            counts = poisson_torch(images[part].double() * photons, units, largest=photons)
            out[part] = counts.div_(photons).clamp_(max=1)
    return out


def poisson_torch(means: Tensor, units: Tensor, *, largest: float) -> Tensor:
    """Poisson quantiles of `units` in (0, 1) by plain summation: the reference, and the form beyond CPUs.

    Args:
        means: float64 in [0, largest], up to 700.
        units: float64 of the same shape, up to 1 - 2^-33.
    Returns: counts, float64.
    """
    mass = (-means).exp()
    reached, counts = mass.clone(), means.new_zeros(means.shape)
    for count in range(1, _num_counts(largest)):
        counts += reached < units
        mass *= means / count
        reached += mass
    return counts


def _normals(images: Tensor, keys: SampleKeys, stream: str) -> Tensor:
    return standard_normals(keys, stream, tuple(images.shape[1:]), images.device)


def _num_counts(photons: float) -> int:
    """How many counts, from 0, a Poisson distribution needs until less than 2^-34 is left (a Chernoff bound)."""
    return int(photons + 7 * math.sqrt(photons) + 20)


@lru_cache(maxsize=8)
def _poisson_tables(photons: float) -> tuple[NDArray[np.float64], NDArray[np.int16]]:
    """Distribution functions (256, num_counts) of the grey levels' counts, and by 256th of (0, 1) where they reach it.

    Both as `_count_photons` uses them.
    """
    counts = np.arange(_num_counts(photons))
    means = photons / _LEVELS * np.arange(1, _LEVELS + 1)[:, None]
    log_factorials = np.cumsum(np.log(np.maximum(counts, 1)))
    reached = np.ones((_LEVELS + 1, len(counts)))  # black has no photons
    reached[1:] = np.exp(counts * np.log(means) - means - log_factorials).cumsum(axis=1)
    starts = [row.searchsorted(np.arange(_STARTS) / _STARTS) for row in reached]
    return reached, np.stack(starts).astype(np.int16)


def _reached_at(reached: Any, level: Any, count: Any, excess: float, none: float) -> Any:
    """Distribution function at `count` of a Poisson number whose mean is a level's + `excess` (of either sign).

    The sum over a Poisson number of mean `excess` beside the level's, which is 0 with probability `none`.
    """
    weight, total = none, 0.0
    for other in range(count + 1):
        total += weight * reached[level, count - other]
        weight *= excess / (other + 1)
        if abs(weight) < 1e-16:
            break
    return total


@compiled(_reached_at)
def _count_photons(values: Any, units: Any, photons: float, reached: Any, starts: Any, out: Any) -> None:
    """Poisson quantiles with means photons * values, over photons, found in the table of the nearest grey level.

    Another mean moves a distribution function by no more than the means differ, which settles nearly all values of
    8-bit images at once; the others by the distribution function of their own mean.
    """
    last, step = reached.shape[1] - 1, photons / _LEVELS
    for i in range(len(values)):
        unit, level = units[i], np.uint8(values[i] * np.float32(_LEVELS) + np.float32(0.5))
        excess = photons * np.float64(values[i]) - level * step
        slack, count = abs(excess), np.int64(starts[level, np.uint8(unit * _STARTS)])
        while count < last and reached[level, count] < unit:
            count += 1
        if reached[level, count] - slack < unit or (count > 0 and reached[level, count - 1] + slack >= unit):
            none = math.exp(-excess)
            while count < last and _reached_at(reached, level, count, excess, none) < unit:
                count += 1
            while count > 0 and _reached_at(reached, level, count - 1, excess, none) >= unit:
                count -= 1
        out[i] = min(count / photons, 1.0)


@compiled()
def _set_impulses(values: Any, units: Any, fraction: float, out: Any) -> None:
    """`impulse_noise` for numba."""
    most, scale = np.float32(fraction), np.float32(2.0**_UNIT_BITS)
    for i in range(len(values)):
        out[i] = np.float32(np.int32(units[i] * scale) & 1) if units[i] < most else values[i]


_GAUSSIAN_224 = severities("sigma", 0.08, 0.12, 0.18, 0.26, 0.38)
_SHOT_224 = severities("photons", 60, 25, 12, 5, 3)
_IMPULSE_224 = severities("fraction", 0.03, 0.06, 0.09, 0.17, 0.27)
_SPECKLE_224 = severities("sigma", 0.15, 0.2, 0.35, 0.45, 0.6)

CORRUPTIONS = (
    Corruption(
        name="gaussian_noise",
        group="noise",
        function=gaussian_noise,
        parameters={
            "imagenet224": _GAUSSIAN_224,
            "tinyimagenet64": severities("sigma", 0.04, 0.08, 0.12, 0.15, 0.18),
            "cifar32": severities("sigma", 0.04, 0.06, 0.08, 0.09, 0.1),
            "mnist28": _GAUSSIAN_224,
        },
        description="normal noise of one size everywhere",
    ),
    Corruption(
        name="shot_noise",
        group="noise",
        function=shot_noise,
        parameters={
            "imagenet224": _SHOT_224,
            "tinyimagenet64": severities("photons", 250, 100, 50, 30, 15),
            "cifar32": severities("photons", 500, 250, 100, 75, 50),
            "mnist28": _SHOT_224,
        },
        description="Poisson noise of few photons",
    ),
    Corruption(
        name="impulse_noise",
        group="noise",
        function=impulse_noise,
        parameters={
            "imagenet224": _IMPULSE_224,
            "tinyimagenet64": severities("fraction", 0.01, 0.02, 0.05, 0.08, 0.14),
            "cifar32": severities("fraction", 0.01, 0.02, 0.03, 0.05, 0.07),
            "mnist28": _IMPULSE_224,
        },
        description="values set to 0 or 1",
    ),
    Corruption(
        name="speckle_noise",
        group="noise",
        function=speckle_noise,
        parameters={
            "imagenet224": _SPECKLE_224,
            "tinyimagenet64": severities("sigma", 0.15, 0.2, 0.25, 0.3, 0.35),
            "cifar32": severities("sigma", 0.06, 0.1, 0.12, 0.16, 0.2),
            "mnist28": _SPECKLE_224,
        },
        description="normal noise in proportion to the value",
    ),
)
