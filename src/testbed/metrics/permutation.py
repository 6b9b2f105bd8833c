"""Tests of whether two models differ on the same images: sign flips of the images' differences, McNemar, Holm."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import DataError

Alternative = Literal["two-sided", "greater", "less"]

MOST_ENUMERATED = 20  # images that differ: 2^20 sign patterns are all looked at
NUM_FLIPS = 9_999  # random sign patterns beyond
_BLOCK = 1 << 22  # signs at a time: 32 MB


def sign_flip_p(differences: ArrayLike, *, key: int, alternative: Alternative = "two-sided") -> float:
    """Chance of a sum of differences as extreme as the observed one, if each could as well have the other sign.

    Exact over all sign patterns where at most 20 images differ, else from 9,999 random ones and the observed one.

    Args:
        differences: (n,) of images, or of clusters of them: what is exchanged as a whole.
        key: of the random patterns, in [0, 2**64); the same key gives the same answer.
        alternative: 'greater' for large positive sums alone, 'less' for large negative ones.
    Returns: in (0, 1]; 1 where nothing differs.
    Source: Fisher 1935; Phipson & Smyth 2010 (random patterns, the observed one counted).

    >>> sign_flip_p([1, 1, 1], key=0)
    0.25
    """
    values = np.asarray(differences, np.float64)
    values = values[values != 0]
    if alternative == "less":
        values = -values
    observed, total = values.sum(), np.abs(values).sum()
    tolerance = 1e-12 * total
    if len(values) <= MOST_ENUMERATED:
        sums = _all_sums(values)
        return float(np.mean(_as_extreme(sums, observed, tolerance, alternative)))
    extreme = sum(
        int(np.count_nonzero(_as_extreme(sums, observed, tolerance, alternative))) for sums in _random_sums(values, key)
    )
    return (1 + extreme) / (1 + NUM_FLIPS)


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


def _as_extreme(
    sums: NDArray[np.float64], observed: float, tolerance: float, alternative: Alternative
) -> NDArray[np.bool_]:
    if alternative == "two-sided":
        return np.asarray(np.abs(sums) >= abs(observed) - tolerance)
    return np.asarray(sums >= observed - tolerance)


def _all_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sums of all 2^n sign patterns."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _random_sums(values: NDArray[np.float64], key: int) -> list[NDArray[np.float64]]:
    """Sums of random sign patterns, a block at a time; the raw stream of this generator is kept for good (NEP 19)."""
    generator, words = np.random.Philox(key=key), -(-len(values) // 64)
    rows = max(1, _BLOCK // (64 * words))
    found = []
    for start in range(0, NUM_FLIPS, rows):
        count = min(rows, NUM_FLIPS - start)
        bits = np.unpackbits(generator.random_raw(count * words).astype("<u8").view(np.uint8)).reshape(count, -1)
        found.append(2 * (bits[:, : len(values)] @ values) - values.sum())
    return found
