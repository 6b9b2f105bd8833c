"""What a shift costs on the same images: MSCR with loss and recovery beside it, in one run or over several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import ShapeError
from testbed.metrics.accuracy import percent
from testbed.metrics.changes import net_change, ratio_difference, sign_bounds
from testbed.metrics.factors import Factors, bounded, proportion, ratio_residuals
from testbed.metrics.intervals import Array, Interval, tails
from testbed.records import MetricValue

NETTED = ("mscr", "loss", "recovery")
_UNDEFINED = {
    "mscr": "no image is right when clean",
    "loss": "no image is right when clean",
    "recovery": "no image is wrong when clean",
    "accuracy_change": "there are no images",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcomes:
    """Which images are right in each run, clean and under a shift.

    Args:
        clean: (..., runs, n) 0 or 1.
        shifted: (..., runs, n) in [0, 1], the same images under the shift, mean over draws.
        factors: what varies by chance.
    """

    clean: Array
    shifted: Array
    factors: Factors = field(default_factory=Factors)

    @classmethod
    def of_runs(cls, runs: Sequence[tuple[ArrayLike, ArrayLike]], factors: Factors) -> Self:
        """From one (clean, shifted) per run: (n,) and (draws, n) bool. The draws are counted here.

        Raises: ShapeError: clean and shifted are not of the same images, or runs have other numbers of images.
        """
        pairs = [_paired(clean, shifted) for clean, shifted in runs]
        if len({len(clean) for clean, _ in pairs}) > 1:
            raise ShapeError(
                f"The runs have {', '.join(str(len(clean)) for clean, _ in pairs)} images. Give as many in each."
            )
        num_draws = float(np.mean([len(shifted) for _, shifted in pairs]))
        return cls(
            clean=np.array([clean for clean, _ in pairs], np.float64),
            shifted=np.array([shifted.mean(axis=0) for _, shifted in pairs]),
            factors=factors.of(num_draws=num_draws),
        )

    @property
    def lost(self) -> Array:
        """(..., runs, n): right when clean and wrong under the shift."""
        return self.clean * (1 - self.shifted)

    @property
    def gained(self) -> Array:
        """(..., runs, n): wrong when clean and right under the shift."""
        return (1 - self.clean) * self.shifted

    def parts(self, name: str) -> tuple[Array, Array]:
        """The metric `name` is the sum of the first over the sum of the second; (..., runs, n) each."""
        return {
            "mscr": (self.shifted - self.clean, self.clean),
            "loss": (self.lost, self.clean),
            "recovery": (self.gained, 1 - self.clean),
            "accuracy_change": (self.shifted - self.clean, np.ones_like(self.clean)),
        }[name]


def mscr(clean: ArrayLike, shifted: ArrayLike, **options: Any) -> MetricValue:
    """Relative change of accuracy, 100 (A_eps - A_clean) / A_clean, in percent; below 0 for a loss, may be above.

    Images are the units, and the draws lie in them. The change nets losses against gains, so `loss` and `recovery`
    belong beside it.

    Args:
        clean: (n,) or (1, n) bool, whether each image is right when clean.
        shifted: (draws, n) bool, the same images under the shift; (n,) is one draw.
        options: clusters, confidence and side of the interval, see `testbed.metrics.factors.Factors`.
    Returns: n is the number of images; None where no image is right when clean.
    Source: Siedel et al. 2022, minimal separation corruption robustness.

    >>> mscr([True, True, False, False], [[True, False, False, False]]).value
    -50.0
    """
    return change("mscr", Outcomes.of_runs([(clean, shifted)], Factors(**options)))


def loss(clean: ArrayLike, shifted: ArrayLike, **options: Any) -> MetricValue:
    """Percent of images right when clean that are wrong under the shift, 100 - A_rel; mean over images and draws.

    Args: as `mscr`.
    Returns: n is the number of images right when clean, None where there is none; detail has `images_flipped`, how
        many of them are wrong in at least one draw.
    """
    return change("loss", Outcomes.of_runs([(clean, shifted)], Factors(**options)))


def recovery(clean: ArrayLike, shifted: ArrayLike, **options: Any) -> MetricValue:
    """Percent of images wrong when clean that are right under the shift; mean over images and draws.

    Args: as `mscr`.
    Returns: n is the number of images wrong when clean, None where there is none; detail has `images_flipped`, how
        many of them are right in at least one draw.
    """
    return change("recovery", Outcomes.of_runs([(clean, shifted)], Factors(**options)))


def compare(clean: ArrayLike, shifted: ArrayLike, **options: Any) -> dict[str, MetricValue]:
    """MSCR, loss and recovery by name. With A_rel = 100 - loss and q = recovery: A_eps = A_cl A_rel + (1 - A_cl) q.

    Args: as `mscr`.
    """
    outcomes = Outcomes.of_runs([(clean, shifted)], Factors(**options))
    return {name: change(name, outcomes) for name in NETTED}


def change(name: str, outcomes: Outcomes) -> MetricValue:
    """The metric `name` over all runs: a ratio of sums over runs, as published, not a mean of the runs' ratios.

    Args:
        name: 'mscr', 'loss', 'recovery' or 'accuracy_change'.
        outcomes: without leading dimensions.
    Returns: with several runs, detail['runs'] has the value of each, None where it is undefined in one.
    """
    part, whole = outcomes.parts(name)
    images = outcomes.factors.pool(np.ones_like(whole) if name == "mscr" else whole)
    n = int(np.count_nonzero(images))
    if not whole.any():
        return MetricValue(name=name, value=None, n=n, reason=_UNDEFINED[name])
    value, interval = change_interval(name, outcomes)
    detail: dict[str, Any] = {}
    if name in ("loss", "recovery"):
        detail["images_flipped"] = int(np.count_nonzero(outcomes.factors.pool(part)))
    if len(part) > 1:
        detail["runs"] = [100 * float(p / w) if w else None for p, w in zip(part.sum(-1), whole.sum(-1), strict=True)]
    return percent(name, float(value), interval, n=n, detail=detail)


def change_interval(name: str, outcomes: Outcomes) -> tuple[Array, Interval]:
    """The metric `name` as a fraction, (...), and its interval. Args: as `change`, with any leading dimensions."""
    part, whole = outcomes.parts(name)
    factors = outcomes.factors
    if name in ("loss", "recovery"):
        return proportion(part, whole, factors)
    value, options = np.asarray(part.sum((-2, -1)) / whole.sum((-2, -1))), factors.pooled_options(part)
    clean, shifted = factors.pool(outcomes.clean), factors.pool(outcomes.shifted)
    if name == "mscr":
        images = net_change(factors.pool(outcomes.lost), factors.pool(outcomes.gained), clean, **options)
    else:
        tested = factors.pool(whole)
        images = ratio_difference((shifted, clean), (tested, tested), **options)
    if factors.is_exact:
        images = _with_sign_bounds(images, outcomes, whole)
    interval = factors.over_runs(images, value, ratio_residuals(part, whole, value))
    return value, bounded(interval, -1, np.inf if name == "mscr" else 1)


def _with_sign_bounds(images: Interval, outcomes: Outcomes, whole: Array) -> Interval:
    """The interval of the pooled images, as wide as that of the signs of what changed."""
    factors = outcomes.factors
    gained, lost = factors.pool(outcomes.gained), factors.pool(outcomes.lost)
    below, above = tails(factors.confidence, factors.side)
    least, most = sign_bounds(gained, lost, clusters=factors.clusters, below=below, above=above)
    total = factors.pool(whole).sum(-1)
    low, high = np.minimum(images.low, least / total), np.maximum(images.high, most / total)
    return Interval(low, high, f"{images.method}, and signs of the changes")


def _paired(clean: ArrayLike, shifted: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Correctness (n,) when clean and (draws, n) under the shift, of the same images."""
    right, correct = np.atleast_2d(np.asarray(clean, bool)), np.atleast_2d(np.asarray(shifted, bool))
    is_paired = right.ndim == correct.ndim == 2 and len(right) == 1 and right.shape[1] == correct.shape[1]
    if not is_paired or not len(correct):
        raise ShapeError(
            f"Clean correctness has shape {np.shape(clean)}, shifted {np.shape(shifted)}. Give (n,) and (draws, n) of "
            "the same images."
        )
    return right[0], correct
