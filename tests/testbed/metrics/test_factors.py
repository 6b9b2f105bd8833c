"""What varies by chance: pooling over runs, and the runs' own part of an interval, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.errors import ShapeError
from testbed.metrics.factors import Factors, proportion
from testbed.metrics.intervals import Interval, clopper_pearson, weighted_proportion

T_1 = 12.706204736432095  # Student's t, 97.5 % with one degree of freedom
T_2 = 4.302652729911275  # with two
NARROW = Interval(-0.1, 0.2, "images")


def test_runs_on_the_same_images_are_averaged_image_by_image() -> None:
    assert Factors().pool([[1, 0, 1], [0, 0, 1]]).tolist() == [0.5, 0, 1]


def test_runs_on_other_images_are_summed_by_image() -> None:
    """Three distinct images; an image is in 4 / 3 runs on average."""
    factors = Factors(samples=np.array([[2, 0], [0, 1]]), num_samples=3, resplit=1.0)
    assert factors.times(np.ones((2, 2))) == pytest.approx(4 / 3)
    assert factors.pool([[1, 0.5], [1, 0]]) == pytest.approx(np.array([1.5, 0, 1]) * 3 / 4)
    with pytest.raises(ShapeError, match="samples of shape"):
        factors.pool(np.ones((2, 3)))


def test_experiments_pool_alone() -> None:
    rng = np.random.default_rng(0)
    samples, values = np.array([rng.permutation(5)[:3] for _ in range(8)]).reshape(2, 4, 3), rng.random((2, 4, 3))
    whole = Factors(samples=samples, num_samples=5).pool(values)
    for one, own, found in zip(samples, values, whole, strict=True):
        assert Factors(samples=one, num_samples=5).pool(own) == pytest.approx(found)


def test_one_run_has_the_interval_of_its_images() -> None:
    assert Factors().over_runs(NARROW, np.zeros(()), np.ones((1, 4))) is NARROW


def test_what_is_common_to_a_run_adds_students_t_in_squares() -> None:
    # totals 0.2 and -0.2, variance 0.08, over two runs 0.04; images vary alike in both
    residuals = np.array([[0.1, 0.1], [-0.1, -0.1]])
    low, high, method = Factors().over_runs(NARROW, np.zeros(()), residuals)
    assert (low, high) == pytest.approx((-np.hypot(0.1, T_1 * 0.2), np.hypot(0.2, T_1 * 0.2)))
    assert method == "images + t over 2 runs"


def test_what_images_vary_within_runs_is_taken_off() -> None:
    """Half of it, of three runs. Totals 0.2, -0.2 and 0: variance 0.04, over three runs 0.04 / 3. What is common
    neither to a run nor to an image: squares 4 x 0.1^2, over 2 degrees of freedom, times two images over three runs.
    """
    some = Factors().over_runs(NARROW, np.zeros(()), np.array([[0.2, 0.0], [-0.2, 0.0], [0.0, 0.0]]))
    assert some.high == pytest.approx(np.hypot(0.2, T_2 * np.sqrt(0.04 / 3 - 0.5 * 0.04 / 3)))
    # run means as before, and on top +-0.2 that differs from image to image: more than explains them
    residuals = np.array([[0.3, -0.1], [-0.3, 0.1], [0.0, 0.0]])
    assert Factors().over_runs(NARROW, np.zeros(()), residuals)[:2] == pytest.approx((-0.1, 0.2))
    one_patient = Factors(clusters=["a", "a"])  # whose images are one: what they vary alone is not seen
    found = one_patient.over_runs(NARROW, np.zeros(()), residuals)
    assert found.high == pytest.approx(np.hypot(0.2, T_2 * np.sqrt(0.04 / 3)))


def test_rare_errors_of_runs_that_differ_reach_as_far_as_their_odds() -> None:
    """A share of 0.1 with a standard error of 0.02 over three runs: odds of 1 / 9 times exp(t 0.02 / 0.09)."""
    residuals = np.array([[0.02, 0.0], [-0.02, 0.0], [0.0, 0.0]]) * np.sqrt(3)
    factors, point = Factors(clusters=["a", "a"]), Interval(0.1, 0.1, "images")
    odds = np.exp(T_2 * 0.02 / 0.09) / 9
    found = factors.over_runs(point, np.array(0.1), residuals, is_share=True)
    assert found[:2] == pytest.approx((0.1 - T_2 * 0.02, odds / (1 + odds)))
    mirrored = factors.over_runs(Interval(0.9, 0.9, ""), np.array(0.9), residuals, is_share=True)
    assert mirrored[:2] == pytest.approx((1 - odds / (1 + odds), 0.9 + T_2 * 0.02))
    all_wrong = factors.over_runs(Interval(0.0, 0.1, ""), np.array(0.0), 0 * residuals, is_share=True)
    assert all_wrong[:2] == pytest.approx((0.0, 0.1))


def test_nothing_is_taken_off_two_runs() -> None:
    found = Factors().over_runs(NARROW, np.zeros(()), np.array([[0.2, 0.0], [-0.2, 0.0]]))
    assert found.high == pytest.approx(np.hypot(0.2, T_1 * 0.2))


def test_resplits_have_the_variance_of_nadeau_and_bengio() -> None:
    # totals 0.2 and -0.2: 0.08 (1/2 + 1/4) = 0.06; images alone 4 (0.1 / 2)^2 = 0.01
    residuals = np.array([[0.1, 0.1], [-0.1, -0.1]])
    factors = Factors(samples=np.array([[0, 1], [2, 3]]), num_samples=4, resplit=0.25)
    low, high, method = factors.over_runs(NARROW, np.zeros(()), residuals)
    error = T_1 * np.sqrt(0.06 - 0.01)
    assert (low, high) == pytest.approx((-np.hypot(0.1, error), np.hypot(0.2, error)))
    assert "Nadeau-Bengio" in method


def test_one_sided_bounds_widen_on_their_side_alone() -> None:
    residuals = np.array([[0.1, 0.1], [-0.1, -0.1]])
    found = Factors(side="upper", confidence=0.975).over_runs(Interval(-np.inf, 0.2, ""), np.zeros(()), residuals)
    assert found[:2] == pytest.approx((-np.inf, np.hypot(0.2, T_1 * 0.2)))


def test_intervals_that_hold_together_have_exact_tails_and_a_single_one_stays() -> None:
    factors = Factors(confidence=0.9)
    assert factors.for_all(1) is factors
    part = (np.arange(100) < 20).astype(float)[None]
    _, found = proportion(part, np.ones_like(part), factors.for_all(1000))
    assert found[:2] == pytest.approx(clopper_pearson(20, 100, confidence=1 - 0.1 / 1000)[:2])


def test_a_proportion_of_one_run_is_that_of_its_images() -> None:
    rng = np.random.default_rng(1)
    part = rng.binomial(10, 0.1, (1, 50)) / 10
    value, interval = proportion(part, np.ones((1, 50)), Factors(num_draws=10))
    assert value == pytest.approx(part.mean())
    assert interval[:2] == pytest.approx(weighted_proportion(part[0], np.ones(50), num_draws=10)[:2])


def test_draws_of_one_model_count_as_draws_not_as_models() -> None:
    """3 models x 3 runs of the noise are 3 models: nine independent ones would be surer of what models vary."""
    rng = np.random.default_rng(2)
    models = np.repeat(rng.normal(0.8, 0.05, 3), 3)[:, None]
    nine = rng.binomial(10, np.clip(models + np.zeros((9, 500)), 0, 1)) / 10
    three = nine.reshape(3, 3, 500).mean(1)
    nested = proportion(three, np.ones_like(three), Factors(num_draws=30))[1]
    crossed = proportion(nine, np.ones_like(nine), Factors(num_draws=10))[1]
    assert nested.high - nested.low > 1.5 * (crossed.high - crossed.low)
