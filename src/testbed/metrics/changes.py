"""Confidence intervals of changes: of accuracy relative to clean accuracy, and between two ratios on the same images.

A change nets gains against losses. Each side gets the interval of a proportion, and their distances from the estimates
add in squares, which keeps what is known exactly about few flips and becomes the linearised variance of the ratio for
many. Coverage of 95 % intervals is 94 to 97 % in simulation (`tests/benchmarks/change_coverage.py`), and up to 100 %
with fewer than about six flipped images: no sound interval excludes either sign then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from testbed.errors import ShapeError
from testbed.metrics.intervals import (
    Array,
    Interval,
    Side,
    Units,
    clopper_pearson,
    sum_clusters,
    tails,
    weighted_proportion,
)

_ROUNDING = 1e-9  # of images: less than any change
OTHER: dict[Side, Side] = {"both": "both", "lower": "upper", "upper": "lower"}


def relative_change(
    clean: ArrayLike,
    shifted: ArrayLike,
    *,
    num_draws: float = 1,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    side: Side = "both",
) -> Interval:
    """Interval of (mean(shifted) - mean(clean)) / mean(clean) over the same images; a fraction, below 0 for a loss.

    Args:
        clean: (..., n) 0 or 1, at least one 1.
        shifted: (..., n) in [0, 1], each image's mean over its draws.
        num_draws, clusters, confidence, side: as `testbed.metrics.intervals.clustered_proportion`.
    Source: Zou & Donner, Statistics in Medicine 27, 2008 (recovering variances from limits).
    """
    clean, shifted = np.asarray(clean, np.float64), np.asarray(shifted, np.float64)
    _check_same(clean, shifted)
    return net_change(
        clean * (1 - shifted), (1 - clean) * shifted, clean,
        num_draws=num_draws, clusters=clusters, confidence=confidence, side=side,
    )  # fmt: skip


def net_change(
    lost: Array,
    gained: Array,
    right: Array,
    *,
    num_draws: float = 1,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    side: Side = "both",
    is_exact: bool = False,
) -> Interval:
    """Interval of (sum(gained) - sum(lost)) / sum(right), a fraction of at least -1.

    Args:
        lost: (..., n) how far each image was right when clean and wrong under the shift, from 0 to `right`.
        gained: (..., n) how far it was wrong when clean and right under the shift.
        right: (..., n) how far it was right when clean; between 0 and 1 where several runs are averaged.
        num_draws, clusters, confidence, side: as `relative_change`.
        is_exact: as `testbed.metrics.intervals.weighted_proportion`.
    Source: as `relative_change`.
    """
    total = right.sum(-1)
    loss, gain = lost.sum(-1) / total, gained.sum(-1) / total
    losses = weighted_proportion(
        lost, right, side=OTHER[side],
        num_draws=num_draws, clusters=clusters, confidence=confidence, is_exact=is_exact,
    )  # fmt: skip
    # of all that is right now or was: given what was right when clean, losses and gains are of different images
    gains = weighted_proportion(
        gained, right + gained, side=side,
        num_draws=num_draws, clusters=clusters, confidence=confidence, is_exact=is_exact,
    )  # fmt: skip
    with np.errstate(divide="ignore"):
        gain_low, gain_high = (np.divide(share, 1 - share) for share in (gains.low, gains.high))
    below, above = tails(confidence, side)
    low = gain - loss - np.hypot(losses.high - loss, gain - gain_low) if below else np.full_like(gain, -1.0)
    high = gain - loss + np.hypot(loss - losses.low, gain_high - gain) if above else np.full_like(gain, np.inf)
    return Interval(np.maximum(low, -1.0)[()], high[()], "limits of loss and gain added in squares")


def ratio_difference(
    part: tuple[ArrayLike, ArrayLike],
    whole: tuple[ArrayLike, ArrayLike],
    *,
    num_draws: float = 1,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    side: Side = "both",
    is_exact: bool = False,
) -> Interval:
    """Interval of sum(part[0]) / sum(whole[0]) - sum(part[1]) / sum(whole[1]), both over the same images.

    Args:
        part, whole, num_draws, clusters: as `RatioDifference.of`.
        confidence, side: as `relative_change`; a side without a bound is infinite.
        is_exact: as `RatioDifference.interval`.
    """
    data = RatioDifference.of(part, whole, num_draws=num_draws, clusters=clusters)
    return data.interval(*tails(confidence, side), is_exact=is_exact)


def sign_bounds(
    up: Array, down: Array, *, clusters: ArrayLike | None, below: float, above: float
) -> tuple[Array, Array]:
    """Bounds of sum(up) - sum(down) from how many images changed for the better, whose tails are exact far out.

    Limits that are added in squares are those of normal distributions, which exclude a net change of 0 too often where
    few images change and the level is corrected. Given how many change, each is as likely to go up as down if the net
    is 0: a sign test, of as many images of the same change as would vary as much.

    Args:
        up, down: (..., n) how far each image changes.
        clusters: as `relative_change`.
        below, above: what is left out on either side, see `testbed.metrics.intervals.tails`.
    """
    net = sum_clusters(up - down, clusters)
    total, squares = np.abs(net).sum(-1), np.square(net).sum(-1)
    is_any = squares > 0
    count = np.where(is_any, np.square(total) / np.where(is_any, squares, 1), 1)
    ups = count * np.where(is_any, np.maximum(net, 0).sum(-1) / np.where(is_any, total, 1), 1 / 2)
    low, high = np.full_like(total, -np.inf), np.full_like(total, np.inf)
    if below:
        low = (2 * clopper_pearson(ups, count, confidence=1 - below, side="lower").low - 1) * total
    if above:
        high = (2 * clopper_pearson(ups, count, confidence=1 - above, side="upper").high - 1) * total
    return low, high


@dataclass(frozen=True, kw_only=True, eq=False)
class RatioDifference:
    """The difference of two ratios over the same images, from which its interval follows at any level.

    Images that raise the difference and images that lower it get an interval each, as gains and losses do in
    `net_change`. It is stretched by the linearised standard deviation of the difference over what the two sides would
    have alone, with one more event on either: that brings in the wholes, and images on both sides, where many images
    differ, and nothing where few do. The event is as large as those seen where that is the more, and else an image that
    flips as a whole, which nobody may have seen yet. Of what most images do, what the others do is counted, 1 less
    than the ratio: the differences are the same, and the few that matter are not lost among those that differ anyway.

    Args:
        unit: (...) what one image that is right or wrong changes.
        rises, falls: (...) what raises the difference and what lowers it, in these units.
        size: (...) the most that they can be.
        ups, downs: the images behind them.
        stretch: (...) of the limits.
    """

    unit: Array
    rises: Array
    falls: Array
    size: Array
    ups: Units
    downs: Units
    stretch: Array

    @classmethod
    def of(
        cls,
        part: tuple[ArrayLike, ArrayLike],
        whole: tuple[ArrayLike, ArrayLike],
        *,
        num_draws: float = 1,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Of two models.

        Args:
            part: twice (..., n) in [-1, 1], each image's mean over its draws.
            whole: twice (..., n) in [0, 1], not all 0.
            num_draws, clusters: as `relative_change`.
        """
        parts, wholes = ([np.asarray(one, np.float64) for one in pair] for pair in (part, whole))
        _check_same(*parts, *wholes)
        is_usual = sum(part.sum(-1) for part in parts) > sum(whole.sum(-1) for whole in wholes) / 2
        parts = [part - np.where(is_usual, 1, 0)[..., None] * whole for part, whole in zip(parts, wholes, strict=True)]
        unit, changes, residuals = linearised(parts, wholes)
        up, down, size = np.maximum(changes, 0), np.maximum(-changes, 0), np.maximum(1, np.abs(changes))
        ups, downs = (Units.of(side, size, num_draws=num_draws, clusters=clusters) for side in (up, down))
        return cls(unit=unit, rises=up.sum(-1), falls=down.sum(-1), size=size.sum(-1), ups=ups, downs=downs,
                   stretch=_stretch(*(sum_clusters(one, clusters) for one in (up, down, residuals, size))))  # fmt: skip

    def interval(self, below: float, above: float, *, is_exact: bool = False) -> Interval:
        """Args:
        below, above: what is left out on either side, see `testbed.metrics.intervals.tails`; infinite where nothing is.
        is_exact: with tails that stay exact far out, see `Units.exact_interval`.
        """
        bounds = Units.exact_interval if is_exact else Units.interval
        up_low, up_high, _ = bounds(self.ups, below, above)
        down_low, down_high, _ = bounds(self.downs, above, below)
        value = self.rises - self.falls
        down = self.stretch * np.hypot(self.rises - up_low * self.size, down_high * self.size - self.falls)
        up = self.stretch * np.hypot(up_high * self.size - self.rises, self.falls - down_low * self.size)
        low = (value - down) * self.unit if below else np.full_like(value, -np.inf)
        high = (value + up) * self.unit if above else np.full_like(value, np.inf)
        return Interval(low[()], high[()], f"{'exact ' if is_exact else ''}limits of rises and falls added in squares")


