"""Bounds of a rate that err with probability `alpha` at most, in samples of any size.

The intervals of a report aim at 95 % on average; what decides a claim must not promise more than it keeps. Images that
each give one draw are bounded by Clopper and Pearson. Everything else (several draws of an image, clusters of images,
means over runs) is bounded by betting, which takes nothing for granted but that units are independent and their parts
lie between nothing and the whole. Functions take arrays with any leading dimensions, which simulations use.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.metrics.intervals import clopper_pearson

Array = NDArray[np.float64]

_MOST = 1 - 1e-15  # no bet excludes a rate of 1
_HALVINGS = 40  # of [0, 1], down to 1e-12
_NEWTON = 16  # steps, from below and without overshooting; a handful is enough


class Rate(NamedTuple):
    """A rate, sum(part) / sum(whole) over independent units; units that are alike are one cell with a count.

    Args:
        part: (..., cells) from 0 to `whole`.
        whole: (..., cells) from 0 to `size`.
        size: (cells,) the most that a unit can weigh, 1 for the largest unit.
        counts: (..., cells) how many units are alike; fractions for a sample that one could have.
        is_single: whether every unit is one event or none: one draw of one image.
    """

    part: Array
    whole: Array
    size: Array
    counts: Array
    is_single: bool

    @classmethod
    def of_units(cls, part: ArrayLike, whole: ArrayLike, size: ArrayLike, *, is_single: bool) -> Self:
        """The rate over units that are listed one by one, (units,) each, weighed on any scale."""
        rows = np.stack(np.broadcast_arrays(part, whole, size)).astype(np.float64)
        cells, counts = np.unique(rows / rows[2].max(), axis=1, return_counts=True)
        return cls(cells[0], cells[1], cells[2], counts.astype(np.float64), is_single)

    @property
    def value(self) -> Any:
        """The rate in the sample; NaN where the whole is 0."""
        with np.errstate(invalid="ignore"):
            return (self.counts * self.part).sum(-1) / (self.counts * self.whole).sum(-1)

    @property
    def complement(self) -> Rate:
        """The rate of what is not in the part."""
        return self._replace(part=self.whole - self.part)

    def scaled(self, factor: ArrayLike) -> Rate:
        """The same rate in samples (...) times as large."""
        return self._replace(counts=self.counts * np.asarray(factor)[..., None])


def lower_bound(rate: Rate, alpha: float) -> Any:
    """What the rate is at least: wrong with probability `alpha` at most. As `upper_bound`."""
    return 1 - upper_bound(rate.complement, alpha)


def upper_bound(rate: Rate, alpha: float) -> Any:
    """What the rate is at most: wrong with probability `alpha` at most.

    Single draws have the exact bound of the binomial distribution. Otherwise the bound is the least rate m that a bet
    against it excludes. A unit turns a capital of 1 into 1 + stake (m whole - part), which is never below 0, and on
    average is at most 1 if the rate is m or more. So the product over all units exceeds 1/alpha with probability alpha
    at most (Markov), whatever the distribution; also if units differ, since the product of their means is at most
    exp(stake * sum of means).

    The stake is fixed by the number of units, m and alpha, never by the outcomes: it is the best one for units whose
    draws all agree, at the rate that so many units can just tell from m. The bound is then never above Hoeffding's, and
    lower where draws of a unit differ. Without an event it is Clopper and Pearson's, 1 - alpha^(1/units).

    Args:
        rate: (...) rates with a whole above 0.
        alpha: between 0 and 1, e.g. 0.05.
    Returns: (...) in (0, 1].
    Source: Clopper & Pearson, Biometrika 26, 1934; Hoeffding, JASA 58, 1963, theorem 1 (the stake); Waudby-Smith &
        Ramdas, JRSS B 86, 2024 (betting).
    """
    if rate.is_single:
        events, n = (rate.counts * rate.part).sum(-1), (rate.counts * rate.whole).sum(-1)
        return clopper_pearson(events, n, confidence=1 - alpha, side="upper").high
    low, high = np.asarray(rate.value, np.float64), np.ones(np.shape(rate.value))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_excluded = log_capital(rate, middle, alpha) >= -np.log(alpha)
        low, high = np.where(is_excluded, low, middle), np.where(is_excluded, middle, high)
    return high[()]


def log_capital(rate: Rate, bound: ArrayLike, alpha: float) -> Array:
    """Logarithm of what betting against a rate of `bound` or more makes of a capital of 1; it grows with `bound`.

    It grows because for a unit as a whole the capital is (1 - x) (1 - p) / (1 - bound) + x p / bound, with x its own
    rate and p as in `_stake`, and both quotients grow with `bound`.
    """
    from scipy.special import xlog1py

    bound = np.minimum(np.asarray(bound, np.float64), _MOST)
    stake = _stake((rate.counts * rate.size**2).sum(-1), bound, alpha)
    gain = stake[..., None] * (bound[..., None] * rate.whole - rate.part)
    return np.asarray(xlog1py(rate.counts, np.maximum(gain, -1.0)).sum(-1))


def _stake(units: Array, bound: Array, alpha: float) -> Array:
    """The stake that earns most if a share p of the units is an event, where p is the largest share below `bound` with
    units * KL(p, bound) >= log(1 / alpha); the highest possible stake where there is none.

    p is found by Newton's method: KL is convex and falls, and the start lies below p because KL(p, m) is at least
    (m - p)^2 / 2m.
    """
    from scipy.special import rel_entr

    units, bound = np.broadcast_arrays(np.asarray(units, np.float64), bound)
    wanted = -np.log(alpha) / units
    share = np.maximum(bound - np.sqrt(2 * bound * wanted), 1e-12 * bound)
    for _ in range(_NEWTON):
        excess = rel_entr(share, bound) + rel_entr(1 - share, 1 - bound) - wanted
        slope = np.log(bound / share) + np.log1p(-share) - np.log1p(-bound)
        previous, share = share, np.clip(share + excess / slope, 1e-12 * bound, bound * (1 - 1e-12))
        if np.all(np.abs(share - previous) <= 1e-13 * share):
            break
    share = np.where(-np.log1p(-bound) <= wanted, 0.0, share)
    return np.asarray((bound - share) / (bound * (1 - bound)))
