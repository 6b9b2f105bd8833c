"""Means over runs with the spread of the runs alone: what more runs of the same kind would change."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from testbed.metrics.published import mscr_over_runs
from testbed.records import MetricValue

CONFIDENCE = 0.95


def metrics_over_runs(clean: ArrayLike, noisy: ArrayLike) -> dict[str, MetricValue]:
    """Accuracy under noise and MSCR by name, with Student's intervals over runs; none for a single run.

    Args:
        clean, noisy: (runs,) accuracies in percent, of the same runs in the same order.
    Returns: n is the number of runs.
    """
    return {"top1": accuracy_over_runs(noisy), "mscr": mscr_over_runs(clean, noisy)["mscr"]}


def accuracy_over_runs(accuracies: ArrayLike) -> MetricValue:
    """Mean of the runs' accuracies, (runs,) in percent, and Student's interval of it; n is the number of runs."""
    from scipy.stats import t

    values = np.asarray(accuracies, np.float64)
    runs, mean = len(values), float(np.mean(values))
    if runs < 2:
        return MetricValue(name="top1", value=mean, n=runs, reason="no interval: one run has no spread")
    half_width = float(t.ppf((1 + CONFIDENCE) / 2, runs - 1) * values.std(ddof=1) / np.sqrt(runs))
    low, high = max(0.0, mean - half_width), min(100.0, mean + half_width)
    return MetricValue(name="top1", value=mean, n=runs, ci_low=low, ci_high=high, method=f"t over {runs} runs")
