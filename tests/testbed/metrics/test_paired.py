"""Two models on the same images: differences by hand, tests, and what makes them undefined."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import stdtr
from scipy.stats import binomtest
from tests.testbed.metrics.simulations import benchmark

from testbed.errors import ShapeError
from testbed.metrics.comparison import Outcomes
from testbed.metrics.factors import Factors
from testbed.metrics.intervals import Side
from testbed.metrics.paired import INVERSION, accuracy_contrast, contrast, contrast_interval


def bits(*rows: str) -> np.ndarray:
    return np.array([[digit == "1" for digit in row] for row in rows])


def outcomes(clean: str, *shifted: str, **options: object) -> Outcomes:
    return Outcomes.of_runs([(bits(clean), bits(*shifted))], Factors(**options))  # type: ignore[arg-type]


# First model: 4 right, of which 1 is lost in both draws and 1 in one. Second: 5 right, 1 lost in one draw, 1 gained.
FIRST = outcomes("11110000", "01110000", "00110000")
SECOND = outcomes("11111000", "11111100", "01111100")


def test_differences_are_of_each_models_own_ratio() -> None:
    loss, mscr = contrast("loss", FIRST, SECOND), contrast("mscr", FIRST, SECOND)
    assert loss.values == pytest.approx((100 * 1.5 / 4, 100 * 0.5 / 5))
    assert loss.difference.value == pytest.approx(37.5 - 10)
    assert mscr.values == pytest.approx((-37.5, 100 * 0.5 / 5))
    assert mscr.difference.value == pytest.approx(-47.5)
    for one in (loss, mscr):
        assert one.difference.ci_low < one.difference.value < one.difference.ci_high


def test_images_that_differ_are_counted() -> None:
    """In loss images 0 and 1 are lost differently, and image 4 was right with one model alone; in MSCR also 5."""
    assert contrast("loss", FIRST, SECOND).num_differing == 3
    assert contrast("mscr", FIRST, SECOND).num_differing == 4


def lost(*flips: tuple[int, float], n: int = 400) -> Outcomes:
    """All n images are right when clean; so many of them, one after the other, are lost in such a share of draws."""
    share = np.repeat([part for _, part in flips], [count for count, _ in flips])
    shifted = 1 - np.pad(share, (0, n - len(share)))[None]
    return Outcomes(clean=np.ones((1, n)), shifted=shifted, factors=Factors(num_draws=10))


def of_side(outcomes: Outcomes, side: Side, confidence: float = 0.95) -> Outcomes:
    return replace(outcomes, factors=outcomes.factors.of(side=side, confidence=confidence))


PAIRS = {
    "whole and thin": (lost((9, 1.0)), lost((9, 0.0), (40, 0.1))),
    "nearly told apart": (lost((12, 1.0)), lost((2, 1.0), (10, 0.1))),
    "far apart": (lost((200, 1.0)), lost((10, 0.5))),
    "of one ratio": (lost((4, 1.0)), lost((4, 0.0), (40, 0.1))),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("name", ["loss", "mscr"])
def test_p_value_is_the_smallest_level_at_which_the_interval_excludes_0(
    pair: tuple[Outcomes, Outcomes], name: str
) -> None:
    for first, second in (pair, pair[::-1]):
        p_value = contrast(name, first, second).p_value
        assert p_value is not None
        if 1e-9 < p_value < 1:
            bounds = contrast(name, *(of_side(one, "both", 1 - p_value) for one in (first, second))).difference
            assert min(abs(bounds.ci_low), abs(bounds.ci_high)) == pytest.approx(0, abs=1e-5)
        assert (p_value == 1) == (pair is PAIRS["of one ratio"])


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("side", ["both", "lower", "upper"])
@pytest.mark.parametrize("confidence", [0.2, 0.5, 0.8, 0.95, 0.99, 0.9999])
def test_p_value_and_interval_never_disagree(pair: tuple[Outcomes, Outcomes], side: Side, confidence: float) -> None:
    for models in (pair, pair[::-1]):
        found = contrast("loss", *(of_side(one, side, confidence) for one in models))
        low, high = found.difference.ci_low, found.difference.ci_high
        excludes = (low is not None and low > 0) or (high is not None and high < 0)
        assert (found.p_value < 1 - confidence) == excludes


def test_what_is_kept_differs_as_what_is_lost_does() -> None:
    """Also where the models are right on other images when clean, of which most are kept."""
    rng = np.random.default_rng(6)
    first, second = ((rng.random((1, 100)) < 0.5).astype(float) for _ in range(2))
    lost, kept = (
        contrast_interval((one * first, first), (other * second, second), Factors(num_draws=50))
        for one, other in ((0.0, 0.1), (1.0, 0.9))
    )
    assert (kept[0], kept[1].low, kept[1].high) == pytest.approx((-lost[0], -lost[1].high, -lost[1].low))


def test_three_images_in_all_draws_are_no_more_than_three() -> None:
    """Three flips against none: 0.62 is Clopper and Pearson's lower bound of three, and 3.69 their upper one of none;
    the distances 2.38 and 3.69 are more than 3 when added in squares.
    """
    found = contrast("loss", lost((3, 1.0)), lost())
    assert found.difference.ci_low == pytest.approx(100 * (3 - np.hypot(3 - 0.62, 3.69)) / 400, abs=0.01)
    assert found.p_value > 0.05
    assert contrast("loss", lost((3, 1.0)), lost((30, 0.1))).p_value == 1


def test_p_values_fall_as_far_as_the_tail_of_the_interval() -> None:
    """Sixty of 400 one way, which by their signs are 2 / 2^60 = 2e-18: clear also among a million rows."""
    assert 1e-18 < contrast("loss", lost((60, 1.0)), lost()).p_value < 1e-16


def test_one_answer_per_image_is_mcnemars() -> None:
    found = accuracy_contrast(FIRST.clean, SECOND.clean, Factors())
    assert found.test == "McNemar, exact"
    assert found.difference.value == pytest.approx(-12.5)
    assert (found.p_value, found.num_differing) == (1.0, 1)
    assert accuracy_contrast(FIRST.shifted, SECOND.shifted, Factors(num_draws=2)).test == INVERSION


@pytest.mark.parametrize(("wins", "losses"), [(5, 0), (6, 0), (9, 2), (11, 3), (12, 3), (16, 6), (47, 29), (49, 27)])
def test_where_mcnemar_does_not_reject_the_interval_holds_0(wins: int, losses: int) -> None:
    first = np.repeat([[1.0, 0.0, 1.0]], [wins, losses, 100 - wins - losses], axis=1)
    second = np.repeat([[0.0, 1.0, 1.0]], [wins, losses, 100 - wins - losses], axis=1)
    found, exact = accuracy_contrast(first, second, Factors()), binomtest(wins, wins + losses).pvalue
    assert found.p_value == pytest.approx(exact)
    assert (found.difference.ci_low > 0) == (exact < 0.05)
    worse = accuracy_contrast(second, first, Factors())
    assert (worse.p_value, worse.difference.ci_high < 0) == (pytest.approx(exact), exact < 0.05)


def test_clusters_count_as_a_whole() -> None:
    ones = np.ones((1, 120))
    flipped = np.repeat([[0.0, 1.0]], [60, 60], axis=1)
    assert accuracy_contrast(ones, flipped, Factors()).p_value == 2 / 2**60
    patients = Factors(clusters=np.repeat(np.arange(4), 30))
    found = accuracy_contrast(ones, flipped, patients)
    assert (found.test, found.num_differing) == (INVERSION, 2)
    assert found.p_value > 0.3  # two patients of four


def test_one_sided_asks_whether_the_first_is_better() -> None:
    better, worse = np.ones((1, 40)), np.repeat([[0.0, 1.0]], [6, 34], axis=1)
    found = accuracy_contrast(better, worse, Factors(side="lower"))
    assert found.p_value == 1 / 2**6
    assert found.difference.ci_high is None
    assert found.difference.ci_low > 0
    assert accuracy_contrast(worse, better, Factors(side="lower")).p_value == 1


def test_models_that_do_the_same_have_an_interval_and_no_significance() -> None:
    found = contrast("mscr", FIRST, FIRST)
    assert (found.difference.value, found.p_value, found.num_differing) == (0, 1, 0)
    assert found.difference.ci_low < 0 < found.difference.ci_high


def test_fitted_models_vary_in_the_interval_and_in_the_p_value() -> None:
    """Beyond their images the three runs differ by 0.1, 0 and -0.1 of what they have in common: Student's t, 2 degrees
    of freedom, decides, and not the thousands of images.
    """
    n = 10_000
    level = np.array([0.95, 0.85, 0.75])
    first = (np.arange(n) < n * level[:, None]).astype(float)
    second = np.tile(np.arange(n) < 0.75 * n, (3, 1)).astype(float)
    found = accuracy_contrast(first, second, Factors())
    assert "t over 3 runs" in found.difference.method
    assert found.difference.value == pytest.approx(10)
    assert found.p_value == pytest.approx(2 * stdtr(2, -10 / (10 / np.sqrt(3))), abs=0.03)
    assert accuracy_contrast(first[:1], second[:1], Factors()).p_value < 1e-100


def test_models_of_one_loss_are_told_apart_no_more_often_than_said() -> None:
    """One loses an image in all draws, the other in one draw of ten: 1 in 7 were told apart by exchanging them."""
    simulated = benchmark("equal_losses")
    cell = simulated.TABLES[0]
    found = simulated.one_row(cell, repeats=400)
    assert found["told apart"] <= 0.055
    assert found["disagree"] == 0
    assert simulated.one_table(cell, repeats=20) <= 0.05


def test_undefined_where_a_model_is_right_on_nothing() -> None:
    nothing = outcomes("00000000", "01110000", "00110000")
    found = contrast("mscr", nothing, SECOND)
    assert (found.difference.value, found.p_value) == (None, None)
    assert found.values == (None, pytest.approx(10))
    assert found.difference.reason


def test_other_images_are_refused() -> None:
    with pytest.raises(ShapeError, match="same images"):
        contrast("loss", FIRST, outcomes("111", "110"))
