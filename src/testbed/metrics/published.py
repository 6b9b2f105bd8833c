"""MSCR from accuracies of whole runs, as published: where only these are known, or to be compared with a paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import ShapeError
from testbed.metrics.intervals import Side, tails
from testbed.records import MetricValue

PUBLISHED_Z = 1.96  # of the paper's intervals, whatever the number of runs


def mscr_of_means(clean: ArrayLike, shifted: ArrayLike) -> NDArray[np.float64]:
    """MSCR in percent from accuracies that are means over runs: 100 (shifted - clean) / clean; NaN where clean is 0.

    Args:
        clean, shifted: accuracies of the same unit and shape, such as the two rows of a published table.
    Source: Siedel et al. 2022, the MSCR rows of their tables.

    >>> mscr_of_means([91.681, 86.051], [59.261, 88.194]).round(3).tolist()
    [-35.362, 2.49]
    """
    before, after = np.asarray(clean, np.float64), np.asarray(shifted, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(before > 0, 100 * (after - before) / before, np.nan))


def mscr_over_runs(
    clean: ArrayLike,
    shifted: ArrayLike,
    *,
    resplit: float | None = None,
    confidence: float = 0.95,
    side: Side = "both",
) -> dict[str, MetricValue]:
    """MSCR over runs of which only the accuracies are known, with our interval and with the two that were published.

    Args:
        clean, shifted: (runs,) accuracies in percent, of the same runs in the same order.
        resplit: images tested over images fitted on where every run splits the data anew; its interval is corrected for
            the images that the runs have in common (Nadeau & Bengio 2003). None for runs that are independent.
        confidence, side: of our interval; the published ones are 95 % and two-sided.
    Returns: by name, n is the number of runs:
        mscr: ratio of the means; Student's t interval of the linearised ratio.
        mscr_published_interval: the same value +- 1.96 sd / sqrt(runs) of the runs' differences in percentage points,
            not divided by the clean accuracy; sd without Bessel's correction.
        mscr_published_interval_of_ratios: the same of the runs' own ratios.
        None where no run is right on any image; no interval of ours from one run, or from runs that are all equal.
    Source: Siedel et al. 2022, their sheets for 2D data (differences) and CIFAR-10 (ratios).
    """
    before, after = np.asarray(clean, np.float64), np.asarray(shifted, np.float64)
    if before.ndim != 1 or before.shape != after.shape or not len(before):
        raise ShapeError(f"Accuracies of runs have shapes {before.shape} and {after.shape}. Give (runs,) twice.")
    if not before.any():
        reason = "no image is right when clean"
        return {name: MetricValue(name=name, value=None, n=len(before), reason=reason) for name in _NAMES}
    value = float(mscr_of_means(before.mean(), after.mean()))
    published = {
        "mscr_published_interval": _as_published(value, after - before, "differences"),
        "mscr_published_interval_of_ratios": _as_published(value, mscr_of_means(before, after), "ratios"),
    }
    found = {"mscr": _ours(value, before, after, resplit, confidence, side)}
    found |= {name: MetricValue(name=name, value=value, n=len(before), **rest) for name, rest in published.items()}
    return found


_NAMES = ("mscr", "mscr_published_interval", "mscr_published_interval_of_ratios")


def _ours(
    value: float,
    clean: NDArray[np.float64],
    shifted: NDArray[np.float64],
    resplit: float | None,
    confidence: float,
    side: Side,
) -> MetricValue:
    from scipy.special import stdtrit

    runs, below_above = len(clean), tails(confidence, side)
    residuals = 100 * (shifted - clean - clean * value / 100) / clean.mean()
    spread = float(residuals.std(ddof=1)) if runs > 1 else 0.0
    if not spread:
        reason = "one run has no spread" if runs == 1 else "the runs are all equal"
        return MetricValue(name="mscr", value=value, n=runs, reason=f"no interval: {reason}")
    error = spread * np.sqrt(1 / runs + (resplit or 0.0))
    low, high = (float(-stdtrit(runs - 1, tail) * error) if tail else None for tail in below_above)
    kind = "runs" if resplit is None else "re-splits (Nadeau-Bengio)"
    return MetricValue(
        name="mscr",
        value=value,
        n=runs,
        ci_low=None if low is None else max(-100.0, value - low),
        ci_high=None if high is None else value + high,
        method=f"linearised ratio, t over {runs} {kind}",
    )


def _as_published(value: float, departures: NDArray[np.float64], what: str) -> dict[str, Any]:
    """The interval as the paper has it; none where a run's own ratio is undefined."""
    half_width = PUBLISHED_Z * float(np.std(departures)) / np.sqrt(len(departures))
    if not np.isfinite(half_width):
        return {"reason": "no interval: a run is right on no image when clean"}
    method = f"published: 1.96 sd / sqrt(runs) of the {what} of {len(departures)} runs"
    return {"ci_low": value - half_width, "ci_high": value + half_width, "method": method}
