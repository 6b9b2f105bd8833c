"""A worker's predictions and ranks where a setting looks at groups of columns, or several classes are right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.workbench import NUM_SAMPLES, Workbench, logits, unit, workbench
from torch import Tensor, nn

from testbed.class_subset import targets_in_subset
from testbed.engine.unit import UnitFailure
from testbed.records import Shard

__all__ = ["workbench"]  # a fixture

GROUPS = [(3, 1), 0]  # of four columns; the third one does not count


class Four(nn.Module):
    """Four logits of an image: values of some of its pixels."""

    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1)[:, [0, 5, 10, 15]]


def cut(images: Tensor, model: Any, class_sublist: Any) -> Tensor:
    assert class_sublist == [3, 1, 0], "groups are merged afterwards"
    return model(images)[:, class_sublist]


def run(workbench: Workbench, *, label_sets: Any = None, store_logits: str = "full", **fields: Any) -> Shard:
    """What a model of four outputs is found to answer to a setting with two classes."""
    number = workbench.task(class_sublist=GROUPS)
    targets = np.arange(NUM_SAMPLES, dtype=np.int32) % 4
    task = replace(
        workbench.tasks[number],
        num_classes=4,
        targets=targets_in_subset(targets, ((3, 1), 0), num_classes=4),
        label_sets=None if label_sets is None else targets_in_subset(label_sets, ((3, 1), 0), num_classes=4),
    )
    workbench.tasks[number] = task
    model = workbench.model("four", Four, **fields)
    outcome = workbench.worker().run(unit(number, model, store_logits=store_logits)).outcomes[model]
    assert isinstance(outcome, Shard), outcome
    return outcome


def full(workbench: Workbench) -> Any:
    """All four logits of the first task's samples."""
    samples = np.load(workbench.tasks[0].bank.path).reshape(NUM_SAMPLES, -1)
    return samples[:, [0, 5, 10, 15]] / np.float32(255)


@pytest.mark.parametrize("fields", [{}, {"classify": cut}], ids=["full width", "cut by the model"])
def test_a_group_is_predicted_by_its_largest_logit(workbench: Workbench, fields: dict[str, Any]) -> None:
    shard = run(workbench, **fields)
    every = full(workbench)
    merged = np.stack([every[:, [3, 1]].max(axis=1), every[:, 0]], axis=1)
    assert shard.predictions.tolist() == merged.argmax(axis=1).tolist()
    targets = np.array([1, 0, -1, 0])[np.arange(NUM_SAMPLES) % 4]
    wanted = np.where(targets < 0, 2, targets != merged.argmax(axis=1))
    assert shard.target_ranks.tolist() == wanted.tolist()
    assert shard.num_outputs == (3 if fields else 4), "what the model gave is stored"


def test_a_model_that_votes_has_its_votes_summed(workbench: Workbench) -> None:
    shard = run(workbench, answers="votes")
    every = full(workbench)
    summed = np.stack([every[:, 3] + every[:, 1], every[:, 0]], axis=1)
    assert shard.predictions.tolist() == summed.argmax(axis=1).tolist()
    assert summed.argmax(axis=1).tolist() != np.stack([every[:, [3, 1]].max(1), every[:, 0]], 1).argmax(1).tolist()


def test_any_right_class_makes_a_sample_right(workbench: Workbench) -> None:
    labels = np.tile([[0, -1, -1], [1, 2, -1], [2, 3, 0], [2, -1, -1]], (NUM_SAMPLES // 4, 1)).astype(np.int32)
    shard = run(workbench, label_sets=labels)
    choices = shard.predictions
    right = [{1}, {0}, {0, 1}, set()]
    wanted = [0 if choice in right[i % 4] else 1 if right[i % 4] else 2 for i, choice in enumerate(choices)]
    assert shard.target_ranks.tolist() == wanted


def test_the_largest_logits_that_are_kept_are_those_of_the_groups(workbench: Workbench) -> None:
    assert run(workbench, store_logits="topk:1").num_outputs == 2


def test_a_model_with_too_few_columns_is_a_wrong_request(workbench: Workbench) -> None:
    number = workbench.task(class_sublist=[(0, 3), 1])
    model = workbench.model("three")
    outcome = workbench.worker().run(unit(number, model)).outcomes[model]
    assert isinstance(outcome, UnitFailure)
    assert outcome.is_request_error
    assert f"has 3 outputs but 'workbench-{number}' looks at class 3" in outcome.reason


def test_a_model_may_merge_the_groups_itself(workbench: Workbench) -> None:
    def merged(images: Tensor, model: Any, class_sublist: Any) -> Tensor:
        return model(images)[:, :2]

    shard = run(workbench, classify=merged)
    assert shard.num_outputs == 2
    assert shard.predictions.tolist() == full(workbench)[:, :2].argmax(axis=1).tolist()


def test_plain_classes_are_stored_as_before(workbench: Workbench) -> None:
    number = workbench.task(class_sublist=[2, 0])
    workbench.tasks[number] = replace(workbench.tasks[number], targets=np.tile([1, -1], NUM_SAMPLES // 2))
    model = workbench.model("sums")
    result = workbench.worker().run(unit(number, model))
    found = logits(result, model)
    assert found.shape == (NUM_SAMPLES, 3)
    outcome = result.outcomes[model]
    assert isinstance(outcome, Shard)
    assert outcome.predictions.tolist() == found[:, [2, 0]].argmax(axis=1).tolist()
