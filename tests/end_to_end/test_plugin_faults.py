"""A fault in a user's file costs what that file was for, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Command

METRICS = """
from registry import registry
from eval_settings.eval_setting_base import EvalSetting, StandardDataset

def own_metrics(logits, targets):
    {body}

registry.add_eval_setting(EvalSetting(
    name='few', dataset=StandardDataset(name='digits'), idx_subsample_list=range(40), metrics_fn=own_metrics,
    version='1',
))
registry.add_metric('not-finite', lambda logits: float('nan'))
registry.add_metric('no-number', lambda logits: 'many')
registry.add_metric('mean-rank', lambda target_ranks: target_ranks.mean())
"""
EVALUATE = ("--models", "digits-linear", "--eval-settings", "few", "--workers", 0, "--db", "--quiet", "--json")


def test_a_metric_that_fails_is_missing_with_its_reason_and_can_be_computed_later(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "few.py").write_text(METRICS.format(body="raise ValueError('no such layer')"))
    done = command("eval.py", *EVALUATE, "--plugin", "few.py")
    assert done.code == 1, done.err
    assert "Failed: metrics_fn of few for digits-linear: ValueError: no such layer" in done.err
    (evaluation,) = done.json["evaluations"]
    assert evaluation["status"] == "complete"
    status = command("db.py", "--status").out
    assert "metrics_fn failed: digits-linear on few: ValueError: no such layer" in status
    metrics = evaluation["metrics"]
    reasons = {name: metrics[name]["reason"] for name in metrics if metrics[name]["value"] is None}
    assert reasons.pop("metrics_fn") == "ValueError: no such layer"
    assert reasons.pop("not-finite") == "the function returned nan"
    assert reasons.pop("no-number").startswith("ValueError: could not convert string")
    assert reasons == {}
    assert metrics["mean-rank"]["value"] == pytest.approx(0.05, abs=0.2)
    assert metrics["top1"]["value"] == pytest.approx(95, abs=5)
    (tmp_path / "few.py").write_text(METRICS.format(body="return {'own': 42.0}"))
    assert command("db.py", "--recompute", "--plugin", "few.py").code == 0
    shown = command("db.py", "--print-eval", "digits-linear", "few", "--json").json["metrics"]
    assert shown["own"]["value"] == 42.0
    assert "metrics_fn" not in shown
    assert shown["top1"] == metrics["top1"]


def test_a_broken_file_hides_its_own_definitions_only_and_is_named_where_one_is_asked_for(
    command: Command, tmp_path: Path, families: Path
) -> None:
    (tmp_path / "broken.py").write_text("import sys\nsys.exit('leaving')\n")
    (tmp_path / "torn.py").write_text("def f(:\n")
    broken = ("--plugin", "broken.py", "torn.py")
    done = command("db.py", "--list-models-registry", *broken)
    assert done.code == 0
    assert "digits-linear\n" in done.out
    assert done.err.count("was not imported") == 2
    done = command("eval.py", "--models", "lost", "--eval-settings", "digits", "--logdir", "log", *broken)
    assert done.code == 2
    (line,) = [line for line in done.err.splitlines() if line.startswith("Error: ")]
    assert "Unknown model 'lost'" in line
    assert "2 file(s) failed to import: broken.py (SystemExit: leaving, line 2), torn.py (SyntaxError" in line
