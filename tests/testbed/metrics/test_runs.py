"""Comparisons over runs that each fit a model: ratios of sums, and intervals of images and runs together."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.metrics.comparison import compare
from testbed.metrics.runs import over_runs

CLEAN = np.array([1, 1, 1, 0], bool)
FIRST = (CLEAN, np.array([[1, 1, 0, 0], [1, 1, 1, 0]], bool))
SECOND = (np.array([1, 1, 1, 1], bool), np.array([[1, 1, 0, 0], [1, 1, 1, 1]], bool))


def test_values_are_ratios_of_sums_not_means_of_ratios() -> None:
    # Run one: 3 right when clean, 2.5 under the shift; run two: 4 and 3.
    found = over_runs([FIRST, SECOND])
    assert found["mscr"].value == pytest.approx(100 * (5.5 - 7) / 7, abs=1e-12)
    assert found["loss"].value == pytest.approx(100 * (0.5 + 1) / 7, abs=1e-12)
    assert found["recovery"].value == 0.0
    assert found["mscr"].detail["runs"] == pytest.approx([-100 / 6, -25.0])


def test_runs_that_agree_have_the_interval_of_the_images() -> None:
    single, found = compare(*FIRST), over_runs([FIRST, FIRST])
    for name, value in found.items():
        assert (value.value, value.ci_low, value.ci_high) == pytest.approx(
            (single[name].value, single[name].ci_low, single[name].ci_high), abs=1e-9
        )


def test_runs_that_differ_widen_the_interval_by_students_t() -> None:
    value = over_runs([FIRST, SECOND])["loss"]
    below = np.mean([single.value - single.ci_low for single in (compare(*FIRST)["loss"], compare(*SECOND)["loss"])])
    # Residuals of the linearised ratio: (0.5 - 3 * 1.5 / 7) / 3.5 and its negative; t(0.975, 1) = 12.7062.
    spread = 100 * 12.7062 * abs(0.5 - 3 * 1.5 / 7) / 3.5 * np.sqrt(2) / np.sqrt(2)
    assert value.ci_low == pytest.approx(max(0, value.value - np.hypot(below, spread)), abs=1e-3)
    assert "t over 2 runs" in value.method


def test_intervals_stay_where_the_metric_can_be() -> None:
    found = over_runs([FIRST, SECOND])
    for name, (lowest, highest) in {"mscr": (-100, np.inf), "loss": (0, 100), "recovery": (0, 100)}.items():
        assert lowest <= found[name].ci_low < found[name].ci_high <= highest


def test_one_sided_intervals_have_one_bound_that_is_tighter() -> None:
    both, upper = over_runs([FIRST, SECOND])["loss"], over_runs([FIRST, SECOND], side="upper")["loss"]
    assert upper.ci_low == 0.0
    assert upper.ci_high < both.ci_high
    assert over_runs([FIRST, SECOND], side="lower")["loss"].ci_high == 100.0


def test_undefined_in_every_run_is_undefined() -> None:
    nothing = (np.zeros(4, bool), FIRST[1])
    found = over_runs([nothing, nothing])
    assert found["mscr"].value is None
    assert found["mscr"].reason
