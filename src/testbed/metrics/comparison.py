"""What a shift costs on the same images: MSCR with loss and recovery beside it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import ShapeError
from testbed.metrics.accuracy import percent
from testbed.metrics.intervals import Side, relative_change, weighted_proportion
from testbed.records import MetricValue


def mscr(clean: ArrayLike, shifted: ArrayLike, *, confidence: float = 0.95, side: Side = "both") -> MetricValue:
    """Relative change of accuracy, 100 (A_eps - A_clean) / A_clean, in percent; below 0 for a loss, may be above.

    Images are the units, and the draws lie in them. The change nets losses against gains, so `loss` and `recovery`
    belong beside it.

    Args:
        clean: (n,) or (1, n) bool, whether each image is right when clean.
        shifted: (draws, n) bool, the same images under the shift; (n,) is one draw.
        confidence, side: of the interval, see `testbed.metrics.intervals`.
    Returns: n is the number of images; None where no image is right when clean.
    Source: Siedel et al. 2022, minimal separation corruption robustness.

    >>> mscr([True, True, False, False], [[True, False, False, False]]).value
    -50.0
    """
    right, correct = _paired(clean, shifted)
    if not right.any():
        return _undefined("mscr", len(right), "no image is right when clean")
    num_right, draws = np.count_nonzero(right), len(correct)
    value = (np.count_nonzero(correct) / draws - num_right) / num_right
    interval = relative_change(right, correct.mean(axis=0), num_draws=draws, confidence=confidence, side=side)
    return percent("mscr", value, interval, n=len(right))


def loss(clean: ArrayLike, shifted: ArrayLike, *, confidence: float = 0.95, side: Side = "both") -> MetricValue:
    """Percent of images right when clean that are wrong under the shift, 100 - A_rel; mean over images and draws.

    Args: as `mscr`.
    Returns: n is the number of images right when clean, None where there is none; detail has `images_flipped`, how
        many of them are wrong in at least one draw.
    """
    right, correct = _paired(clean, shifted)
    return _share("loss", ~correct[:, right], "no image is right when clean", confidence, side)


def recovery(clean: ArrayLike, shifted: ArrayLike, *, confidence: float = 0.95, side: Side = "both") -> MetricValue:
    """Percent of images wrong when clean that are right under the shift; mean over images and draws.

    Args: as `mscr`.
    Returns: n is the number of images wrong when clean, None where there is none; detail has `images_flipped`, how
        many of them are right in at least one draw.
    """
    right, correct = _paired(clean, shifted)
    return _share("recovery", correct[:, ~right], "no image is wrong when clean", confidence, side)


def compare(
    clean: ArrayLike, shifted: ArrayLike, *, confidence: float = 0.95, side: Side = "both"
) -> dict[str, MetricValue]:
    """MSCR, loss and recovery by name. With A_rel = 100 - loss and q = recovery: A_eps = A_cl A_rel + (1 - A_cl) q.

    Args: as `mscr`.
    """
    metrics: tuple[Callable[..., MetricValue], ...] = (mscr, loss, recovery)
    values = (metric(clean, shifted, confidence=confidence, side=side) for metric in metrics)
    return {value.name: value for value in values}


def _share(name: str, flipped: NDArray[np.bool_], reason: str, confidence: float, side: Side) -> MetricValue:
    """Percent of (draws, n) that flipped, over the images the metric is about."""
    draws, n = flipped.shape
    if not n:
        return _undefined(name, 0, reason)
    interval = weighted_proportion(flipped.mean(axis=0), np.ones(n), num_draws=draws, confidence=confidence, side=side)
    detail = {"images_flipped": int(np.count_nonzero(flipped.any(axis=0)))}
    return percent(name, np.count_nonzero(flipped) / flipped.size, interval, n=n, detail=detail)


def _undefined(name: str, n: int, reason: str) -> MetricValue:
    return MetricValue(name=name, value=None, n=n, reason=reason)


def _paired(clean: ArrayLike, shifted: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Correctness (n,) when clean and (draws, n) under the shift, of the same images."""
    right, correct = np.atleast_2d(np.asarray(clean, bool)), np.atleast_2d(np.asarray(shifted, bool))
    if (
        right.ndim != 2
        or len(right) != 1
        or correct.ndim != 2
        or right.shape[1] != correct.shape[1]
        or not len(correct)
    ):
        raise ShapeError(
            f"Clean correctness has shape {np.shape(clean)}, shifted {np.shape(shifted)}. Give (n,) and (draws, n) of "
            "the same images."
        )
    return right[0], correct
