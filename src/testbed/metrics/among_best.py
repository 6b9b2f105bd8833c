"""Which of many models may be the best, from their intervals alone: where nobody has their answers image by image."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import ShapeError
from testbed.metrics.intervals import tails

_CHUNK = 512  # models that are compared with all others at once


def among_best(
    values: ArrayLike, low: ArrayLike, high: ArrayLike, *, interval_confidence: float = 0.95, confidence: float = 0.95
) -> NDArray[np.bool_]:
    """Which models no other one is shown to be better than: with the given confidence the best one is among them.

    A model is out where the one-sided bound of its difference from some other lies below 0. The bounds are joined from
    the two intervals as if the models had seen different images; where they saw the same ones, as they mostly did,
    fewer models are out than could be. The truly best of m models can only be lost if one of the m - 1 others is
    wrongly shown to be better, so each comparison has that share of the error.

    Args:
        values, low, high: (m,) numbers, larger is better, with their two-sided intervals; a model without an interval
            is among the best if it has the largest number, and shows nothing about others.
        interval_confidence: of the intervals.
    Raises: ShapeError: not as many bounds as numbers.
    Source: Zou & Donner, Statistics in Medicine 27, 2008 (differences from intervals); Hsu, Multiple Comparisons, 1996,
        chapter 4 (comparisons with the best).

    >>> among_best([90.0, 89.5, 80.0], [89.0, 88.5, 79.0], [91.0, 90.5, 81.0]).tolist()
    [True, True, False]
    """
    from scipy.special import ndtri

    numbers, lows, highs = (np.asarray(one, np.float64) for one in (values, low, high))
    if not numbers.shape == lows.shape == highs.shape or numbers.ndim != 1:
        raise ShapeError(f"There are {numbers.shape} numbers with {lows.shape}, {highs.shape} bounds. Give one each.")
    if len(numbers) < 2:
        return np.ones(len(numbers), np.bool_)
    below, _ = tails(interval_confidence)
    stretch = float(ndtri((1 - confidence) / (len(numbers) - 1)) / ndtri(below))
    down, up = stretch * (numbers - lows), stretch * (highs - numbers)
    is_out = np.zeros(len(numbers), np.bool_)
    for start in range(0, len(numbers), _CHUNK):
        rows = slice(start, start + _CHUNK)
        lead = numbers[:, None] - numbers[None, rows]
        is_out[rows] = (lead > np.hypot(down[:, None], up[None, rows])).any(0)  # a comparison with NaN is False
    is_known = np.isfinite(lows) & np.isfinite(highs)
    is_first = numbers == np.nanmax(numbers) if np.isfinite(numbers).any() else np.zeros(len(numbers), np.bool_)
    return np.asarray((is_known & ~is_out) | is_first)
