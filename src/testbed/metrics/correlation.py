"""Correlation between two columns of numbers about models, with an interval that knows which models are relatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import ShapeError
from testbed.metrics.intervals import tails
from testbed.records import MetricValue

Kind = Literal["pearson", "spearman"]
FEWEST = 4  # models, and families: fewer say nothing about spread

_Array = NDArray[np.float64]


def correlation(
    x: ArrayLike, y: ArrayLike, *, kind: Kind, groups: ArrayLike | None = None, confidence: float = 0.95
) -> MetricValue:  # fmt: skip
    """The correlation of x and y, from -1 to 1, over the rows where both are finite; n counts them.

    The interval is the jackknife's on the scale of Fisher's z: each group is left out once, and the spread of what
    remains gives the standard error; Student's t with one degree of freedom less than there are groups. Models of one
    family resemble each other, so that they count as one group and not as so many independent models.

    Args:
        x, y: (n,) numbers.
        kind: 'pearson' of the numbers, 'spearman' of their ranks (the mean rank of equal ones).
        groups: (n,) labels, such as families; each row is its own group without.
    Raises: ShapeError: not as many labels and numbers.
    Source: Efron & Stein, Annals of Statistics 9, 1981 (jackknife); Fisher, Metron 1, 1921 (z).

    >>> round(correlation([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], kind="spearman").value, 12)
    0.8
    """
    first, second = np.asarray(x, np.float64), np.asarray(y, np.float64)
    labels: NDArray[Any] = np.arange(len(first)) if groups is None else np.asarray(groups)
    if not first.shape == second.shape == labels.shape or first.ndim != 1:
        raise ShapeError(f"There are {first.shape}, {second.shape} numbers and {labels.shape} groups. Give one each.")
    is_whole = np.isfinite(first) & np.isfinite(second)
    first, second, labels = first[is_whole], second[is_whole], labels[is_whole]
    name, n = f"{kind}_correlation", len(first)
    if reason := _undefined(first, second):
        return MetricValue(name=name, value=None, n=n, reason=reason)
    measure = _pearson if kind == "pearson" else _spearman
    value, num_groups = measure(first, second), len(set(labels.tolist()))
    detail = {"num_groups": num_groups}
    if (error := _jackknife_error(measure, first, second, labels)) is None:
        return MetricValue(name=name, value=value, n=n, detail=detail)
    low, high = _interval(value, error, degrees=num_groups - 1, confidence=confidence)
    method = "jackknife of Fisher's z" if groups is None else "jackknife of Fisher's z by group"
    return MetricValue(name=name, value=value, n=n, ci_low=low, ci_high=high, method=method, detail=detail)


def _undefined(x: _Array, y: _Array) -> str:
    """Why there is no correlation; empty where there is one."""
    if len(x) < FEWEST:
        return f"fewer than {FEWEST} models have both numbers"
    return "all models have the same number" if np.ptp(x) == 0 or np.ptp(y) == 0 else ""


def _pearson(x: _Array, y: _Array) -> float:
    first, second = x - x.mean(), y - y.mean()
    return float(np.clip(first @ second / np.sqrt((first @ first) * (second @ second)), -1, 1))


def _spearman(x: _Array, y: _Array) -> float:
    from scipy.stats import rankdata

    return _pearson(rankdata(x), rankdata(y))


def _jackknife_error(
    measure: Callable[[_Array, _Array], float], x: _Array, y: _Array, labels: NDArray[Any]
) -> float | None:
    """Standard error of Fisher's z; None where some correlation is exact, or the groups are too few to tell."""
    found = []
    for label in sorted(set(labels.tolist())):
        rest = labels != label
        if _undefined(x[rest], y[rest]):
            return None
        found.append(measure(x[rest], y[rest]))
    values, count = np.array(found), len(found)
    if count < FEWEST or np.any(np.abs(values) > 1 - 1e-12):
        return None
    z = np.arctanh(values)
    return float(np.sqrt((count - 1) / count * np.square(z - z.mean()).sum()))


def _interval(value: float, error: float, *, degrees: int, confidence: float) -> tuple[float, float]:
    from scipy.special import stdtrit

    below, _ = tails(confidence)
    half = -float(stdtrit(degrees, below)) * error
    z = float(np.arctanh(np.clip(value, -1 + 1e-12, 1 - 1e-12)))
    return float(np.tanh(z - half)), float(np.tanh(z + half))
