"""Significance: McNemar's test of two models with one answer per image, and Holm's correction of many p-values."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import DataError

Alternative = Literal["two-sided", "greater", "less"]


def mcnemar_p(first: ArrayLike, second: ArrayLike, *, alternative: Alternative = "two-sided") -> float:
    """McNemar's exact test of two models with one answer per image.

    Args:
        first, second: (n,) bool, whether each model is right on each image.
        alternative: 'greater' for the first being right more often, 'less' for the second.
    Returns: the binomial probability of so uneven a split of the images on which one model alone is right.
    Source: McNemar, Psychometrika 12, 1947; exact form.

    >>> mcnemar_p([True] * 5 + [False], [False] * 5 + [True])
    0.21875
    """
    from scipy.special import bdtr

    one, other = np.asarray(first, bool), np.asarray(second, bool)
    wins, losses = int(np.count_nonzero(one & ~other)), int(np.count_nonzero(other & ~one))
    if not wins + losses:
        return 1.0
    greater, less = float(bdtr(losses, wins + losses, 0.5)), float(bdtr(wins, wins + losses, 0.5))
    return {"greater": greater, "less": less, "two-sided": min(1.0, 2 * min(greater, less))}[alternative]


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """p-values corrected for their number: with those below a level rejected, all are right with that chance.

    Args: p_values: (m,) in [0, 1].
    Source: Holm, Scandinavian Journal of Statistics 6, 1979.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, np.float64)
    if values.ndim != 1 or np.any((values < 0) | (values > 1)):
        raise DataError(f"p-values {values} are not a row of numbers between 0 and 1.")
    order = np.argsort(values)
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(1, np.maximum.accumulate(values[order] * (len(values) - np.arange(len(values)))))
    return corrected
