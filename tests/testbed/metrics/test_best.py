"""Best and not distinguishable from best: paired over images, corrected for all rows and pairs."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from testbed.errors import ShapeError
from testbed.metrics.best import marks
from testbed.metrics.comparison import Outcomes
from testbed.metrics.factors import Factors
from testbed.metrics.paired import contrast


def right(count: int, n: int = 100, *, runs: int = 1, start: int = 0, **options: Any) -> Outcomes:
    """All n images are right when clean, `count` of them from `start` also under the corruption, in all runs."""
    row = np.roll(np.arange(n) < count, start).astype(float)
    return Outcomes(clean=np.ones((runs, n)), shifted=np.tile(row, (runs, 1)), factors=Factors(**options))


def test_best_and_what_is_alike_are_marked() -> None:
    assert marks([[right(90), right(50), right(88)]]) == [["best", "", "alike"]]


def test_all_that_are_equally_good_are_best() -> None:
    assert marks([[right(90), right(90, start=10), right(20)]]) == [["best", "best", ""]]


def test_models_are_paired_image_by_image() -> None:
    """90 % and 80 %: of the same images nobody doubts it; where 18 flip one way and 8 the other, one may."""
    assert marks([[right(90), right(80)]]) == [["best", ""]]
    assert marks([[right(90), right(80, start=18)]]) == [["best", "alike"]]


def test_holm_is_over_all_rows_and_pairs() -> None:
    """Six images all one way have p = 0.023, enough for two comparisons and not for one of three."""
    row = [right(90), right(84)]
    assert contrast("loss", *row).p_value == pytest.approx(0.0232, abs=5e-5)
    assert marks([row] * 2) == [["best", ""]] * 2
    assert marks([row] * 3) == [["best", "alike"]] * 3
    third = right(90)  # with three models there are three pairs, though one of them is not looked at
    assert marks([[*row, third]]) == [["best", "alike", "best"]]


def test_clear_differences_stay_clear_in_a_long_table() -> None:
    """More rows than random patterns could tell, as 9,999 of them do in 500: the tail of the interval does."""
    models = [right(900, 1000), right(840, 1000)]
    assert marks([models] * 600) == [["best", ""]] * 600


def test_clusters_are_flipped_as_a_whole() -> None:
    labels = np.arange(100) // 10
    assert marks([[right(90, clusters=labels), right(80, clusters=labels)]]) == [["best", "alike"]]


def test_a_low_confidence_is_taken_at_its_word() -> None:
    """55 images one way and 45 the other, which is a standard deviation: p = 0.34."""
    row = [right(55, 200), right(45, 200, start=55)]
    assert marks([row], confidence=0.6) == [["best", ""]]
    assert marks([row], confidence=0.66) == [["best", "alike"]]


def test_draws_are_those_of_the_model_that_has_fewer() -> None:
    """With 100 draws of both the difference would be clear, with one it is not: whichever of them is the best."""

    def model(level: float, draws: int) -> Outcomes:
        return Outcomes(clean=np.ones((2, 40)), shifted=np.full((2, 40), level), factors=Factors(num_draws=draws))

    assert marks([[model(0.8, 100), model(0.7, 100)]]) == [["best", ""]]
    assert marks([[model(0.8, 1), model(0.7, 100)]]) == [["best", "alike"]]
    assert marks([[model(0.8, 100), model(0.7, 1)]]) == [["best", "alike"]]


def test_runs_that_fit_a_model_each_count_as_such() -> None:
    rng = np.random.default_rng(0)

    def fits(level: float, spread: float) -> Outcomes:
        shares = level + spread * np.array([-1, 0, 1])
        return Outcomes(clean=np.ones((3, 2000)), shifted=(rng.random((3, 2000)) < shares[:, None]).astype(float),
                        factors=Factors())  # fmt: skip

    assert marks([[fits(0.9, 0), fits(0.7, 0)]]) == [["best", ""]]
    assert marks([[fits(0.9, 0.05), fits(0.8, 0.1)]]) == [["best", "alike"]]


def test_a_single_run_is_compared_with_each_of_several() -> None:
    assert marks([[right(900, 1000, runs=3), right(500, 1000)]]) == [["best", ""]]


def test_models_without_a_number_are_left_out() -> None:
    nothing = Outcomes(clean=np.zeros((1, 100)), shifted=np.zeros((1, 100)), factors=Factors())
    assert marks([[right(90), None, nothing]]) == [["", "", ""]]
    assert marks([[right(90), None, right(10)]]) == [["best", "", ""]]


def test_other_images_are_refused() -> None:
    with pytest.raises(ShapeError, match="not of the same images"):
        marks([[right(90), right(5, 10)]])


def test_equal_models_are_told_apart_no_more_often_than_said() -> None:
    """Three models that are alike in two rows: in at most 5 % of tables is any of them left unmarked."""
    rng, tables = np.random.default_rng(1), 200

    def model() -> Outcomes:
        return Outcomes(clean=np.ones((1, 40)), shifted=(rng.random((1, 40)) < 0.8).astype(float), factors=Factors())

    wrong = sum(
        any(mark == "" for row in marks([[model() for _ in range(3)] for _ in range(2)]) for mark in row)
        for index in range(tables)
    )
    assert wrong <= 0.05 * tables


def test_numbers_do_not_depend_on_the_order_of_models() -> None:
    models = [right(90), right(84), right(50)]
    first = dict(zip(map(id, models), marks([models])[0], strict=True))
    second = dict(zip(map(id, models[::-1]), marks([models[::-1]])[0], strict=True))
    assert all(first[one] == second[other] for one, other in product(first, second) if one == other)
