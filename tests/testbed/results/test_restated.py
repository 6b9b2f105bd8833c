"""A setting's own metric that is the bare number of a built-in one leaves that with its interval."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from registry import registry
from testbed.metrics.accuracy import accuracy_topk
from testbed.records import MetricValue
from testbed.results.own import own_metrics

LOGITS = np.array([[3.0, 1, 2], [0, 5, 1], [2, 4, 1], [0, 1, 9]], dtype=np.float32)
TARGETS = np.array([0, 1, 0, 2])


def found(metrics_fn: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, MetricValue]:
    """What is stored of 3 right images of 4."""
    evaluation: Any = SimpleNamespace(
        setting="mine", n=4, num_draws=1, is_current=True, class_names=("a", "b", "c"), model_spec={},
        target_ranks=lambda: np.array([[0, 0, 1, 0]]), targets=lambda: TARGETS, sequences=lambda: None,
        logits=lambda draw: LOGITS, in_setting=lambda logits: logits, folder_targets=lambda: TARGETS,
        sample_ids=lambda: ["1", "2", "3", "4"], model="net", label_space=None,
    )  # fmt: skip
    monkeypatch.setattr(registry, "eval_setting", lambda name: SimpleNamespace(metrics_fn=metrics_fn))
    return {value.name: value for value in own_metrics(evaluation)}


def test_the_ancestors_accuracy_keeps_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    top1 = found(lambda logits, targets: accuracy_topk(logits, targets), monkeypatch)["top1"]
    assert (top1.value, top1.detail.get("source")) == (75, None)
    assert top1.ci_low is not None


@pytest.mark.parametrize("value", [75.001, MetricValue(name="top1", value=75.0, n=4, ci_low=1.0, ci_high=99.0)])
def test_another_number_or_one_with_an_interval_is_the_settings_own(
    value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    top1 = found(lambda logits: {"top1": value}, monkeypatch)["top1"]
    assert top1.detail["source"] == "metrics_fn"
    assert top1.ci_low == (None if value == 75.001 else 1.0)
