"""Which columns, targets and names count where a setting looks at some classes, or at groups of columns."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from testbed.class_subset import (
    class_sublist,
    columns_in_subset,
    columns_of,
    has_groups,
    names_in_subset,
    padded_label_sets,
    stored_sublist,
    targets_in_subset,
    tensor_in_subset,
)
from testbed.errors import DefinitionError
from testbed.records import ClassSublist

DOGS: ClassSublist = ((4, 1), 0, (2, 5))  # of six columns; the fourth one does not count
LOGITS = np.array([[0, 7, 2, 9, 4, 5], [1, -3, -2, 0, -1, -9]], np.float32)


def test_a_group_has_the_largest_logit_of_its_columns_and_the_sum_of_their_votes() -> None:
    assert columns_in_subset(LOGITS, DOGS, is_cut=False).tolist() == [[7, 0, 5], [-1, 1, -2]]
    summed = columns_in_subset(LOGITS, DOGS, is_cut=False, sums_votes=True)
    assert summed.tolist() == [[11, 0, 7], [-4, 1, -11]]


def test_plain_columns_are_picked_in_their_order() -> None:
    assert columns_in_subset(LOGITS, (5, 0), is_cut=False).tolist() == [[5, 0], [-9, 1]]
    assert columns_in_subset(LOGITS, None, is_cut=False) is LOGITS


def test_a_model_that_cuts_answers_by_column_or_by_class() -> None:
    cut = LOGITS[:, columns_of(DOGS)]
    merged = columns_in_subset(LOGITS, DOGS, is_cut=False)
    assert columns_in_subset(cut, DOGS, is_cut=True).tolist() == merged.tolist()
    assert columns_in_subset(merged, DOGS, is_cut=True) is merged


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_group_with_a_column_that_is_not_finite_is_not_finite(bad: float) -> None:
    logits = LOGITS.copy()
    logits[0, 1], logits[1, 3] = bad, bad  # the second is in a column that does not count
    found = columns_in_subset(logits, DOGS, is_cut=False)
    assert np.isfinite(found).tolist() == [[False, True, True], [True, True, True]]


def test_tensors_are_merged_as_arrays_are() -> None:
    import torch

    found = tensor_in_subset(torch.from_numpy(LOGITS), DOGS, is_cut=False)
    assert found.tolist() == columns_in_subset(LOGITS, DOGS, is_cut=False).tolist()


def test_targets_of_the_label_space_become_positions_and_others_are_none() -> None:
    assert targets_in_subset(np.arange(6), DOGS, num_classes=6).tolist() == [1, 0, 2, -1, 0, 2]
    sets = padded_label_sets([(3,), (1, 3, 5)])
    assert sets.tolist() == [[3, -1, -1], [1, 3, 5]]
    assert targets_in_subset(sets, DOGS, num_classes=6).tolist() == [[-1, -1, -1], [0, -1, 2]]


def test_targets_of_a_data_set_of_these_classes_are_positions_already() -> None:
    assert targets_in_subset(np.array([2, 0, -1]), DOGS, num_classes=3).tolist() == [2, 0, -1]
    overlapping: ClassSublist = ((0, 1), (1, 2))
    assert targets_in_subset(np.array([1]), overlapping, num_classes=2).tolist() == [1]
    with pytest.raises(DefinitionError, match="column 1 in two classes"):
        targets_in_subset(np.array([1]), overlapping, num_classes=3)


def test_a_group_is_named_by_its_first_column() -> None:
    names = ("cat", "pug", "car", "tree", "husky", "bus")
    assert names_in_subset(names, DOGS) == ("husky +1", "cat", "car +1")
    assert names_in_subset(("dog", "cat", "vehicle"), DOGS) == ("dog", "cat", "vehicle")
    assert names_in_subset(names, (7, (6, 1))) == ("class 7", "class 6 +1")


def test_columns_are_the_same_after_json_and_from_any_kind_of_numbers() -> None:
    written: Any = [np.array([4, 1]), np.int64(0), range(5, 6), [2]]
    found = class_sublist(written)
    assert found == ((4, 1), 0, 5, 2), "a group of one column is that column"
    assert stored_sublist(json.loads(json.dumps(found))) == found
    assert stored_sublist(None) is class_sublist(None) is None
    assert has_groups(found)
    assert not has_groups((4, 1, 0))


@pytest.mark.parametrize("wrong", [[], [()], [(1, 1)], [-1], [1.5], ["ab"], [(0, None)]])
def test_what_is_no_column_is_refused(wrong: Any) -> None:
    with pytest.raises(DefinitionError, match=r"mine (is empty|has the entry)"):
        class_sublist(wrong, where="mine")
