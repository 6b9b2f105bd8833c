"""Scales on which accuracies of many models lie along a line: logit, probit, and percent as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import DataError

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A scale for accuracies in percent.

    Args:
        name: of the scale.
        forward: fractions in [0, 1] to the scale; 0 and 1 may become infinite.
        inverse: back to fractions.
        derivative: of `forward` at a fraction.
    """

    name: str
    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    derivative: Callable[[Array], Array]

    def of_percent(self, percent: ArrayLike) -> Array:
        """The place of accuracies on the scale; nothing is clipped, so 0 and 100 % of a logit are infinite."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.forward(np.asarray(percent, np.float64) / 100))

    def to_percent(self, placed: ArrayLike) -> Array:
        """The accuracies that lie at these places."""
        return np.asarray(100 * self.inverse(np.asarray(placed, np.float64)))

    def sampling_variance(self, percent: ArrayLike, n: ArrayLike) -> Array:
        """The variance on the scale of an accuracy measured on `n` images: binomial, by the delta method.

        Args:
            percent: the accuracy that is expected; one nearer to 0 or 100 % than half an image is taken to be that far.
            n: number of images; NaN or infinite, where it is unknown or does not count, gives 0.
        """
        sizes = np.asarray(n, np.float64)
        is_known = np.isfinite(sizes)
        half_an_image = np.where(is_known, np.minimum(0.5, 0.5 / np.where(is_known, sizes, 1.0)), 0.5)
        part = np.clip(np.asarray(percent, np.float64) / 100, half_an_image, 1 - half_an_image)
        variance = part * (1 - part) * np.square(self.derivative(part)) / np.where(is_known, sizes, 1.0)
        return np.asarray(np.where(is_known, variance, 0.0))


def _logit(part: Array) -> Array:
    return np.asarray(np.log(part / (1 - part)))


def _expit(placed: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(placed))


def _probit(part: Array) -> Array:
    from scipy.special import ndtri

    return np.asarray(ndtri(part))


def _normal(placed: Array) -> Array:
    from scipy.special import ndtr

    return np.asarray(ndtr(placed))


def _probit_derivative(part: Array) -> Array:
    return np.asarray(np.sqrt(2 * np.pi) * np.exp(np.square(_probit(part)) / 2))


SCALES: Mapping[str, Scale] = {
    scale.name: scale
    for scale in (
        Scale(name="logit", forward=_logit, inverse=_expit, derivative=lambda part: 1 / (part * (1 - part))),
        Scale(name="probit", forward=_probit, inverse=_normal, derivative=_probit_derivative),
        Scale(name="linear", forward=np.asarray, inverse=np.asarray, derivative=np.ones_like),
    )
}


def scale_named(name: str) -> Scale:
    """The scale of this name. Raises: DataError: there is none."""
    if name not in SCALES:
        raise DataError(f"There is no scale '{name}'. Use {', '.join(SCALES)}.")
    return SCALES[name]