def linearised(parts: list[Array], wholes: list[Array]) -> tuple[Array, Array, Array]:
    """The difference of two ratios as a sum over images.

    Returns:
        unit: (...) what one image that is right or wrong changes.
        changes: (..., n) each image's part of the difference, in these units.
        residuals: (..., n) the same less what its wholes take away; their variance is that of the difference.
    """
    totals = [whole.sum(-1)[..., None] for whole in wholes]
    ratios = [part.sum(-1)[..., None] / total for part, total in zip(parts, totals, strict=True)]
    unit = 1 / np.minimum(*totals)
    changes = (parts[0] / totals[0] - parts[1] / totals[1]) / unit
    residuals = changes - (ratios[0] * wholes[0] / totals[0] - ratios[1] * wholes[1] / totals[1]) / unit
    return unit[..., 0], changes, residuals


def _stretch(up: Array, down: Array, residuals: Array, size: Array) -> Array:
    """By what the limits of rises and falls are stretched. Args: (..., units) of images, or of clusters of them."""
    alone, together = _squares(up) + _squares(down), _squares(residuals)
    one_more = np.square([_event(up + down), size.mean(-1)])
    return np.asarray(np.sqrt((together + one_more) / (alone + one_more)).max(0))


def _event(changes: Array) -> Array:
    """How much a change weighs that is as large as those seen; 1 where none is."""
    total = changes.sum(-1)
    seen = total > _ROUNDING
    return np.where(seen, np.square(changes).sum(-1) / np.where(seen, total, 1), 1.0)


def _squares(values: Array) -> Array:
    """Sum of squared departures from the mean."""
    return np.asarray(np.square(values - values.mean(-1, keepdims=True)).sum(-1))


def _check_same(*values: Array) -> None:
    counts = [one.shape[-1] for one in values]
    if len(set(counts)) > 1:
        raise ShapeError(f"There are {' and '.join(map(str, counts))} images. They must be the same ones.")
