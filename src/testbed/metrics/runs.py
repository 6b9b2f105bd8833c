"""MSCR, loss and recovery over runs that each fit a model: runs crossed with the images that all of them see."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from testbed.metrics.comparison import compare
from testbed.metrics.intervals import Side, tails
from testbed.records import MetricValue

Correctness = tuple[NDArray[np.bool_], NDArray[np.bool_]]  # (n,) when clean, (draws, n) under the shift


def over_runs(runs: Sequence[Correctness], *, confidence: float = 0.95, side: Side = "both") -> dict[str, MetricValue]:
    """MSCR, loss and recovery over two or more runs; ratios of the sums over runs, as published, not means of ratios.

    The runs share their images, so the images' part of the uncertainty does not shrink with the number of runs, while
    the runs' own part (Student's t over the runs) does; the half widths add as squares.

    Args:
        runs: per run the correctness (n,) when clean and (draws, n) under the shift, of the same images.
        confidence, side: as in `testbed.metrics.comparison`.
    Source: ratio of means as in Siedel et al. 2022.
    """
    singles = [compare(clean, shifted, confidence=confidence, side=side) for clean, shifted in runs]
    return {name: _pooled(name, runs, [single[name] for single in singles], confidence, side) for name in singles[0]}


def top1_over_runs(singles: Sequence[MetricValue], *, confidence: float = 0.95, side: Side = "both") -> MetricValue:
    """The mean of an accuracy over two or more runs on the same images, from its values in the single runs.

    Args: confidence, side: those that the single values were made with.
    """
    part = np.array([0.0 if single.value is None else single.value / 100 for single in singles])
    return _combined(part, np.ones(len(part)), singles, confidence, side)


def _pooled(
    name: str, runs: Sequence[Correctness], values: Sequence[MetricValue], confidence: float, side: Side
) -> MetricValue:
    part, whole = np.array([_fraction(name, clean, shifted) for clean, shifted in runs]).T
    return _combined(part, whole, values, confidence, side) if whole.sum() else values[0]


def _combined(
    part: NDArray[np.float64], whole: NDArray[np.float64], values: Sequence[MetricValue], confidence: float, side: Side
) -> MetricValue:
    """The ratio of sums over runs, with the single runs' interval and the spread of the runs together."""
    value, spread = 100 * float(part.sum() / whole.sum()), _run_spread(part, whole, confidence, side)
    known = [single for single in values if single.value is not None]
    below, above = (np.mean(widths) for widths in zip(*map(_half_widths, known), strict=True))
    name = known[0].name
    lowest, highest = (-100.0, np.inf) if name == "mscr" else (0.0, 100.0)
    return MetricValue(
        name=name,
        value=value,
        n=known[0].n,
        ci_low=None if np.isnan(below) else max(lowest, value - float(np.hypot(below, spread))),
        ci_high=None if np.isnan(above) else min(highest, value + float(np.hypot(above, spread))),
        method=f"{known[0].method} + t over {len(part)} runs",
        detail={"runs": [single.value for single in values]},
    )


def _half_widths(single: MetricValue) -> tuple[float, float]:
    """From the value down and up to the bounds; NaN on a side that has none."""
    value = np.nan if single.value is None else single.value
    low, high = (np.nan if bound is None else bound for bound in (single.ci_low, single.ci_high))
    return value - low, high - value


def _fraction(name: str, clean: NDArray[np.bool_], shifted: NDArray[np.bool_]) -> tuple[float, float]:
    """Numerator and denominator of a metric in one run."""
    mean = shifted.mean(axis=0)
    if name == "mscr":
        return float((mean - clean).sum()), float(clean.sum())
    if name == "loss":
        return float((1 - mean)[clean].sum()), float(clean.sum())
    return float(mean[~clean].sum()), float((~clean).sum())


def _run_spread(part: NDArray[np.float64], whole: NDArray[np.float64], confidence: float, side: Side) -> float:
    """Half width, in percent, of Student's interval of the linearised ratio with the runs as units."""
    from scipy.stats import t

    residuals = (part - whole * part.sum() / whole.sum()) / whole.mean()
    below, above = tails(confidence, side)
    quantile = t.ppf(1 - max(below, above), len(part) - 1)
    return 100 * float(quantile * residuals.std(ddof=1) / np.sqrt(len(part)))
