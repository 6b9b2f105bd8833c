"""A setting's own metric that is the bare number of a built-in one leaves that with its interval."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from registry import registry
from testbed.errors import DefinitionError
from testbed.metrics.accuracy import accuracy_topk
from testbed.records import MetricValue
from testbed.results.own import own_metrics
from testbed.results.users_metrics import metrics_fn_failure

LOGITS = np.array([[3.0, 1, 2], [0, 5, 1], [2, 4, 1], [0, 1, 9]], dtype=np.float32)
TARGETS = np.array([0, 1, 0, 2])
PREDICTIONS = np.array([[0, 1, 1, 2]])
PREDICTIONS.flags.writeable = False  # as those of a store are


def found(
    metrics_fn: Any, monkeypatch: pytest.MonkeyPatch, fault: str = "", shift: Any = None
) -> dict[str, MetricValue]:
    """What is stored of 3 right images of 4. Args: fault: of the labels. shift: of the setting."""
    evaluation: Any = SimpleNamespace(
        setting="mine", n=4, num_draws=1, is_current=True, class_names=("a", "b", "c"), model_spec={},
        target_ranks=lambda: np.array([[0, 0, 1, 0]]), targets=lambda: TARGETS, sequences=lambda: None,
        logits=lambda draw: LOGITS.copy(), in_setting=lambda logits: logits, folder_targets=TARGETS.copy,
        sample_ids=lambda: ["1", "2", "3", "4"], model="net", label_space=None,
        label_fault=lambda: fault, dataset_targets=lambda: TARGETS, metrics=list, shift=shift,
        predictions=lambda: PREDICTIONS,
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


OTHERS = "2 of 4 targets are none of the setting's 3 classes"


def test_built_in_metrics_are_withheld_where_only_the_settings_function_knows_what_is_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metrics = found(lambda logits: {"top1": 80.0}, monkeypatch, OTHERS)
    assert metrics["top1"].value == 80
    assert all(metrics[name].reason == OTHERS for name in ("top5", "balanced_accuracy", "worst_class_accuracy"))
    assert found(None, monkeypatch, OTHERS)["top1"].value == 75, "without one, samples of other classes count as wrong"
    assert found(lambda target_ranks: {}, monkeypatch, OTHERS)["top1"].value == 75, "it relies on the targets itself"


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (None, "the function returned NoneType, where a dict of numbers is expected"),
        ({"mine": [1, 2]}, "TypeError: float() argument must be"),
        (KeyError("videos"), "KeyError: 'videos'"),
        (SystemExit("leaving"), "SystemExit: leaving"),
    ],
)
def test_a_function_that_fails_leaves_its_reason_and_no_number_of_another_label_space(
    returned: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def metrics_fn(logits: Any, targets: Any) -> Any:
        targets += 1
        if isinstance(returned, BaseException):
            raise returned
        return returned

    metrics = found(metrics_fn, monkeypatch, OTHERS)
    assert metrics_fn_failure(metrics.values()).startswith(reason)
    assert all(value.value is None for value in metrics.values())
    assert TARGETS.tolist() == [0, 1, 0, 2]


def test_a_function_may_change_what_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def metrics_fn(logits: Any, targets: Any, predictions: Any, target_ranks: Any, image_paths: Any) -> Any:
        for argument in (logits, targets, predictions, target_ranks):
            argument[:] = 0
        image_paths.clear()
        return {"own": 1.0, 5: 2.0, "remark": "max"}

    metrics = found(metrics_fn, monkeypatch)
    assert (metrics["own"].value, metrics["5"].value, metrics["top1"].value) == (1, 2, 75)
    assert PREDICTIONS.tolist() == [[0, 1, 1, 2]]


@pytest.mark.parametrize("name", ["mscr", "loss", "recovery"])
def test_a_name_that_a_comparison_with_clean_has_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored under it, the number of the comparison would take the place of the function's."""
    metrics = found(lambda logits: {name: 1.0}, monkeypatch, shift="noise")
    assert f"returned '{name}'" in metrics_fn_failure(metrics.values())
    assert found(lambda logits: {name: 1.0}, monkeypatch)[name].value == 1, "a clean setting is compared with none"
    with pytest.raises(DefinitionError, match=f"Metric '{name}' has the name of a comparison"):
        registry.add_metric(name, lambda logits: 1.0)
