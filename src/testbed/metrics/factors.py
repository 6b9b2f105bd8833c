"""The random factors behind a number: images or clusters of them, draws within images, and runs that fit a model each.

Runs are crossed with the images where all of them see the same ones, and re-splits of one data set where each sees
another part of it. Arrays of single runs are (..., runs, n); leading dimensions are for simulations. Coverage of 95 %
intervals over runs is 93 to 98 % in simulation (`tests/benchmarks/change_coverage.py`), and more with rare flips.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from testbed.errors import ShapeError
from testbed.metrics.intervals import Array, Interval, Side, sum_clusters, tails, weighted_proportion
from testbed.records import IntArray


class RunSpread(NamedTuple):
    """What runs vary beyond their images.

    Args:
        error: (...) standard error of their mean.
        runs: how many there are.
        kind: of runs, in words.
    """

    error: Array
    runs: int
    kind: str

    def widened(
        self, interval: Interval, value: Array, below: float, above: float, *, is_share: bool = False
    ) -> Interval:
        """The interval of the images, widened in squares with Student's t. Args: as `Factors.over_runs`."""
        if self.runs == 1:
            return interval
        low, high = interval.low, interval.high
        if below:
            low = value - np.hypot(value - low, self._reach(value, below, -1, is_share=is_share))
        if above:
            high = value + np.hypot(high - value, self._reach(value, above, +1, is_share=is_share))
        return Interval(low, high, f"{interval.method} + t over {self.runs} {self.kind}")

    def _reach(self, value: Array, tail: float, sign: int, *, is_share: bool) -> Array:
        """How far Student's t reaches from the value; of a share on the scale of log odds if that is further.

        Rare errors of runs that differ much are skewed: most runs have few and some have many.
        """
        from scipy.special import expit, logit, stdtrit

        reach = np.abs(stdtrit(self.runs - 1, tail)) * self.error
        if not is_share:
            return np.asarray(reach)
        inside = (value > 0) & (value < 1)
        share = np.where(inside, value, 0.5)
        far = expit(logit(share) + sign * reach / (share * (1 - share)))
        return np.asarray(np.where(inside, np.maximum(reach, np.abs(far - share)), reach))


