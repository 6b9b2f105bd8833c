"""Corruption errors: CE and mCE against a baseline, their relative forms, and the unnormalised mean under its own name.

CE_c = 100 sum_s E_sc / sum_s E_base_sc over the five severities s, mCE its mean over the 15 common corruptions c:
ratios of sums, then a mean of ratios. The relative forms put E_sc - E_clean in the place of E_sc, of the baseline as of
the model, so that five times the clean error is taken off. Errors that are not divided by a baseline's are no mCE, and
go under the name of what they are.
Source: Hendrycks & Dietterich, ICLR 2019, section 4; the relative form is to be read with the bracket.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.metrics.changes import OTHER
from testbed.metrics.comparison import change_interval
from testbed.metrics.corruption import COMMON, NUM_SEVERITIES, Cell, Grid, missing_words
from testbed.metrics.factors import proportion
from testbed.metrics.intervals import Interval
from testbed.records import MetricValue

NO_INTERVAL = "no interval: only the errors of whole settings are known"


@dataclass(frozen=True, kw_only=True)
class Errors:
    """The errors of a model of which no more is known, or of a baseline.

    Args:
        name: of the model.
        source: where the numbers are from, and by which protocol: a baseline belongs to its protocol.
        cells: errors in [0, 1] by corruption and severity.
        clean: error on the clean images; None where it is not known.
    """

    name: str
    source: str
    cells: Mapping[Cell, float]
    clean: float | None

    @classmethod
    def of(cls, grid: Grid, *, name: str, source: str) -> Errors:
        """Those of a model whose outcomes are known, over its runs."""
        return cls(name=name, source=source, cells={cell: grid.error(cell) for cell in grid.cells},
                   clean=1 - float(grid.clean.mean()))  # fmt: skip


Subject = Grid | Errors


def corruption_error(subject: Subject, baseline: Errors, corruption: str, *, is_relative: bool = False) -> MetricValue:
    """CE of one corruption, or relative CE, in percent of the baseline's. Args: as `mean_corruption_error`."""
    name = "relative_ce" if is_relative else "ce"
    return _normalised(name, subject, baseline, (corruption,), is_relative)


def mean_corruption_error(
    subject: Subject, baseline: Errors, *, corruptions: Sequence[str] = COMMON, is_relative: bool = False
) -> MetricValue:
    """mCE, or relative mCE, in percent of the baseline's.

    Args:
        subject: the model: its outcomes image by image, or its errors alone, which have no interval.
        baseline: taken as it is: the interval is that of the model's own errors.
        corruptions: that the mean is over.
        is_relative: beyond the clean errors.
    Returns: None where a severity is missing, or where the baseline does not err; the reason names it.

    >>> fog = {("fog", severity): 0.1 * severity for severity in range(1, 6)}
    >>> base = Errors(name="base", source="", cells={cell: 2 * error for cell, error in fog.items()}, clean=0.2)
    >>> mean_corruption_error(Errors(name="", source="", cells=fog, clean=0.1), base, corruptions=["fog"]).value
    50.0
    """
    name = "relative_mce" if is_relative else "mce"
    return _normalised(name, subject, baseline, corruptions, is_relative)


def unnormalised_mean_error(subject: Subject, *, corruptions: Sequence[str] = COMMON) -> MetricValue:
    """Mean error over corruptions and severities in percent, which some papers call mCE; named after their number.

    Args: as `mean_corruption_error`.
    """
    return _plain(f"unnormalised_mean_error_{len(corruptions)}", subject, corruptions, is_relative=False)


def mean_error_difference(subject: Subject, *, corruptions: Sequence[str] = COMMON) -> MetricValue:
    """Mean over corruptions and severities of the error less the clean error, in percentage points.

    It is `testbed.metrics.corruption.raw_rce` over all those cells. Args: as `mean_corruption_error`.
    """
    return _plain(f"mean_corruption_error_difference_{len(corruptions)}", subject, corruptions, is_relative=True)


