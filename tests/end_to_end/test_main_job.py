"""The product from its command line: real digits, real classifiers, the store, and the numbers that come out."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import Command

MODELS = ("digits-resnet", "digits-linear", "digits-1nn")
SETTINGS = ("digits", "digits-mscr-linf")
SMALL = ("--draws", 2, "--workers", 0, "--quiet")


def evaluate(command: Command, *arguments: object, models: tuple[str, ...] = MODELS, **variables: str):  # type: ignore[no-untyped-def]
    return command("eval.py", "--models", *models, "--eval-settings", *SETTINGS, *SMALL, *arguments, **variables)


def test_the_table_has_every_model_and_setting_and_a_sentence_each(command: Command) -> None:
    done = evaluate(command)
    assert done.code == 0, done.err
    for model in MODELS:
        assert f"{model}  " in done.out
        assert f"\n{model} loses " in done.out
    told = " ".join(done.out.split())
    assert told.count("under uniform L∞ noise within 0.2176 on 597 samples of digits, half of the minimal class") == 3
    assert "111/255 of all 1,797 samples (train + validation + test)" in told


def test_what_corruptions_cost_is_said_with_the_command_that_tells_more(command: Command) -> None:
    settings = ("digits-c.fog.3_in-memory", "digits-c.contrast.3_in-memory")
    done = command("eval.py", "--models", "digits-linear", "--eval-settings", *settings, *SMALL, "--logdir", "log")
    assert done.code == 0, done.err
    assert "\ndigits-linear keeps " in done.out
    told = done.err.splitlines()[-1]
    assert told == "By corruption and severity: python db.py --corruption-report --logdir log"
    report = command(*told.split("python ")[1].split())
    assert report.code == 0, report.err
    assert "\nfog " in report.out


def test_the_json_object_has_the_documented_form(command: Command) -> None:
    done = evaluate(command, "--json", "--logdir", "log")
    assert done.code == 0, done.err
    result = done.json
    assert set(result) == {"evaluations", "comparisons", "store"}
    assert result["store"] == "log"
    assert len(result["evaluations"]) == len(MODELS) * len(SETTINGS)
    for evaluation in result["evaluations"]:
        assert evaluation["status"] == "complete"
        assert evaluation["n"] == 597
        assert evaluation["num_draws"] == (1 if evaluation["eval_setting"] == "digits" else 2)
        top1 = evaluation["metrics"]["top1"]
        assert 0 <= top1["ci_low"] < top1["value"] < top1["ci_high"] <= 100 or top1["value"] in (0, 100)
        assert top1["method"]
    assert len(result["comparisons"]) == 3 * len(MODELS)
    for comparison in result["comparisons"]:
        assert comparison["metric"] in ("mscr", "loss", "recovery")
        assert comparison["clean_eval_setting"] == "digits"
        assert comparison["epsilon"] == pytest.approx(111 / 255 / 2, abs=1e-12)
        assert comparison["ci_low"] < comparison["ci_high"]


def test_mscr_is_the_published_formula_of_the_saved_logits(command: Command, tmp_path: Path) -> None:
    result = evaluate(command, "--db", "--json").json
    accuracies = {}
    for setting in SETTINGS:
        assert command("db.py", "--save-logits", setting, setting).code == 0
        for entry in json.loads((tmp_path / setting / "index.json").read_text())["models"]:
            with np.load(tmp_path / setting / entry["file"]) as saved:
                assert saved["logits"].dtype == np.float32
                assert saved["logits"].shape == (entry["num_draws"], 597, 10)
                assert len(set(saved["sample_ids"])) == 597
                right = saved["logits"].argmax(axis=2) == saved["targets"]
                accuracies[entry["model"], setting] = right.mean()
    for comparison in (c for c in result["comparisons"] if c["metric"] == "mscr"):
        clean, noisy = (accuracies[comparison["model"], setting] for setting in SETTINGS)
        assert comparison["value"] == pytest.approx(100 * (noisy - clean) / clean, abs=1e-9)


def test_the_clean_parent_is_added_by_itself(command: Command) -> None:
    done = command("eval.py", "--models", "digits-linear", "--eval-settings", "digits-mscr-linf", *SMALL, "--json")
    assert [e["eval_setting"] for e in done.json["evaluations"]] == ["digits", "digits-mscr-linf"]


def test_nothing_is_evaluated_twice_and_more_draws_extend_what_is_there(command: Command, tmp_path: Path) -> None:
    first = evaluate(command, "--db", "--json")
    again = evaluate(command, "--db", "--json")
    assert again.json == first.json
    assert "of" in again.err
    assert "samples are stored already" in again.err
    rows = "select evaluation_id, draw, start, sha256, seconds from logit_shards"  # no two runs take equally long
    with sqlite3.connect(tmp_path / "results" / "testbed.sqlite") as database:
        before = database.execute(rows).fetchall()
    more = evaluate(command, "--db", "--json", "--draws", 3)
    assert {e["num_draws"] for e in more.json["evaluations"]} == {1, 3}
    with sqlite3.connect(tmp_path / "results" / "testbed.sqlite") as database:
        after = database.execute(rows).fetchall()
    assert set(before) < set(after)


def test_print_eval_prints_the_record_of_the_run(command: Command) -> None:
    result = evaluate(command, "--db", "--json").json
    for record in result["evaluations"]:
        done = command("db.py", "--print-eval", record["model"], record["eval_setting"], "--json")
        assert done.json == record


def test_a_log_directory_holds_its_database_and_the_exported_files(command: Command, tmp_path: Path) -> None:
    result = evaluate(command, "--logdir", "out", "--json").json
    assert json.loads((tmp_path / "out" / "metrics.json").read_text()) == result
    assert (tmp_path / "out" / "evaluations.sqlite").exists()
    for setting in SETTINGS:
        entries = json.loads((tmp_path / "out" / "logits" / setting / "index.json").read_text())["models"]
        assert {entry["model"] for entry in entries} == set(MODELS)
    assert not (tmp_path / "results").exists()
    listed = command("db.py", "--logdir", "out", "--list-models-db")
    assert listed.out.split() == sorted(MODELS)


def test_limit_is_a_subset_of_its_own_with_the_same_noise(command: Command, tmp_path: Path) -> None:
    whole = evaluate(command, "--db", "--json", models=("digits-linear",))
    part = evaluate(command, "--db", "--json", "--limit", 50, models=("digits-linear",))
    assert [e["n"] for e in part.json["evaluations"]] == [50, 50]
    assert [e["eval_setting"] for e in part.json["evaluations"]] == ["digits@limit50", "digits-mscr-linf@limit50"]
    assert whole.code == part.code == 0
    rows = {}
    for setting in ("digits-mscr-linf", "digits-mscr-linf@limit50"):
        command("db.py", "--save-logits", setting, "saved-" + setting[-2:])
        entry = json.loads((tmp_path / f"saved-{setting[-2:]}" / "index.json").read_text())["models"][0]
        with np.load(tmp_path / f"saved-{setting[-2:]}" / entry["file"]) as saved:
            rows[setting] = dict(zip(saved["sample_ids"], saved["logits"][1], strict=True))
    for sample, logits in rows["digits-mscr-linf@limit50"].items():
        np.testing.assert_allclose(logits, rows["digits-mscr-linf"][sample], atol=1e-5)


def test_runs_with_several_seeds_share_a_clean_evaluation(command: Command) -> None:
    done = evaluate(command, "--seeds", 0, 1, 2, "--json", models=("digits-linear",))
    assert [e["seed"] for e in done.json["evaluations"]] == [0, 1, 2, 0, 1, 2]
    noisy = [e["metrics"]["top1"]["value"] for e in done.json["evaluations"][3:]]
    assert len(set(noisy)) > 1
    mscr = next(c for c in done.json["comparisons"] if c["metric"] == "mscr")
    clean = done.json["evaluations"][0]["metrics"]["top1"]["value"]
    assert mscr["value"] == pytest.approx(100 * (np.mean(noisy) - clean) / clean, abs=1e-9)


def test_a_model_fitted_per_run_differs_between_seeds(command: Command) -> None:
    done = evaluate(command, "--seeds", 0, 1, "--json", models=("digits-random-forest",))
    first, second = done.json["evaluations"][:2]
    assert (first["seed"], second["seed"]) == (0, 1)
    assert first["metrics"] != second["metrics"]


def test_dry_run_tells_the_plan_and_stores_nothing(command: Command, tmp_path: Path) -> None:
    done = evaluate(command, "--db", "--dry-run")
    assert done.code == 0, done.err
    assert "digits-resnet  digits-mscr-linf  1194 of 1194 samples to evaluate" in done.out
    assert "6 evaluation(s), 5373 samples to evaluate, 0.3 MB to store" in done.out
    assert not (tmp_path / "results").exists()


def test_recompute_gives_every_metric_without_model_or_image(command: Command, tmp_path: Path) -> None:
    evaluate(command, "--db")
    path = tmp_path / "results" / "testbed.sqlite"
    query = "select evaluation_id, name, value, ci_low, ci_high, method, n, detail from metrics order by 1, 2"
    with sqlite3.connect(path) as database:
        before = database.execute(query).fetchall()
        database.execute("update metrics set value = -1, ci_low = null")
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'torchvision', 'timm', 'sklearn', 'PIL', 'safetensors'):\n"
        "            raise RuntimeError(f'{name} was loaded')\n"
        "sys.meta_path.insert(0, Refuse())\n"
    )
    done = command("db.py", "--recompute", PYTHONPATH=str(tmp_path))
    assert done.code == 0, done.err
    assert "6 evaluation(s)" in done.err
    with sqlite3.connect(path) as database:
        assert database.execute(query).fetchall() == before
