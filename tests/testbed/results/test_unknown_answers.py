"""Samples without labels, and targets that only a setting's own function can read: no reader counts them as wrong."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from registry import registry
from testbed.claim_language import parse_claim
from testbed.commands.compare import compare
from testbed.commands.corruption import corruption_report
from testbed.commands.precision_report import precision_report as print_precision
from testbed.errors import DataError
from testbed.metrics.corruption import RELATIVE
from testbed.records import MetricValue
from testbed.results import Precision
from testbed.results.claims import claim_rows
from testbed.results.corruption import corruption_grids
from testbed.results.own import own_metrics, without_labels
from testbed.results.pairs import compare_models, pair_record
from testbed.results.precision_report import precision_record, precision_report

RIGHT = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
FOG = np.array([1, 1, 1, 0, 0, 0, 1, 0], bool)
NO_LABELS = "the samples have no labels"


@pytest.fixture
def options(lab: Any) -> dict[str, Any]:
    """The options of db.py for the store."""
    given: dict[str, Any] = dict.fromkeys(("logdir", "cluster_by", "sample_table", "one_sided", "as_json", "baseline",
                                           "on_disk", "well_posed"))  # fmt: skip
    given |= {"variant": "", "db_url": lab.url, "confidence": 0.95, "with_published": (), "compare": ("a", "b")}
    return {**given, "models": (), "datasets": (), "eval_settings": ()}


def two_corruptions(lab: Any, *models: str) -> None:
    """Fog with labels, and snow without."""
    for model in models:
        lab.pair(model, RIGHT, FOG, setting="toy-c.fog.1_in-memory")
    lab.has_labels = False
    for model in models:
        lab.put(model, "toy-c.snow.1_in-memory", FOG)


def test_a_corruption_without_labels_is_in_no_mean_and_told_with_the_reason(
    lab: Any, options: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    two_corruptions(lab, "a", "b")
    (found,) = corruption_grids(lab.store, Precision())
    assert found.undefined == {"toy-c.snow.1_in-memory": NO_LABELS}
    assert [list(model.groups) for model in found.models] == [[("fog", 1)], [("fog", 1)]]
    assert [model.missing for model in found.models] == [{}, {}], "evaluating it again would not help"
    assert corruption_report(options) is None
    assert f"Undefined on toy-c.snow.1_in-memory, because {NO_LABELS}." in capsys.readouterr().out
    corruption_report({**options, "as_json": True})
    (record,) = json.loads(capsys.readouterr().out)["results"]
    assert record["undefined"] == {"toy-c.snow.1_in-memory": NO_LABELS}
    assert record["models"][0]["mean"][RELATIVE]["value"] == 50  # fog alone: 3 of 6


def test_where_no_corruption_has_labels_there_is_no_report(lab: Any, options: Any) -> None:
    lab.has_labels = False
    lab.pair("a", RIGHT, FOG, setting="toy-c.fog.1_in-memory")
    with pytest.raises(DataError, match=f"Undefined on toy-c.fog.1_in-memory, because {NO_LABELS}"):
        corruption_report(options)


def test_two_models_are_compared_where_labels_are_and_the_rest_is_undefined(
    lab: Any, options: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    two_corruptions(lab, "a", "b")
    rows = compare_models(lab.store, ("a", "b"), Precision(), settings=(), datasets=())
    reasons = {(row.evaluation.setting, row.contrast.difference.name): row.reason for row in rows}
    assert {key: reason for key, reason in reasons.items() if reason} == {
        ("toy-c.snow.1_in-memory", name): NO_LABELS for name in ("accuracy", "mscr", "loss")
    }
    record = pair_record(next(row for row in rows if row.reason))
    assert (record["values"], record["difference"]["reason"], record["p_value_holm"]) == ([None, None], NO_LABELS, None)
    compare(options)
    printed = capsys.readouterr().out
    assert f"Undefined on toy-c.snow.1_in-memory, because {NO_LABELS}." in printed
    row = next(line.split() for line in printed.splitlines() if line.startswith("toy-c.snow"))
    assert row[-3:] == ["undefined"] * 3


def test_changed_predictions_need_no_labels_and_the_accuracies_beside_them_do(
    lab: Any, options: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.has_labels = False
    fp32 = {"dtype": "float32", "tf32": False, "device": "cpu", "batch_size": 32}
    lab.put("a", "toy", RIGHT, **fp32)
    lab.put("a", "toy", FOG, **{**fp32, "dtype": "bfloat16"})
    (row,) = precision_report(lab.store, models=(), settings=(), datasets=()).rows
    assert (row.changed.value, row.accuracies, row.reason) == (50, (None, None), NO_LABELS)
    assert precision_record(row)["accuracy_against"] is None
    assert print_precision(options) is None
    assert f"Undefined on toy, because {NO_LABELS}." in capsys.readouterr().out


@pytest.mark.parametrize("claim", ["top1(toy-c.fog.1_in-memory) >= 10%", "loss(toy-c.fog.1_in-memory) <= 90%"])
def test_claims_are_undecided_where_the_clean_images_alone_have_no_labels(lab: Any, claim: str) -> None:
    lab.has_labels = False
    lab.put("a", "toy", RIGHT)
    lab.has_labels = True
    lab.put("a", "toy-c.fog.1_in-memory", FOG)
    (row,) = claim_rows(lab.store, parse_claim(claim), (), Precision(), per_class=False)
    assert (row.verdict, row.answers[""].reason) == ("undecided", NO_LABELS)


def test_what_a_setting_computed_tells_where_its_function_is_not_registered(
    lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database is read without the files that filled it: what these withheld stays so."""
    reason = "3 of 8 targets are none of the setting's 2 classes"
    evaluation = lab.put("a", "toy", RIGHT)
    monkeypatch.setattr(type(evaluation), "label_fault", lambda self: reason)
    assert without_labels(evaluation) == "", "without a function, samples of other classes count as wrong"
    monkeypatch.setattr(registry, "eval_setting", lambda name: SimpleNamespace(metrics_fn=lambda logits: {}))
    withheld = own_metrics(evaluation)
    monkeypatch.undo()
    monkeypatch.setattr(type(evaluation), "label_fault", lambda self: reason)
    lab.store.put_metrics(evaluation.id, withheld)
    assert without_labels(lab.store.evaluation_by_id(evaluation.id)) == reason


def test_votes_tell_abstention_alone_without_labels(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.has_labels = False
    evaluation = lab.put("a", "toy", RIGHT)
    votes = [MetricValue(name=name, value=10.0, n=8) for name in ("abstention", "smoothed_accuracy")]
    monkeypatch.setattr("testbed.results.own.vote_metrics", lambda evaluation: votes)
    found = {value.name: value for value in own_metrics(evaluation)}
    assert found["abstention"].value == 10
    assert (found["smoothed_accuracy"].value, found["smoothed_accuracy"].reason) == (None, NO_LABELS)