def all_severities(corruptions: Iterable[str]) -> list[Cell]:
    """The cells of corruptions at severities 1 to 5."""
    return [(name, severity) for name in corruptions for severity in range(1, NUM_SEVERITIES + 1)]


def _plain(name: str, subject: Subject, corruptions: Sequence[str], *, is_relative: bool) -> MetricValue:
    cells = all_severities(corruptions)
    if reason := _lacking("", subject, cells, is_relative):
        return MetricValue(name=name, value=None, n=_n(subject), reason=reason)
    return _weighted(name, subject, dict.fromkeys(cells, 1 / len(cells)), is_relative, {})


def _normalised(
    name: str, subject: Subject, baseline: Errors, corruptions: Sequence[str], is_relative: bool
) -> MetricValue:
    cells = all_severities(corruptions)
    reason = _lacking("", subject, cells, is_relative)
    reason = reason or _lacking(f"of the baseline {baseline.name} ", baseline, cells, is_relative)
    sums = {} if reason else {one: _denominator(baseline, one, is_relative) for one in corruptions}
    if flawless := [one for one, total in sums.items() if total <= 0]:
        more = " more than when clean" if is_relative else ""
        reason = f"the baseline {baseline.name} does not err{more} under {', '.join(flawless)}"
    if reason:
        return MetricValue(name=name, value=None, n=_n(subject), reason=reason)
    weights = {cell: 1 / (len(corruptions) * sums[cell[0]]) for cell in cells}
    return _weighted(name, subject, weights, is_relative, {"baseline": baseline.name, "of_baseline": baseline.source})


def _denominator(baseline: Errors, corruption: str, is_relative: bool) -> float:
    clean = baseline.clean if is_relative and baseline.clean is not None else 0.0
    return math.fsum(baseline.cells[cell] - clean for cell in all_severities([corruption]))


def _lacking(whose: str, subject: Subject, cells: Iterable[Cell], is_relative: bool) -> str:
    if words := missing_words(subject.cells, cells):
        return f"{whose}{words} missing"
    is_unknown = is_relative and isinstance(subject, Errors) and subject.clean is None
    return f"{whose}the clean error is not known" if is_unknown else ""


def _weighted(
    name: str, subject: Subject, weights: Mapping[Cell, float], is_relative: bool, detail: Mapping[str, Any]
) -> MetricValue:
    """100 times the weighted sum of the errors, less the clean error in each where it is relative."""
    if isinstance(subject, Errors):
        clean = subject.clean if is_relative and subject.clean is not None else 0.0
        value = math.fsum(weight * (subject.cells[cell] - clean) for cell, weight in weights.items())
        return MetricValue(name=name, value=100 * value, n=0, reason=NO_INTERVAL, detail=detail)
    value, interval = _net(subject, weights) if is_relative else _gross(subject, weights)
    total = 100 * math.fsum(weights.values())
    low, high = (None if math.isinf(bound) else total * float(bound) for bound in (interval.low, interval.high))
    method = f"{interval.method}; baseline as it is" if detail else interval.method
    return MetricValue(name=name, value=total * value, n=subject.n, ci_low=low, ci_high=high, method=method,
                       detail=detail)  # fmt: skip


def _gross(grid: Grid, weights: Mapping[Cell, float]) -> tuple[float, Interval]:
    """The weighted mean error as a fraction."""
    outcomes = grid.weighted(weights)
    value, interval = proportion(1 - outcomes.shifted, outcomes.parts("accuracy_change")[1], outcomes.factors)
    return float(value), interval


def _net(grid: Grid, weights: Mapping[Cell, float]) -> tuple[float, Interval]:
    """The weighted mean of error less clean error, as a fraction."""
    outcomes = grid.weighted(weights, side=OTHER[grid.factors.side])
    value, interval = change_interval("accuracy_change", outcomes)
    return -float(value), interval._replace(low=-interval.high, high=-interval.low)


def _n(subject: Subject) -> int:
    return subject.n if isinstance(subject, Grid) else 0
