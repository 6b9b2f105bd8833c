"""Two models on the same images: differences by hand, tests, and what makes them undefined."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.errors import ShapeError
from testbed.metrics.comparison import Outcomes
from testbed.metrics.factors import Factors
from testbed.metrics.paired import accuracy_contrast, contrast


def bits(*rows: str) -> np.ndarray:
    return np.array([[digit == "1" for digit in row] for row in rows])


def outcomes(clean: str, *shifted: str, **options: object) -> Outcomes:
    return Outcomes.of_runs([(bits(clean), bits(*shifted))], Factors(**options))  # type: ignore[arg-type]


# First model: 4 right, of which 1 is lost in both draws and 1 in one. Second: 5 right, 1 lost in one draw, 1 gained.
FIRST = outcomes("11110000", "01110000", "00110000")
SECOND = outcomes("11111000", "11111100", "01111100")


def test_differences_are_of_each_models_own_ratio() -> None:
    loss, mscr = contrast("loss", FIRST, SECOND, key=0), contrast("mscr", FIRST, SECOND, key=0)
    assert loss.values == pytest.approx((100 * 1.5 / 4, 100 * 0.5 / 5))
    assert loss.difference.value == pytest.approx(37.5 - 10)
    assert mscr.values == pytest.approx((-37.5, 100 * 0.5 / 5))
    assert mscr.difference.value == pytest.approx(-47.5)
    for one in (loss, mscr):
        assert one.difference.ci_low < one.difference.value < one.difference.ci_high


def test_images_that_differ_are_counted() -> None:
    """In loss images 0 and 1 are lost differently, and image 4 was right with one model alone; in MSCR also 5."""
    assert contrast("loss", FIRST, SECOND, key=0).num_differing == 3
    assert contrast("mscr", FIRST, SECOND, key=0).num_differing == 4


def test_p_value_is_that_of_exchanging_the_models_image_by_image() -> None:
    """By brute force: the statistic of every exchange, with the ratio that both have together."""
    parts = np.array([[1, 0.5, 0, 0, 0, 0, 0, 0], [0.5, 0, 0, 0, 0, 0, 0, 0]])
    wholes = np.array([[1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0, 0, 0]])
    ratio = parts.sum() / wholes.sum()
    each = (parts[0] - ratio * wholes[0]) - (parts[1] - ratio * wholes[1])
    patterns = np.array(np.meshgrid(*[(1, -1)] * 8)).reshape(8, -1)
    sums = np.abs(patterns.T @ each)
    assert contrast("loss", FIRST, SECOND, key=0).p_value == np.mean(sums >= abs(each.sum()) - 1e-12)


def test_one_answer_per_image_is_mcnemars() -> None:
    found = accuracy_contrast(FIRST.clean, SECOND.clean, Factors(), key=0)
    assert found.test == "McNemar, exact"
    assert found.difference.value == pytest.approx(-12.5)
    assert (found.p_value, found.num_differing) == (1.0, 1)
    assert accuracy_contrast(FIRST.shifted, SECOND.shifted, Factors(num_draws=2), key=0).test == "sign flip of images"


def test_clusters_are_exchanged_as_a_whole() -> None:
    ones = np.ones((1, 12))
    lost = np.repeat([[0.0, 1.0]], [6, 6], axis=1)
    assert accuracy_contrast(ones, lost, Factors(), key=0).p_value == 2 / 2**6
    patients = Factors(clusters=np.repeat(np.arange(4), 3))
    found = accuracy_contrast(ones, lost, patients, key=0)
    assert (found.p_value, found.test, found.num_differing) == (2 / 2**2, "sign flip of clusters", 2)


def test_one_sided_asks_whether_the_first_is_better() -> None:
    better, worse = np.ones((1, 40)), np.repeat([[0.0, 1.0]], [6, 34], axis=1)
    found = accuracy_contrast(better, worse, Factors(side="lower"), key=0)
    assert found.p_value == 1 / 2**6
    assert found.difference.ci_high is None
    assert found.difference.ci_low > 0
    assert accuracy_contrast(worse, better, Factors(side="lower"), key=0).p_value == 1


def test_models_that_do_the_same_have_an_interval_and_no_significance() -> None:
    found = contrast("mscr", FIRST, FIRST, key=0)
    assert (found.difference.value, found.p_value, found.num_differing) == (0, 1, 0)
    assert found.difference.ci_low < 0 < found.difference.ci_high


def test_fitted_models_vary_in_the_interval_and_have_no_image_test() -> None:
    rng = np.random.default_rng(0)
    first, second = (rng.random((3, 200)) < rate for rate in (0.9, 0.8))
    found = accuracy_contrast(first * 1.0, second * 1.0, Factors(), key=0)
    assert found.p_value is None
    assert "runs" in found.test
    single = accuracy_contrast(first[:1] * 1.0, second[:1] * 1.0, Factors(), key=0)
    assert single.p_value is not None


def test_undefined_where_a_model_is_right_on_nothing() -> None:
    nothing = outcomes("00000000", "01110000", "00110000")
    found = contrast("mscr", nothing, SECOND, key=0)
    assert (found.difference.value, found.p_value) == (None, None)
    assert found.values == (None, pytest.approx(10))
    assert found.difference.reason


def test_other_images_are_refused() -> None:
    with pytest.raises(ShapeError, match="same images"):
        contrast("loss", FIRST, outcomes("111", "110"), key=0)
