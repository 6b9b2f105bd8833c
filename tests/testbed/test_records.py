"""Records are checked when they are built."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.errors import DataError, DefinitionError
from testbed.records import NORMS, Samples, Shift


def shift(**fields: Any) -> Shift:
    return Shift(family="f", name="s", clean_eval_setting="clean", **fields)


def test_a_shift_may_count_values_but_a_separation_does_not() -> None:
    assert shift(norm="l0", epsilon=0.1).norm == "l0"
    assert "l0" not in NORMS
    with pytest.raises(
        DefinitionError, match=r"Shift 's' in l0 has no epsilon, and no separation gives it one\. Set it"
    ):
        shift(norm="l0")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"severity": 6}, r"Shift 's' has severity 6\. Severities go from 1 to 5"),
        ({"norm": "l3"}, r"Shift 's' has norm 'l3'\. Use one of linf, l2, l1, l0"),
        ({"epsilon": -0.1}, r"Shift 's' has epsilon -0\.1\. It must be 0 or a positive number"),
        ({"epsilon": float("nan")}, "Shift 's' has epsilon nan"),
    ],
)
def test_an_impossible_shift_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        shift(**fields)


def samples(label_sets: Any) -> Samples:
    return Samples(
        dataset="several", split="test", items=np.zeros((3, 2)), targets=np.array([0, 2, 1]), color_mode=None,
        sample_ids=("a", "b", "c"), class_names=tuple("xyz"), fingerprint="f", label_sets=label_sets,
    )  # fmt: skip


CONTENT: dict[str, Any] = {"dataset": "d", "split": "test", "items": np.zeros((2, 2)), "color_mode": None,
                           "sample_ids": ("a", "b"), "class_names": ("x",), "fingerprint": "f"}  # fmt: skip


def test_samples_may_have_no_labels_at_all() -> None:
    assert Samples(**CONTENT, targets=None).targets.tolist() == [-1, -1]
    with pytest.raises(DataError, match="targets from -1 to 0"):
        Samples(**CONTENT, targets=np.array([0, -1]))


@pytest.mark.parametrize(
    "targets",
    [[(0, 0), (0, 0)], [(0,), (0, 0)], [{"label": 0}] * 2, {"a": 0, "b": 0}, ["0", "0"], [0.5, 0.0], [None, 0]],
)
def test_targets_that_are_no_class_indices_are_refused_with_what_to_give(targets: Any) -> None:
    with pytest.raises(DataError, match=r"the targets [\[{].* Give each sample the index of its class; .* label set"):
        Samples(**CONTENT, targets=targets)


@pytest.mark.parametrize("targets", [[0, 0], (0, 0), np.zeros(2), np.zeros(2, np.uint8)])
def test_class_indices_may_come_in_any_sequence(targets: Any) -> None:
    assert Samples(**CONTENT, targets=targets).take(np.array([1])).targets.tolist() == [0]


def test_label_sets_are_taken_along_with_their_samples() -> None:
    found = samples(((0,), (2, 1), (1, 0))).take(np.array([2, 1]))
    assert found.label_sets == ((1, 0), (2, 1))
    assert found.sample_ids == ("c", "b")
    assert samples(None).take(np.array([2])).label_sets is None


@pytest.mark.parametrize(
    ("label_sets", "message"),
    [
        (((0,), (2,)), "3 samples but 2 label sets"),
        (((0,), (1, 2), (1,)), r"'b' has the target 2 and the label set \[1, 2\]\. The set must name the target first"),
        (((0,), (2, 2), (1,)), "no class twice"),
        (((0,), (), (1,)), "must name the target first"),
        (((0,), (2, 3), (1,)), r"\[2, 3\]\. .* beyond the 3 that there are, counted from 0"),
        (((0,), (2, -1), (1,)), r"\[2, -1\]\. .* beyond the 3 that there are"),
    ],
)
def test_label_sets_that_do_not_fit_the_targets_are_refused(label_sets: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        samples(label_sets)
