"""Which models may be the best: by hand, and how often the truly best one is kept."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.errors import ShapeError
from testbed.metrics.among_best import among_best
from testbed.metrics.intervals import clopper_pearson


def test_two_models_are_told_apart_by_the_one_sided_bound_of_their_difference() -> None:
    # each bound 1.959964 away is a standard error of 1: one-sided 5 % is at 1.644854 sqrt(2) = 2.326
    low, high = np.array([-1.959964, -1.959964]), np.array([1.959964, 1.959964])
    assert among_best([50 + 2.32, 50], 50 + 2.32 + low, 50 + high).tolist() == [True, True]
    found = among_best([52.33, 50.0], [52.33 - 1.959964, 50 - 1.959964], [52.33 + 1.959964, 50 + 1.959964])
    assert found.tolist() == [True, False]


def test_a_model_that_any_other_beats_is_out_though_the_first_is_not_known_well() -> None:
    assert among_best([90.0, 80.0, 70.0], [50.0, 79.0, 69.0], [99.0, 81.0, 71.0]).tolist() == [True, True, False]


def test_without_an_interval_only_the_largest_number_is_among_the_best() -> None:
    nan = float("nan")
    assert among_best([70.0, 80.0, 80.0], [nan, nan, nan], [nan, nan, nan]).tolist() == [False, True, True]
    assert among_best([70.0, 69.9], [nan, 69.0], [nan, 70.5]).tolist() == [True, True]


def test_one_model_is_the_best_and_none_is_none() -> None:
    assert among_best([3.0], [2.0], [4.0]).tolist() == [True]
    assert among_best([], [], []).tolist() == []


@pytest.mark.parametrize("spread", [0.0, 0.01])
def test_the_best_model_is_kept_at_least_95_times_in_100(spread: float) -> None:
    rng = np.random.default_rng(7)
    shares, n = np.sort(0.8 + spread * rng.normal(size=20)), 5000
    kept = []
    for _ in range(400):
        right = rng.binomial(n, shares)
        bounds = clopper_pearson(right, n)
        kept.append(among_best(right / n, bounds.low, bounds.high)[-1])
    assert np.mean(kept) >= 0.94


def test_many_models_are_compared_in_pieces_as_at_once() -> None:
    values = np.linspace(0, 100, 1200)
    assert np.flatnonzero(among_best(values, values - 1e-3, values + 1e-3)).tolist() == [1199]


def test_bounds_that_are_too_few_are_refused() -> None:
    with pytest.raises(ShapeError, match="Give one each"):
        among_best([1.0, 2.0], [1.0], [2.0])
