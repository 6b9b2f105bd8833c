"""How many predictions change against fp32: counted by hand, against the fp32 that is most alike."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from testbed.commands.precision_report import precision_report as printed
from testbed.errors import UnknownNameError
from testbed.results.precision_report import PrecisionReport, precision_record, precision_report

RIGHT = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
OTHER = np.array([1, 1, 1, 1, 1, 0, 1, 0], bool)  # two classes: right is otherwise wherever the prediction is
FP32 = {"dtype": "float32", "tf32": False, "device": "cpu", "batch_size": 32}
BF16 = {**FP32, "dtype": "bfloat16"}
CUDA = {**FP32, "device": "cuda"}


def report(lab: Any, **asked: Any) -> PrecisionReport:
    return precision_report(lab.store, **{"models": (), "settings": (), "datasets": (), **asked})


def test_changed_predictions_are_counted_against_fp32(lab: Any) -> None:
    lab.put("net", "toy", RIGHT, **FP32)
    lab.put("net", "toy", OTHER, **BF16)
    (row,) = report(lab).rows
    assert row.words == ("bfloat16 on cpu", "float32 on cpu")
    assert row.changed.value == 25
    assert row.changed.detail == {"num_changed": 2, "num_predictions": 8, "num_draws": 1}
    assert row.changed.ci_low < 25 < row.changed.ci_high
    assert row.accuracies == (75, 75)
    assert precision_record(row)["num_changed"] == 2


def test_the_interval_is_wilsons_where_enough_changes(lab: Any) -> None:
    lab.num_samples = 100
    lab.put("net", "toy", np.ones(100, bool), **FP32)
    lab.put("net", "toy", np.arange(100) >= 20, **BF16)
    (row,) = report(lab).rows
    assert (row.changed.ci_low, row.changed.ci_high) == pytest.approx((13.3367, 28.8829), abs=1e-3)
    assert row.changed.method == "wilson"
    assert row.accuracies == (80, 100)


def test_draws_and_runs_of_an_image_are_not_more_images(lab: Any) -> None:
    draws = np.stack([RIGHT, RIGHT])
    for seed in range(3):
        lab.put("net", "toy-mscr-linf", draws, **FP32, noise_seed=seed)
        lab.put("net", "toy-mscr-linf", np.stack([RIGHT, OTHER]), **BF16, noise_seed=seed)
    (row,) = report(lab).rows
    assert (len(row.runs), row.changed.detail["num_predictions"], row.changed.detail["num_changed"]) == (3, 48, 6)
    assert row.changed.value == 12.5
    assert row.changed.ci_high > 40  # eight images say little, however often each is asked


def test_only_draws_and_runs_that_both_have_are_compared(lab: Any) -> None:
    lab.put("net", "toy-mscr-linf", np.stack([RIGHT, RIGHT, RIGHT]), **FP32)
    lab.put("net", "toy-mscr-linf", OTHER, **BF16)
    lab.put("net", "toy-mscr-linf", OTHER, **BF16, noise_seed=1)
    (row,) = report(lab).rows
    assert (len(row.runs), row.changed.detail["num_predictions"]) == (1, 8)


def test_the_reference_is_of_the_same_device_and_batch_size_if_there_is_one(lab: Any) -> None:
    lab.put("net", "toy", RIGHT, **FP32)
    lab.put("net", "toy", RIGHT, **{**CUDA, "batch_size": 64})
    lab.put("net", "toy", RIGHT, **CUDA)
    lab.put("net", "toy", OTHER, **{**CUDA, "dtype": "float16"})
    *_, half = report(lab).rows
    assert dict(half.reference.numerics) == {**CUDA, "threads": 1}
    lab.put("net", "toy", OTHER, **{**CUDA, "tf32": "convolutions", "batch_size": 64})
    *_, default = report(lab).rows
    assert default.words == ("float32, TF32 in convolutions, on cuda", "float32 on cuda")
    assert default.reference.numerics["batch_size"] == 64


def test_fp32_of_other_batch_sizes_and_devices_is_compared_with_the_first(lab: Any) -> None:
    lab.put("net", "toy", RIGHT, **FP32)
    lab.put("net", "toy", OTHER, **{**FP32, "batch_size": 64})
    lab.put("net", "toy", RIGHT, **CUDA)
    assert [row.words for row in report(lab).rows] == [
        ("float32 on cpu, batch size 64", "float32 on cpu, batch size 32"), ("float32 on cuda", "float32 on cpu"),
    ]  # fmt: skip


def test_what_was_never_evaluated_in_fp32_is_told(lab: Any) -> None:
    lab.put("net", "toy", RIGHT, **BF16)
    lab.put("net", "toy-mscr-linf", RIGHT, **{**FP32, "tf32": True})
    lab.put("other", "toy", RIGHT, **FP32)
    found = report(lab)
    assert (list(found.rows), found.missing) == ([], {"toy": ["net"], "toy-mscr-linf": ["net"]})


def test_models_settings_and_data_sets_are_chosen(lab: Any) -> None:
    for name in ("net-a", "net-b"):
        for setting in ("toy", "toy-mscr-linf"):
            lab.put(name, setting, RIGHT, **FP32)
            lab.put(name, setting, OTHER, **BF16)
    assert len(report(lab).rows) == 4
    assert [row.evaluation.model for row in report(lab, models=("*-a",), settings=("toy",)).rows] == ["net-a"]
    for what, name, asked, hint in (
        ("Model", "net-c", "models", "Did you mean net-"),
        ("Setting", "toys", "settings", "Did you mean toy"),
        ("Data set", "elsewhere", "datasets", ".*--list-eval-settings-db"),
    ):
        with pytest.raises(UnknownNameError, match=f"^{what} '{name}' has no complete evaluation there. {hint}"):
            report(lab, **{asked: (name,)})


@pytest.fixture
def options(lab: Any) -> dict[str, Any]:
    given = dict.fromkeys(("logdir", "as_json"))
    return {**given, "db_url": lab.url, "confidence": 0.95, "models": (), "datasets": (), "eval_settings": ()}


def test_the_table_has_counts_intervals_and_both_accuracies(lab: Any, options: Any, capsys: Any) -> None:
    lab.put("net", "toy", RIGHT, **FP32)
    lab.put("net", "toy", [1, 1, 1, 1, 1, 1, 1, 0], **BF16)
    assert printed(options) is None
    out = capsys.readouterr().out
    (row,) = [line for line in out.splitlines() if line.startswith("net ")]
    assert row.split()[:9] == ["net", "toy", "bfloat16", "on", "cpu", "float32", "on", "cpu", "8"]
    assert "12.50 [" in row
    assert row.split()[-2:] == ["87.50", "75.00"]
    assert "95 % intervals over images" in " ".join(out.split())


def test_json_has_every_number(lab: Any, options: Any, capsys: Any) -> None:
    lab.put("net", "toy", RIGHT, **FP32)
    lab.put("net", "toy", OTHER, **BF16)
    printed({**options, "as_json": True})
    found = json.loads(capsys.readouterr().out)
    (row,) = found["results"]
    assert (row["num_changed"], row["num_predictions"], row["n"], row["seeds"]) == (2, 8, 8, [0])
    assert (row["numerics"]["dtype"], row["against"]["dtype"]) == ("bfloat16", "float32")
    assert row["changed"]["ci_low"] < row["changed"]["value"] < row["changed"]["ci_high"]
    assert (row["accuracy"], row["accuracy_against"], found["confidence"]) == (75, 75, 0.95)


def test_what_is_missing_comes_with_the_command_that_fills_it(lab: Any, options: Any, capsys: Any) -> None:
    lab.put("net", "toy", RIGHT, **FP32)
    with pytest.raises(UnknownNameError, match=r"--models MODEL --eval-settings SETTING .*--precision bf16"):
        printed(options)
    lab.put("net", "toy-mscr-linf", RIGHT, **BF16)
    with pytest.raises(UnknownNameError, match=r"Not stored in fp32: net on toy-mscr-linf. Run: .* --precision fp32"):
        printed(options)
    lab.put("net", "toy", OTHER, **BF16)
    assert printed(options) == 1
    assert "Not stored in fp32: net on toy-mscr-linf" in capsys.readouterr().err
