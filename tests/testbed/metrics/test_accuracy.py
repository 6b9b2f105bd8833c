"""Ranks, predictions and accuracies against hand-computed values."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from testbed.errors import DataError, ShapeError
from testbed.metrics import accuracy, comparison
from testbed.metrics.accuracy import (
    accuracy_topk,
    balanced_accuracy,
    best_ranks,
    per_class,
    predictions,
    target_ranks,
    top1,
    top5,
)
from testbed.metrics.intervals import clopper_pearson, wilson
from testbed.separation import nearest


def test_rank_counts_larger_logits_and_equal_ones_of_lower_index() -> None:
    logits = np.array([[1, 3, 2], [2, 2, 2], [2, 2, 2], [5, 5, 1], [0, -0.0, 0]], np.float32)
    assert target_ranks(logits, np.array([0, 0, 2, 1, 1])).tolist() == [2, 0, 2, 1, 1]
    assert predictions(logits).tolist() == [1, 0, 0, 0, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_row_with_a_nonfinite_logit_has_no_prediction_and_the_last_rank(bad: float) -> None:
    logits = np.array([[9, 1, bad], [9, 1, 0]], np.float32)
    assert target_ranks(logits, np.array([0, 0])).tolist() == [3, 0]
    assert predictions(logits).tolist() == [-1, 0]


def test_logits_are_compared_in_float32() -> None:
    logits = np.array([[1.0, 1.0 + 1e-12]])
    assert target_ranks(logits, np.array([1])).tolist() == [1]
    assert predictions(logits).tolist() == [0]


def test_ranks_and_predictions_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    logits, targets = rng.integers(0, 5, (101, 7)).astype(np.float32), rng.integers(0, 7, 101)
    larger = (logits > logits[np.arange(101), targets][:, None]).sum(1)
    equal = (logits == logits[np.arange(101), targets][:, None]) & (np.arange(7) < targets[:, None])
    monkeypatch.setattr(accuracy, "_BLOCK", 20)
    assert np.array_equal(target_ranks(logits, targets), larger + equal.sum(1))
    assert np.array_equal(predictions(logits), logits.argmax(1))
    assert np.array_equal(target_ranks(logits, targets) == 0, predictions(logits) == targets)
    assert target_ranks(logits, targets).dtype == predictions(logits).dtype == np.int32


def test_no_rows_give_no_ranks() -> None:
    assert target_ranks(np.zeros((0, 3), np.float32), np.zeros(0, int)).shape == (0,)
    assert predictions(np.zeros((0, 3), np.float32)).shape == (0,)


@pytest.mark.parametrize(
    ("logits", "targets", "error"),
    [
        (np.zeros((2, 3)), [0], ShapeError),
        (np.zeros(3), [0], ShapeError),
        (np.zeros((2, 0)), [0, 0], ShapeError),
        (np.zeros((2, 3)), [0, 3], DataError),
        (np.zeros((2, 3)), [-2, 0], DataError),
    ],
)
def test_logits_and_targets_that_do_not_fit_are_refused(
    logits: np.ndarray, targets: list[int], error: type[Exception]
) -> None:
    with pytest.raises(error):
        target_ranks(logits, np.array(targets))


def test_accuracy_topk_of_a_worked_example() -> None:
    logits = np.array([[6, 5, 4, 3, 2, 1]] * 4)
    assert accuracy_topk(logits, np.array([0, 0, 4, 5])) == {"top1": 50.0, "top5": 75.0}


def test_accuracy_topk_leaves_out_what_the_number_of_classes_decides() -> None:
    assert accuracy_topk(np.eye(5), np.arange(5)) == {"top1": 100.0}


def test_accuracy_topk_needs_an_image() -> None:
    with pytest.raises(DataError, match="at least one image"):
        accuracy_topk(np.zeros((0, 3)), np.zeros(0))


def test_accuracy_topk_takes_tensors_of_any_precision_and_with_gradients() -> None:
    torch = pytest.importorskip("torch")
    logits = torch.tensor([[0.0, 1.0, 2.0], [3.0, 1.0, 2.0]], dtype=torch.bfloat16, requires_grad=True)
    assert accuracy_topk(logits, torch.tensor([2, 1])) == {"top1": 50.0}


@pytest.mark.parametrize("module", [accuracy, comparison, nearest])
def test_examples_in_docstrings_are_right(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


def test_importing_accuracy_is_light() -> None:
    code = "import sys, testbed.metrics.accuracy; print([m for m in ('torch', 'scipy') if m in sys.modules])"
    path = str(Path(accuracy.__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=path, check=True)
    assert done.stdout.strip() == "[]"


RANKS = np.array([[0, 0, 1, 5, 0, 10], [0, 1, 0, 4, 0, 10]])  # two draws of six images; the last is not finite
TARGETS = np.array([0, 0, 0, 2, 2, 2])


def test_top1_and_top5_are_means_over_images_and_draws() -> None:
    one, five = top1(RANKS, TARGETS, num_classes=10), top5(RANKS, TARGETS, num_classes=10)
    assert (one.name, one.n, one.detail) == ("top1", 6, {"nonfinite": 2})
    assert one.value == pytest.approx(100 * 6 / 12)
    assert (five.name, five.value) == ("top5", pytest.approx(100 * 9 / 12))
    for metric in (one, five):
        assert 0 < metric.ci_low < metric.value < metric.ci_high < 100
        assert metric.method


@pytest.mark.parametrize("num_classes", [2, 5])
def test_top5_is_undefined_with_five_classes_or_fewer(num_classes: int) -> None:
    metric = top5(RANKS[:, :2], TARGETS[:2], num_classes=num_classes)
    assert metric.value is metric.ci_low is metric.ci_high is None
    assert str(num_classes) in metric.reason
    assert top5(np.array([0, 5]), TARGETS[:2], num_classes=6).value == 50


@pytest.mark.parametrize("metric", [top1, top5, balanced_accuracy, per_class])
def test_metrics_without_images_are_undefined_with_a_reason(metric) -> None:  # type: ignore[no-untyped-def]
    value = metric(np.zeros((2, 0), int), np.zeros(0, int), num_classes=10)
    assert value.value is None
    assert (value.n, value.reason) == (0, "there are no images")


def test_ranks_of_other_images_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"\(2, 6\).*5 targets"):
        top1(RANKS, TARGETS[:5], num_classes=10)


def test_balanced_accuracy_is_the_mean_over_classes_with_images() -> None:
    ranks, targets = np.array([0, 0, 0, 1, 0, 1]), np.array([3, 3, 3, 3, 7, 7])
    metric = balanced_accuracy(ranks, targets, num_classes=10)
    assert metric.value == pytest.approx(100 * (3 / 4 + 1 / 2) / 2)
    assert metric.detail == {"num_classes_with_images": 2, "num_classes": 10}
    assert metric.ci_low < metric.value < metric.ci_high


def test_balanced_accuracy_is_no_surer_than_its_smallest_class() -> None:
    targets = np.repeat([0, 1], [1000, 4])
    metric = balanced_accuracy(np.zeros(1004, int), targets, num_classes=2)
    alone = top1(np.zeros(4, int), targets[-4:], num_classes=2)
    assert metric.value == metric.ci_high == 100
    assert metric.ci_low <= 100 - (100 - alone.ci_low) / 2 + 1e-9


def test_per_class_lists_the_classes_and_names_the_first_worst() -> None:
    ranks, targets = np.array([[0, 1, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0]]), np.array([4, 4, 1, 1, 0, 0])
    metric = per_class(ranks, targets, num_classes=5)
    assert (metric.name, metric.value, metric.n) == ("worst_class_accuracy", 50.0, 2)
    assert metric.detail["class_index"] == 1
    rows = metric.detail["classes"]
    assert [(row["class_index"], row["value"], row["n"]) for row in rows] == [(0, 100, 2), (1, 50, 2), (4, 75, 2)]
    assert all(row["ci_low"] < row["ci_high"] for row in rows)


def test_worst_class_interval_allows_for_having_picked_it() -> None:
    ranks, targets = np.zeros(60, int), np.repeat([0, 1, 2], 20)
    ranks[:5] = 1
    metric = per_class(ranks, targets, num_classes=3)
    low, high, _ = clopper_pearson(15, 20, confidence=1 - 0.05 / 3)
    assert (metric.ci_low, metric.ci_high) == pytest.approx((100 * low, 100 * high))
    assert metric.ci_low < metric.detail["classes"][0]["ci_low"]


def test_the_best_of_several_right_classes_counts() -> None:
    logits = np.array([[5, 4, 3, 2], [5, 4, 3, 2], [5, 4, 3, 2], [np.nan, 4, 3, 2], [5, 5, 5, 5]], np.float32)
    sets = np.array([[3, 1, -1], [2, -1, -1], [-1, -1, -1], [1, 2, -1], [2, 1, 3]])
    targets = np.maximum(sets[:, 0], 0)
    assert best_ranks(logits, targets, sets).tolist() == [1, 2, 4, 4, 1]
    assert best_ranks(logits, targets, None).tolist() == target_ranks(logits, targets).tolist()
    with pytest.raises(DataError):
        best_ranks(logits, targets, np.full((5, 1), 4))


def test_images_that_belong_together_are_one_for_the_interval() -> None:
    ranks, targets = np.repeat([0, 0, 0, 1, 1], 20), np.zeros(100, int)
    labels = (None, np.arange(100) // 20)
    alone, together = (top1(ranks, targets, num_classes=2, clusters=clusters) for clusters in labels)
    assert alone.value == together.value == 60.0
    of_five = wilson(3, 5)
    assert together.ci_low is not None
    assert together.ci_high is not None
    assert alone.ci_low is not None
    assert together.ci_high - together.ci_low > 100 * (of_five.high - of_five.low) * 0.9
    assert alone.ci_low > 50 > together.ci_low


def test_a_class_without_a_column_is_wrong_and_no_non_finite_row() -> None:
    found = top1(np.array([0, 3, 3]), np.array([0, -1, 1]), num_classes=3)
    assert found.value == pytest.approx(100 / 3)
    assert found.detail["nonfinite"] == 1
