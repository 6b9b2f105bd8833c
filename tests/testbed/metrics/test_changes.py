"""Intervals of differences: limits that are known exactly, the linearised variance, and coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from tests.testbed.metrics.simulations import benchmark

from testbed.errors import ShapeError
from testbed.metrics.changes import RatioDifference, ratio_difference, sign_bounds
from testbed.metrics.intervals import clopper_pearson

ONES = np.ones(400)
SIMULTANEOUS = benchmark("simultaneous_coverage")


def test_without_a_difference_the_bound_is_the_exact_one() -> None:
    same = np.repeat([1.0, 0.0], [300, 100])
    low, high, _ = ratio_difference((same, same), (ONES, ONES), num_draws=10)
    exact = clopper_pearson(0, 400).high
    assert (low, high) == pytest.approx((-exact, exact))


def test_images_that_all_differ_one_way_have_the_exact_bound_of_their_number() -> None:
    """Nobody gains: the far bound is Clopper and Pearson's for three flips, and the upper one allows for a gain."""
    clean = np.ones(400)
    shifted = np.repeat([0.0, 1.0], [3, 397])
    low, high, _ = ratio_difference((shifted, clean), (ONES, ONES))
    far, one_gain = clopper_pearson(3, 400).high, clopper_pearson(0, 400).high
    assert low == pytest.approx(-far, rel=0.02)
    assert -3 / 400 < high <= -3 / 400 + np.hypot(one_gain, 3 / 400)


def test_many_differences_have_the_linearised_variance_of_two_ratios() -> None:
    rng = np.random.default_rng(0)
    wholes = [(rng.random(20_000) < rate).astype(float) for rate in (0.7, 0.6)]
    parts = [whole * rng.binomial(5, 0.3, 20_000) / 5 for whole in wholes]
    ratios = [part.sum() / whole.sum() for part, whole in zip(parts, wholes, strict=True)]
    influence = [
        (part - ratio * whole) / whole.mean() for part, ratio, whole in zip(parts, ratios, wholes, strict=True)
    ]
    error = (influence[0] - influence[1]).std() / np.sqrt(20_000)
    low, high, _ = ratio_difference((parts[0], parts[1]), (wholes[0], wholes[1]), num_draws=5)
    value = ratios[0] - ratios[1]
    assert (low, high) == pytest.approx((value - 1.96 * error, value + 1.96 * error), abs=2e-4)


def test_images_that_flip_in_a_few_draws_each_have_the_linearised_variance_too() -> None:
    """One more event is as large as those seen, a tenth of an image, and does not outweigh them."""
    rng = np.random.default_rng(4)
    parts = rng.binomial(25, 0.1, (2, 200)) / 25
    error = (parts[0] - parts[1]).std(ddof=1) / np.sqrt(200)
    low, high, _ = ratio_difference((parts[0], parts[1]), (np.ones(200), np.ones(200)), num_draws=25)
    assert (high - low) / (2 * 1.972 * error) == pytest.approx(1, abs=0.06)


def test_an_image_that_flips_as_a_whole_may_be_yet_to_come() -> None:
    """The first model lost none of its 50 images, the second a tenth of each: so it comes out in one experiment of 200
    if both lose a tenth, as 0.9^50 = 0.5 %. What differs little between images does not bound that.
    """
    right = np.repeat([1.0, 0.0], 50)
    data = RatioDifference.of((np.zeros(100), 0.1 * right), (right, right), num_draws=50)
    assert data.interval(0.00125, 0.00125, is_exact=True).high > 0


def test_exact_tails_of_images_that_all_rise_are_those_of_their_number() -> None:
    """Twelve of 400, and none falls: Clopper and Pearson's bounds, added in squares, at any level."""
    data = RatioDifference.of((np.repeat([1.0, 0.0], [12, 388]), np.zeros(400)), (ONES, ONES))
    for tail in (0.025, 1e-4, 1e-9):
        ups, downs = (clopper_pearson(count, 400, confidence=1 - 2 * tail) for count in (12, 0))
        low = data.interval(tail, tail, is_exact=True).low
        assert low == pytest.approx(12 / 400 - np.hypot(12 / 400 - ups.low, downs.high), rel=1e-6)


