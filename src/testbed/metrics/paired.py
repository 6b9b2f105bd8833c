"""Two models on the same images and the same noise: by how much their MSCR, loss or accuracy differs.

The p-value belongs to the interval beside it: it is the smallest level at which that excludes 0, so the two never
disagree, and it supposes no more than the interval does. That the models change places image by image without anybody
noticing is more than that their losses are equal, and is not tested. How often models of one loss are told apart is
simulated in `tests/benchmarks/equal_losses.py`: in at most 5.5 % of tables, of one row or of 20.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from testbed.errors import ShapeError
from testbed.metrics.accuracy import percent
from testbed.metrics.changes import RatioDifference, linearised
from testbed.metrics.comparison import Outcomes
from testbed.metrics.factors import Factors, RunSpread
from testbed.metrics.intervals import Array, Interval, Side, sum_clusters, tails
from testbed.metrics.significance import Alternative, mcnemar_p
from testbed.records import MetricValue

Ratio = tuple[Array, Array]  # part and whole, (..., runs, n) each: the number is the ratio of their sums
ALTERNATIVES: dict[Side, Alternative] = {"both": "two-sided", "lower": "greater", "upper": "less"}
INVERSION = "inversion of the interval"
_LEAST, _MOST = 1e-300, 0.499  # tails that are searched: what numbers hold, and where no interval is left


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A number of two models and how it differs.

    Args:
        difference: first less second, in percentage points, with its interval; None where either is undefined.
        values: of the two models, in percent.
        p_value: of the hypothesis that they do not differ: the smallest level at which the interval excludes 0, and
            of McNemar's test the larger of both; None where a number is undefined.
        test: its name.
        num_differing: images (or clusters) on which the two models do not do the same; None where that is not known.
    """

    difference: MetricValue
    values: tuple[float | None, float | None]
    p_value: float | None
    test: str
    num_differing: int | None


class PairedDifference(NamedTuple):
    """The difference of two models' ratios over runs and images, from which interval and p-value follow at any level.

    Args:
        value: (...) first less second, as a fraction.
        images: the difference over the pooled images.
        spread: what runs vary beyond them.
    """

    value: Array
    images: RatioDifference
    spread: RunSpread

    @classmethod
    def of(cls, first: Ratio, second: Ratio, factors: Factors) -> Self:
        """Args: (..., runs, n) each, as `Outcomes.parts`; a single run stands beside each of several."""
        parts, wholes = (np.broadcast_arrays(*pair) for pair in zip(first, second, strict=True))
        pooled = [[factors.pool(one) for one in pair] for pair in (parts, wholes)]
        images = RatioDifference.of(
            (pooled[0][0], pooled[0][1]), (pooled[1][0], pooled[1][1]),
            num_draws=factors.num_draws * factors.times(parts[0]), clusters=factors.clusters,
        )  # fmt: skip
        return cls(_value(first) - _value(second), images, factors.run_spread(_residuals(parts, wholes)))

    def interval(self, below: float, above: float) -> Interval:
        """With tails that are exact far out. Args: what is left out on either side."""
        return self.spread.widened(self.images.interval(below, above, is_exact=True), self.value, below, above)

    def p_value(self, *, confidence: float = 0.95, side: Side = "both") -> float:
        """The smallest level at which the interval excludes 0, of a single difference; 1 where none does.

        Args:
            confidence: of the interval that is shown: the p-value is below 1 - confidence if that excludes 0, and not
                otherwise, also where intervals of other levels are not quite nested.
            side: of the interval; one bound asks whether the difference lies on its side of 0.
        """
        from scipy.optimize import brentq

        is_above, share = (self.value > 0 if side == "both" else side == "lower"), 2 if side == "both" else 1

        def margin(log_tail: float) -> float:
            """By how much 0 is excluded."""
            tail = float(np.exp(log_tail))
            low, high, _ = self.interval(tail, 0.0) if is_above else self.interval(0.0, tail)
            return float(low if is_above else -high)

        least, shown, most = np.log([_LEAST, max(tails(confidence, side)), _MOST])
        if margin(shown) > 0:
            if margin(least) > 0:
                return share * _LEAST
            return share * float(np.exp(brentq(margin, least, shown)))
        if shown >= most or margin(most) <= 0:
            return 1.0
        return share * float(np.exp(brentq(margin, shown, most)))


