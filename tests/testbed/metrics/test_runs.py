"""Accuracies and comparisons over runs: means over runs, images and draws; one run gives what it has alone."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.errors import ShapeError
from testbed.metrics.accuracy import balanced_accuracy, per_class, top1, top5
from testbed.metrics.comparison import Outcomes, change, compare
from testbed.metrics.factors import Factors
from testbed.metrics.runs import accuracies_of_runs

CLEAN = np.array([1, 1, 1, 0], bool)
FIRST = (CLEAN, np.array([[1, 1, 0, 0], [1, 1, 1, 0]], bool))
SECOND = (np.array([1, 1, 1, 1], bool), np.array([[1, 1, 0, 0], [1, 1, 1, 1]], bool))
NETTED = ("mscr", "loss", "recovery", "accuracy_change")


def over_runs(*runs: tuple[np.ndarray, np.ndarray], **options: object) -> dict[str, object]:
    outcomes = Outcomes.of_runs(runs, Factors(**options))  # type: ignore[arg-type]
    return {name: change(name, outcomes) for name in NETTED}


def test_values_are_ratios_of_sums_not_means_of_ratios() -> None:
    # Run one: 3 right when clean, 2.5 under the shift; run two: 4 and 3.
    found = over_runs(FIRST, SECOND)
    assert found["mscr"].value == pytest.approx(100 * (5.5 - 7) / 7, abs=1e-12)
    assert found["loss"].value == pytest.approx(100 * (0.5 + 1) / 7, abs=1e-12)
    assert found["recovery"].value == 0.0
    assert found["accuracy_change"].value == pytest.approx(100 * (5.5 - 7) / 8, abs=1e-12)
    assert found["mscr"].detail["runs"] == pytest.approx([-100 / 6, -25.0])
    assert found["recovery"].detail["runs"] == [0.0, None]


def test_single_run_is_compared_as_before() -> None:
    found = over_runs(FIRST)
    for name, value in compare(*FIRST).items():
        assert found[name] == value


def test_the_order_of_runs_does_not_matter() -> None:
    one, other = over_runs(FIRST, SECOND), over_runs(SECOND, FIRST)
    for name in NETTED:
        assert (one[name].ci_low, one[name].ci_high) == pytest.approx((other[name].ci_low, other[name].ci_high))


def test_models_that_differ_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    runs = [(np.ones(400, bool), rng.random((10, 400)) < rate) for rate in (0.95, 0.9, 0.85)]
    single, found = compare(*runs[1])["loss"], over_runs(*runs)["loss"]
    assert found.ci_high - found.ci_low > 3 * (single.ci_high - single.ci_low)
    assert "t over 3 runs" in found.method


def test_intervals_stay_where_the_metric_can_be() -> None:
    found = over_runs(FIRST, SECOND)
    ranges = {"mscr": (-100, np.inf), "loss": (0, 100), "recovery": (0, 100), "accuracy_change": (-100, 100)}
    for name, (lowest, highest) in ranges.items():
        assert lowest <= found[name].ci_low < found[name].ci_high <= highest


def test_one_sided_intervals_have_one_bound_that_is_tighter() -> None:
    both, upper = over_runs(FIRST, SECOND)["loss"], over_runs(FIRST, SECOND, side="upper")["loss"]
    assert upper.ci_low == 0.0
    assert upper.ci_high <= both.ci_high
    assert over_runs(FIRST, SECOND, side="lower")["loss"].ci_high == 100.0


def test_undefined_in_every_run_is_undefined() -> None:
    nothing = (np.zeros(4, bool), FIRST[1])
    found = over_runs(nothing, nothing)
    assert found["mscr"].value is found["loss"].value is None
    assert found["mscr"].reason == "no image is right when clean"
    assert found["accuracy_change"].value is not None


def test_resplits_count_distinct_images() -> None:
    factors = {"samples": np.array([[0, 1, 2, 3], [4, 1, 2, 3]]), "num_samples": 6, "resplit": 0.25}
    found = over_runs(FIRST, SECOND, **factors)
    assert found["mscr"].value == pytest.approx(100 * (5.5 - 7) / 7, abs=1e-12)
    assert found["mscr"].n == 5  # of six, image 5 is in no run
    assert found["loss"].n == 5
    assert found["loss"].detail["images_flipped"] == 2


def test_runs_of_other_sizes_are_refused() -> None:
    with pytest.raises(ShapeError, match="as many in each"):
        over_runs(FIRST, (np.ones(3, bool), np.ones((2, 3), bool)))


RNG = np.random.default_rng(3)
TARGETS = RNG.integers(-1, 7, 80)
RANKS = RNG.integers(0, 8, (5, 80)) * RNG.integers(0, 2, (5, 80))


def test_accuracies_of_one_run_are_those_of_single_evaluations() -> None:
    found = accuracies_of_runs([RANKS], TARGETS[None], Factors(), num_classes=7)
    among = TARGETS >= 0
    alone = [top1(RANKS, TARGETS, num_classes=7), top5(RANKS, TARGETS, num_classes=7),
             balanced_accuracy(RANKS[:, among], TARGETS[among], num_classes=7),
             per_class(RANKS[:, among], TARGETS[among], num_classes=7)]  # fmt: skip
    assert list(found) == [value.name for value in alone]
    for value in alone:
        own = found[value.name]
        assert (own.value, own.ci_low, own.ci_high) == pytest.approx((value.value, value.ci_low, value.ci_high))
        assert (own.n, own.method) == (value.n, value.method)
    assert found["top1"].detail == alone[0].detail
    assert found["worst_class_accuracy"].detail["class_index"] == alone[3].detail["class_index"]


def test_every_run_has_its_own_targets() -> None:
    """Re-splits: images 0 to 3 have classes 0, 0, 1, 1, and each run sees one class."""
    samples, classes = np.array([[0, 1], [3, 2]]), np.array([0, 0, 1, 1])
    ranks = [np.array([[0, 1]]), np.array([[0, 0]])]
    factors = Factors(samples=samples, num_samples=4, resplit=1.0)
    found = accuracies_of_runs(ranks, classes[samples], factors, num_classes=2)
    assert found["top1"].value == pytest.approx(75)
    assert found["balanced_accuracy"].value == pytest.approx((50 + 100) / 2)
    worst = found["worst_class_accuracy"]
    assert (worst.value, worst.n, worst.detail["class_index"]) == (pytest.approx(50), 2, 0)
    assert [(row["value"], row["n"]) for row in worst.detail["classes"]] == [(50, 2), (100, 2)]
    assert found["top5"].reason


def test_accuracies_without_images_are_undefined() -> None:
    found = accuracies_of_runs([np.zeros((1, 0), int)], np.zeros((1, 0), int), Factors(), num_classes=9)
    assert {value.reason for value in found.values()} == {"there are no images"}


def test_ranks_of_other_images_are_refused() -> None:
    with pytest.raises(ShapeError, match="per run"):
        accuracies_of_runs([RANKS], TARGETS[None, :5], Factors(), num_classes=7)