@pytest.mark.parametrize("ups", [10, 12, 15])
def test_signs_of_changes_exclude_none_where_the_sign_test_does(ups: int) -> None:
    """Of fifteen images that changed so many for the better; a tail just below and just above the test's."""
    up, down = ((np.arange(400) < ups).astype(float), (np.arange(400) >= 400 - (15 - ups)).astype(float))
    chance = binom.sf(ups - 1, 15, 0.5)
    for tail, is_shown in ((0.99 * chance, False), (1.01 * chance, True)):
        low, high = sign_bounds(up, down, clusters=None, below=tail, above=0)
        assert (low > 0) == is_shown
        assert high == np.inf
        assert sign_bounds(down, up, clusters=None, below=0, above=tail) == pytest.approx((-np.inf, -low))


def test_without_a_change_signs_say_nothing_and_images_of_a_cluster_are_one() -> None:
    assert sign_bounds(0 * ONES, 0 * ONES, clusters=None, below=0.05, above=0.05) == (0, 0)
    patients = np.repeat(np.arange(20), 20)
    all_up = sign_bounds(ONES, 0 * ONES, clusters=patients, below=0.05, above=0)[0]
    assert all_up == pytest.approx(400 * (2 * 0.05 ** (1 / 20) - 1))


@pytest.mark.parametrize("table", [*SIMULTANEOUS.quick_tables()], ids=lambda table: table.name)
def test_the_worst_of_many_classes_is_within_its_interval(table) -> None:  # type: ignore[no-untyped-def]
    """All classes are alike, so that only one side can miss: 2.5 % and three standard errors of 400 experiments."""
    share, _ = table.wrong(np.random.default_rng(0), 400, True)
    assert share <= 2.5 + 2.3


def test_models_that_lose_everything_still_differ_by_chance() -> None:
    clean = [np.repeat([1.0, 0.0], [350, 50]), np.repeat([1.0, 0.0], [340, 60])]
    low, high, _ = ratio_difference((clean[0], clean[1]), (clean[0], clean[1]))
    assert low < -0.003 < 0.003 < high


def test_images_of_one_cluster_count_as_one() -> None:
    rng = np.random.default_rng(1)
    patients = rng.normal(size=(2, 50)) > 0
    before, after = (np.repeat(row, 8).astype(float) for row in patients)
    labels = np.repeat(np.arange(50), 8)
    plain, clustered = ratio_difference((after, before), (ONES, ONES)), ratio_difference(
        (after, before), (ONES, ONES), clusters=labels
    )  # fmt: skip
    assert clustered.high - clustered.low == pytest.approx(np.sqrt(8) * (plain.high - plain.low), rel=0.15)


def test_swapping_the_models_swaps_the_bounds() -> None:
    rng = np.random.default_rng(2)
    parts, wholes = rng.binomial(3, 0.2, (2, 60)) / 3, np.ones((2, 60))
    one = ratio_difference((parts[0], parts[1]), (wholes[0], wholes[1]), num_draws=3)
    other = ratio_difference((parts[1], parts[0]), (wholes[1], wholes[0]), num_draws=3)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


def test_one_sided_bounds_are_those_of_the_wider_interval() -> None:
    rng = np.random.default_rng(3)
    pair, wholes = (rng.random(60), rng.random(60)), (np.ones(60), np.ones(60))
    both = ratio_difference(pair, wholes, confidence=0.9)
    assert ratio_difference(pair, wholes, side="lower")[:2] == pytest.approx((both.low, np.inf))
    assert ratio_difference(pair, wholes, side="upper")[:2] == pytest.approx((-np.inf, both.high))


def test_other_images_are_refused() -> None:
    with pytest.raises(ShapeError, match="same ones"):
        ratio_difference((np.ones(3), np.ones(4)), (np.ones(3), np.ones(4)))


COVERAGE = benchmark("interval_coverage")
CHANGES = benchmark("change_coverage")


@pytest.mark.parametrize("scenario", [pytest.param(s, id=s.name) for s in CHANGES.quick_scenarios()])
def test_coverage_by_simulation(scenario) -> None:  # type: ignore[no-untyped-def]
    """500 repeats have a standard error of one point; the benchmark repeats each scenario 10,000 times."""
    found = COVERAGE.coverage(scenario, repeats=500, batch=250)
    assert found["covered"] > 0.93 - 0.02
    assert found["covered"] < scenario.most + 0.02
    assert found["least width"] > 1e-4
