"""From outcomes of images to answers: worked examples, and what makes units of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from testbed.claim_language import parse_claim
from testbed.metrics.claim_evidence import decide
from testbed.metrics.comparison import Outcomes
from testbed.metrics.factors import Factors
from testbed.metrics.sure_bounds import Rate, lower_bound, upper_bound

CLEAN = [1] * 8 + [0] * 2  # worked example: 8 of 10 right when clean,
SHIFTED = [1] * 6 + [0] * 2 + [1, 0]  # of which 6 stay right, and one of the others becomes so


def outcomes(*runs: tuple[ArrayLike, ArrayLike], **factors: object) -> Outcomes:
    return Outcomes.of_runs(runs, Factors(**factors))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("quantity", "value", "n", "unit"),
    [
        ("top1", 7 / 10, 10, "images"),
        ("loss", 2 / 8, 8, "images right when clean"),
        ("recovery", 1 / 2, 2, "images wrong when clean"),
        ("mscr", -1 / 8, 10, "images"),
    ],
)
def test_numbers_are_those_of_the_worked_example(quantity: str, value: float, n: int, unit: str) -> None:
    found = decide(parse_claim(f"{quantity}(s) >= 0%"), [outcomes((CLEAN, SHIFTED))], alpha=0.05)
    assert (found.n, found.unit) == (n, unit)
    assert found.value == pytest.approx(value)
    assert found.method.startswith("Clopper-Pearson")


def test_a_difference_is_of_the_same_images() -> None:
    other = [1] * 5 + [0] * 3 + [1, 1]
    found = decide(parse_claim("loss(a) - loss(b) >= 0%"), [outcomes((CLEAN, SHIFTED)), outcomes((CLEAN, other))],
                   alpha=0.05)  # fmt: skip
    assert found.value == pytest.approx(2 / 8 - 3 / 8)
    lowered = Rate.of_units([1.0] + [0.0] * 7, 1.0, 1.0, is_single=True)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 8) - lower_bound(lowered, 0.025))


def test_draws_of_one_side_of_a_difference_make_it_one_of_draws() -> None:
    """The clean side has a draw, the shifted one two: its halves are no single events."""
    pair = [outcomes((CLEAN, CLEAN)), outcomes((CLEAN, [SHIFTED, CLEAN]))]
    found = decide(parse_claim("top1(a) - top1(b) <= 50%"), pair, alpha=0.05)
    assert found.value == pytest.approx((2 - 1) / 2 / 10)
    assert found.method.startswith("betting")


def test_draws_lie_within_images() -> None:
    same = decide(parse_claim("loss(s) <= 90%"), [outcomes((CLEAN, [SHIFTED] * 10))], alpha=0.05)
    assert same.n == 8
    assert same.high == pytest.approx(upper_bound(Rate.of_units([1, 1] + [0] * 6, 1, 1, is_single=False), 0.05))


def test_clusters_are_the_units() -> None:
    clean, shifted = np.ones(60), np.ones(60)
    clusters = np.repeat(np.arange(20), 3)
    found = decide(parse_claim("loss(s) <= 1%"), [outcomes((clean, shifted), clusters=clusters)], alpha=0.05)
    assert (found.n, found.unit, found.verdict) == (20, "clusters", "undecided")
    assert found.high == pytest.approx(1 - 0.05 ** (1 / 20))
    assert found.needed == 299


def test_a_cluster_without_an_image_that_counts_is_still_drawn() -> None:
    """Ten clusters of two; in the first, no image is right when clean."""
    clean = np.r_[0, 0, np.ones(18)]
    found = decide(parse_claim("loss(s) <= 1%"), [outcomes((clean, clean), clusters=np.arange(20) // 2)], alpha=0.05)
    assert found.n == 10
    assert 1 - 0.05 ** (1 / 9) < found.high < 1 - 0.05 ** (1 / 8)


def test_members_alone_count() -> None:
    members = np.array([[True] * 7 + [False] * 3])
    found = decide(parse_claim("loss(s) <= 50%"), [outcomes((CLEAN, SHIFTED))], alpha=0.05, members=members)
    assert (found.value, found.n) == (pytest.approx(1 / 7), 7)


def test_fitted_models_are_the_units_and_their_images_are_shared() -> None:
    other = [1] * 4 + [0] * 4 + [1, 0]
    runs = [(np.tile(CLEAN, 40), np.tile(shifted, 40)) for shifted in (SHIFTED, other, SHIFTED)]
    found = decide(parse_claim("loss(s) <= 50%"), [outcomes(*runs)], alpha=0.05)
    assert (found.n, found.unit) == (3, "runs")
    assert found.value == pytest.approx((2 + 4 + 2) / 24)
    images = Rate.of_units([1, 1, 1 / 3, 1 / 3, 0, 0, 0, 0] * 40, 1, 1, is_single=False)
    spread = np.std([2 / 8, 4 / 8, 2 / 8], ddof=1)
    expected = upper_bound(images, 0.025) + 4.302652729911275 * spread / np.sqrt(3)
    assert found.high == pytest.approx(expected)
    assert found.method == "betting (Waudby-Smith & Ramdas), and Student's t over 3 runs"


def test_resplits_pool_the_images_that_several_runs_see() -> None:
    """Two runs of two of three images: the second image is right in one run and wrong in the other."""
    samples = np.array([[0, 1], [1, 2]])
    runs = [([1, 1], [1, 1]), ([1, 1], [0, 1])]
    found = decide(parse_claim("top1(s) >= 90%"), [outcomes(*runs, samples=samples, num_samples=3, resplit=2.0)],
                   alpha=0.05)  # fmt: skip
    assert (found.n, found.unit, found.value) == (2, "runs", pytest.approx(3 / 4))
    images = Rate.of_units([1, 1, 1], [1, 2, 1], [1, 2, 1], is_single=False)
    assert found.low == pytest.approx(max(0.0, min(lower_bound(images, 0.05), 0.75 - 6.3137515 * 0.5)))
    assert found.low == 0.0
    assert found.method.endswith("Student's t over 2 re-splits (Nadeau-Bengio)")


@pytest.mark.parametrize(
    ("quantity", "clean", "reason"),
    [
        ("loss", [0, 0], "no image is right when clean"),
        ("mscr", [0, 0], "no image is right when clean"),
        ("recovery", [1, 1], "no image is wrong when clean"),
    ],
)
def test_what_is_undefined_is_undecided_with_the_reason(quantity: str, clean: list[int], reason: str) -> None:
    found = decide(parse_claim(f"{quantity}(s) <= 50%"), [outcomes((clean, [1, 0]))], alpha=0.05)
    assert (found.verdict, found.value, found.reason, found.needed) == ("undecided", None, reason, None)


def test_a_class_without_images_is_undecided() -> None:
    nobody = np.zeros((1, 10), bool)
    found = decide(parse_claim("top1(s) >= 50%"), [outcomes((CLEAN, SHIFTED))], alpha=0.05, members=nobody)
    assert (found.verdict, found.reason) == ("undecided", "there are no images")