@dataclass(frozen=True, kw_only=True, eq=False)
class Factors:
    """What varies by chance, and how sure the interval is to be.

    Args:
        num_draws: draws of the noise behind each value of a single run.
        samples: (..., runs, n) which of the `num_samples` images each one is; None where all runs see the same.
        num_samples: distinct images over all runs; needed beside `samples`.
        resplit: images tested over images fitted on, where every run splits the data anew; else None.
        clusters: (num_samples,) labels of images that belong together: patients, scenes, videos.
        confidence, side: of the interval, see `testbed.metrics.intervals`.
        is_exact: whether its tails stay exact far out.
    """

    num_draws: float = 1
    samples: IntArray | None = None
    num_samples: int = 0
    resplit: float | None = None
    clusters: ArrayLike | None = None
    confidence: float = 0.95
    side: Side = "both"
    is_exact: bool = False

    def of(self, **changes: Any) -> Self:
        """The same factors with other `num_draws`, `confidence` or `side`."""
        return replace(self, **changes)

    def for_all(self, count: int) -> Self:
        """The same factors for `count` intervals that hold together (Bonferroni): far in the tail, so with exact ones.

        A single interval stays as it is.
        """
        return self if count <= 1 else self.of(confidence=1 - (1 - self.confidence) / count, is_exact=True)

    def pool(self, values: ArrayLike) -> Array:
        """(..., num_samples): values (..., runs, n) summed by image, over the mean number of runs an image is in."""
        values = np.asarray(values, np.float64)
        if self.samples is None:
            return np.asarray(values.mean(-2))
        if self.samples.shape != values.shape:
            raise ShapeError(f"There are values of shape {values.shape} but samples of shape {self.samples.shape}.")
        lead, rows = values.shape[:-2], int(np.prod(values.shape[:-2]))
        places = self.samples.reshape(rows, -1) + self.num_samples * np.arange(rows)[:, None]
        sums = np.bincount(places.ravel(), values.ravel(), minlength=rows * self.num_samples)
        return sums.reshape(*lead, self.num_samples) / self.times(values)

    def times(self, values: Array) -> float:
        """In how many runs an image is on average."""
        runs, n = values.shape[-2:]
        return float(runs if self.samples is None else runs * n / self.num_samples)

    def pooled_options(self, values: Array) -> dict[str, Any]:
        """What the functions of `intervals` and `changes` are told about pooled values."""
        return {"num_draws": self.num_draws * self.times(values), "clusters": self.clusters,
                "confidence": self.confidence, "side": self.side, "is_exact": self.is_exact}  # fmt: skip

    def over_runs(self, interval: Interval, value: Array, residuals: Array, *, is_share: bool = False) -> Interval:
        """The interval of the pooled images, widened by what the runs vary beyond their images.

        The variance of the mean over runs is that of the runs over their number. Over re-splits, which have images in
        common, it is Nadeau and Bengio's: that of the runs times 1 / runs + images tested / images fitted on. What
        images alone put into it is taken off, and the rest is added in squares with Student's t, so that the images'
        interval keeps what it knows about few flips.

        Args:
            interval: of the pooled images.
            value: (...) the estimate.
            residuals: (..., runs, n) each image's part of the departure of its run from the estimate.
            is_share: whether the estimate is a share, between 0 and 1.
        Source: Nadeau & Bengio, Machine Learning 52, 2003; two-way layout with one run and image per cell.
        """
        return self.run_spread(residuals).widened(
            interval, value, *tails(self.confidence, self.side), is_share=is_share
        )

    def run_spread(self, residuals: Array) -> RunSpread:
        """What the runs vary beyond their images, as `over_runs` adds it. Args: residuals: as there."""
        runs = residuals.shape[-2]
        kind = "runs" if self.resplit is None else "re-splits (Nadeau-Bengio)"
        if runs == 1:
            return RunSpread(np.zeros(residuals.shape[:-2]), runs, kind)
        variance = residuals.sum(-1).var(-1, ddof=1) * (1 / runs + (self.resplit or 0.0))
        return RunSpread(np.sqrt(np.maximum(0, variance - self._variance_of_images(residuals))), runs, kind)

    def _variance_of_images(self, residuals: Array) -> Array:
        """What images put into the variance of the runs' mean; less what is common to runs that see the same images."""
        runs = residuals.shape[-2]
        if self.samples is None:
            return _own_share(runs) * _within_runs(sum_clusters(residuals, self.clusters))
        share = self.times(residuals) / runs
        return np.asarray(np.square(share * sum_clusters(self.pool(residuals), self.clusters)).sum(-1))


def proportion(part: ArrayLike, whole: ArrayLike, factors: Factors) -> tuple[Array, Interval]:
    """sum(part) / sum(whole) over runs and images, and its interval.

    Args:
        part: (..., runs, n) from 0 to `whole`.
        whole: (..., runs, n) not all 0.
    """
    part, whole = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    value = part.sum((-2, -1)) / whole.sum((-2, -1))
    interval = weighted_proportion(factors.pool(part), factors.pool(whole), **factors.pooled_options(part))
    widened = factors.over_runs(interval, value, ratio_residuals(part, whole, value), is_share=True)
    return value, bounded(widened, 0, 1)


def ratio_residuals(part: Array, whole: Array, value: Array) -> Array:
    """(..., runs, n): what each image adds to its run's departure from the ratio of the sums, linearised."""
    mean = whole.sum(-1).mean(-1)
    return np.asarray((part - value[..., None, None] * whole) / mean[..., None, None])


def bounded(interval: Interval, lowest: float, highest: float) -> Interval:
    """The interval where the number can be."""
    return interval._replace(low=np.maximum(interval.low, lowest), high=np.minimum(interval.high, highest))


def _own_share(runs: int) -> float:
    """How much of the variance within crossed runs is taken off.

    All of it would be right on average, but the spread of few runs is often small by chance: then 92 % are covered, and
    with none of it taken off 99 %. Of two runs nothing is, which covers 96 to 97 %, and half of three, which covers 94
    to 98 %.
    """
    return {2: 0.0, 3: 1 / 2}.get(runs, 3 / 4)


def _within_runs(residuals: Array) -> Array:
    """Variance of the mean over runs that comes from images varying between runs, beyond what is common to a run."""
    runs, n = residuals.shape[-2:]
    own = residuals - residuals.mean(-2, keepdims=True) - residuals.mean(-1, keepdims=True)
    own += residuals.mean((-2, -1), keepdims=True)
    degrees = (runs - 1) * max(n - 1, 1)
    return np.asarray(np.square(own).sum((-2, -1)) / degrees * n / runs)