def contrast_interval(first: Ratio, second: Ratio, factors: Factors) -> tuple[Array, Interval]:
    """The difference of two ratios, as a fraction, and its interval. Args: as `PairedDifference.of`."""
    found = PairedDifference.of(first, second, factors)
    return found.value, found.interval(*tails(factors.confidence, factors.side))


def contrast(name: str, first: Outcomes, second: Outcomes, *, key: int = 0) -> Contrast:
    """How two models differ in MSCR or in loss on the same images under the same draws of the noise.

    Args:
        name: 'mscr' or 'loss'.
        first, second: with the same runs, images and factors.
        key: has no effect, as nothing is drawn at random; scripts that were written before give one.
    Raises: ShapeError: the two are not of the same images.
    """
    return _contrast(name, first.parts(name), second.parts(name), first.factors)


def accuracy_contrast(first: Array, second: Array, factors: Factors, *, key: int = 0) -> Contrast:
    """How two models differ in accuracy; with one answer per image by McNemar's test.

    Where McNemar's test does not reject, the interval reaches to 0.

    Args:
        first, second: (runs, n) in [0, 1], whether each image is right, mean over draws.
        factors: what varies by chance, for both.
        key: as `contrast`.
    """
    found = _contrast("accuracy", (first, np.ones_like(first)), (second, np.ones_like(second)), factors)
    is_single = len(first) == 1 and factors.num_draws == 1 and factors.clusters is None
    if not is_single or found.p_value is None:
        return found
    p_value = mcnemar_p(first[0] > 0, second[0] > 0, alternative=ALTERNATIVES[factors.side])
    difference = replace(found.difference, method=f"{found.difference.method}, with 0 unless McNemar's test rejects it")
    if p_value >= 1 - factors.confidence:
        difference = _with_zero(difference)
    return replace(found, p_value=max(p_value, found.p_value), test="McNemar, exact", difference=difference)


def _with_zero(difference: MetricValue) -> MetricValue:
    low, high = difference.ci_low, difference.ci_high
    return replace(
        difference, ci_low=None if low is None else min(low, 0.0), ci_high=None if high is None else max(high, 0.0)
    )


def _contrast(name: str, first: Ratio, second: Ratio, factors: Factors) -> Contrast:
    if first[0].shape != second[0].shape:
        raise ShapeError(
            f"The models have outcomes of shape {first[0].shape} and {second[0].shape}. Give the same images."
        )
    n = int(np.count_nonzero(factors.pool(np.ones_like(first[0]))))
    values = (_percent(first), _percent(second))
    if None in values:
        nothing = MetricValue(name=name, value=None, n=n, reason="a model is right on no image when clean")
        return Contrast(difference=nothing, values=values, p_value=None, test="none", num_differing=0)
    found = PairedDifference.of(first, second, factors)
    interval = found.interval(*tails(factors.confidence, factors.side))
    units = [[sum_clusters(factors.pool(one), factors.clusters) for one in pair] for pair in (first, second)]
    differing = np.any([np.abs(one - other) > 1e-12 for one, other in zip(*units, strict=True)], axis=0)
    return Contrast(
        difference=percent(name, float(found.value), interval, n=n),
        values=values,
        p_value=found.p_value(confidence=factors.confidence, side=factors.side),
        test=INVERSION,
        num_differing=int(np.count_nonzero(differing)),
    )


def _residuals(parts: Sequence[Array], wholes: Sequence[Array]) -> Array:
    """(..., runs, n): what each image adds to its run's departure from the difference; a single run has none."""
    shape = parts[0].shape
    if shape[-2] == 1:
        return np.zeros(shape)
    flat = [[one.reshape(*one.shape[:-2], -1) for one in pair] for pair in (parts, wholes)]
    unit, _, residuals = linearised(*flat)
    return np.asarray(residuals.reshape(shape) * unit[..., None, None] * shape[-2])


def _value(ratio: Ratio) -> Array:
    part, whole = ratio
    return np.asarray(part.sum((-2, -1)) / whole.sum((-2, -1)))


def _percent(ratio: Ratio) -> float | None:
    return 100 * float(_value(ratio)) if ratio[1].any() else None
