"""How much of the logits is stored: the same numbers from less, more when it is asked for, and never a silent loss."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import Command, Done

from testbed.store.store import Store

NUM_SAMPLES = 597 * 3  # clean, and two draws
NEEDS_LOGITS = """
from registry import registry
from eval_settings.eval_setting_base import EvalSetting, StandardDataset

def mean_logit(logits, targets):
    return {'mean_logit': float(logits.mean())}

registry.add_eval_setting(EvalSetting(
    name='few', dataset=StandardDataset(name='digits'), idx_subsample_list=range(40), metrics_fn=mean_logit,
    store_logits='topk:2'))
registry.add_metric('largest', lambda logits: logits.max())
registry.add_metric('first', lambda predictions: predictions[0])
"""


def evaluate(command: Command, *arguments: Any, setting: str = "digits-noise-linf-0.1", **variables: str) -> Done:
    return command("eval.py", "--models", "digits-linear", "--eval-settings", setting, "--draws", 2, "--workers", 0,
                   "--quiet", *arguments, **variables)  # fmt: skip


def stored(tmp_path: Path, name: str = "results/testbed.sqlite") -> Store:
    return Store.open(tmp_path / name, read_only=True)


def labels(tmp_path: Path, name: str) -> list[Any]:
    query = "select evaluation_id, draw, start, predictions, target_ranks from logit_shards order by 1, 2, 3"
    with sqlite3.connect(tmp_path / name) as database:
        return database.execute(query).fetchall()


def num_bytes(tmp_path: Path) -> int:
    with sqlite3.connect(tmp_path / "results" / "testbed.sqlite") as database:
        found: int = database.execute("select coalesce(sum(length(payload)), 0) from logit_payloads").fetchone()[0]
    return found


def test_less_gives_the_same_numbers_and_more_is_evaluated_when_it_is_asked_for(
    command: Command, tmp_path: Path
) -> None:
    reference = evaluate(command, "--db-url", "reference.sqlite", "--json").json
    for policy, size in ((("--store-logits", "predictions"), 0), ((), 0), (("--store-logits", "topk:3"), 3 * 4 + 8),
                         (("--store-logits", "full"), 40)):  # fmt: skip
        done = evaluate(command, "--db", "--json", *policy)
        assert done.code == 0, done.err
        assert done.json["evaluations"] == reference["evaluations"]
        assert done.json["comparisons"] == reference["comparisons"]
        assert num_bytes(tmp_path) == NUM_SAMPLES * size
        assert labels(tmp_path, "results/testbed.sqlite") == labels(tmp_path, "reference.sqlite")
        if not policy:
            assert f"{NUM_SAMPLES} of {NUM_SAMPLES} samples are stored already" in done.err
            assert "keeps more" not in done.err
        if policy[1:] == ("topk:3",):
            assert done.err.count("keeps more, so that is evaluated again.") == 2
            assert "Notice: digits-linear on digits is stored as predictions; topk:3 keeps more, so" in done.err
            with stored(tmp_path) as store:
                top = {e.setting: (e.top_logits(), e.targets()) for e in store.list_evaluations()}
    with stored(tmp_path) as store:
        for found in store.list_evaluations():
            assert (found.status, found.logit_codecs) == ("complete", ("f32",))
            logits, (kept, targets) = found.logits(), top[found.setting]
            assert np.array_equal(kept.classes, np.argsort(-logits, axis=1, kind="stable")[:, :3])
            softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            exact = softmax[np.arange(len(targets)), targets]
            assert kept.target_probabilities == pytest.approx(exact, rel=1e-4, abs=1e-30)


def test_a_plan_tells_its_bytes_and_is_refused_where_the_disk_cannot_hold_them(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import shutil\n"
        f"free = {NUM_SAMPLES} * 28\n"  # what float16 takes: two bytes for each of ten logits, and eight for labels
        "shutil.disk_usage = lambda path: shutil._ntuple_diskusage(10**9, 10**9 - free, free)\n"
    )
    full = evaluate(command, "--db", PYTHONPATH=str(tmp_path))
    assert full.code == 3
    assert f"The plan stores {NUM_SAMPLES * 48:,} bytes of logits but " in full.err
    assert f"results has {NUM_SAMPLES * 28:,} bytes free." in full.err
    assert "ask for less with --store-logits" in full.err
    assert num_bytes(tmp_path) == 0
    half = evaluate(command, "--dry-run", "--store-logits", "float16", PYTHONPATH=str(tmp_path))
    assert half.code == 0, half.err
    assert f"{NUM_SAMPLES} samples to evaluate, 0.1 MB to store (float16), about" in half.out


def test_another_policy_is_a_wrong_request(command: Command) -> None:
    done = evaluate(command, "--store-logits", "f16")
    assert done.code == 2
    assert "--store-logits is 'f16'. Use one of full, lossless, float16, topk:K, predictions" in done.err


def test_a_setting_has_its_own_policy_and_metrics_of_lost_logits_say_so(command: Command, tmp_path: Path) -> None:
    (tmp_path / "few.py").write_text(NEEDS_LOGITS)
    done = evaluate(command, "--plugin", "few.py", "--json", setting="few")
    assert done.code == 1, "the setting's own metrics failed"
    metrics = done.json["evaluations"][0]["metrics"]
    assert metrics["top1"]["value"] == 90.0
    assert metrics["first"]["reason"] is None
    for name in ("metrics_fn", "largest"):
        assert metrics[name]["value"] is None
        assert "keeps the largest logits only (--store-logits topk:2): ask for top_logits" in metrics[name]["reason"]
    assert not (tmp_path / "results" / "log" / "logits").exists(), "there are none to write"
    saved = command("db.py", "--save-logits", "few", "out", "--logdir", "results/log")
    assert saved.code == 2
    assert "1 of 1 evaluation(s) have not all logits, so none were written" in saved.err
    assert not (tmp_path / "out").exists()
    more = evaluate(command, "--plugin", "few.py", "--json", "--store-logits", "float16", setting="few")
    metrics = more.json["evaluations"][0]["metrics"]
    assert metrics["mean_logit"]["value"] is not None
    assert metrics["largest"]["value"] is not None
    assert "metrics_fn" not in metrics
    index = json.loads((tmp_path / "results" / "log" / "logits" / "few" / "index.json").read_text())
    assert index["models"][0]["stored_as"] == ["f16"]
