"""Results in and out, from the command line: the README's example, export, import and merge of real evaluations."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import ROOT, Command, environment

from testbed.store.store import Store

MODELS = ("digits-1nn", "digits-linear")
SETTINGS = ("digits", "digits-mscr-linf")


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory, cache_home: Path) -> Path:
    """A folder with a database of two models on clean and noisy digits."""
    folder = tmp_path_factory.mktemp("evaluated")
    evaluation = ("--models", *MODELS, "--eval-settings", *SETTINGS, "--draws", "2", "--workers", "0")
    done = subprocess.run(
        [sys.executable, str(ROOT / "eval.py"), *evaluation, "--db", "--quiet"],
        capture_output=True, text=True, cwd=folder, env=environment(cache_home), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def folder(evaluated: Path, tmp_path: Path) -> Path:
    """The test's own folder with a copy of the database."""
    shutil.copytree(evaluated / "results", tmp_path / "results")
    return tmp_path


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_example_of_the_readme_runs(folder: Path) -> None:
    code = re.findall(r"<!-- notebook -->\n```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
    (folder / "src").symlink_to(ROOT / "src")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    assert all(model in done.stdout for model in MODELS)
    assert done.stdout.endswith("(597, 10)\n")


def test_the_long_table_holds_what_print_eval_prints(command: Command, folder: Path) -> None:
    assert command("db.py", "--export", "all.csv").code == 0
    table = rows(folder / "all.csv")
    record = command("db.py", "--print-eval", "digits-linear", "digits-mscr-linf", "--json").json
    found = {row["metric"]: row for row in table
             if (row["model"], row["eval_setting"]) == ("digits-linear", "digits-mscr-linf")}  # fmt: skip
    for name, metric in record["metrics"].items():
        assert float(found[name]["value"]) == metric["value"]
        assert int(found[name]["n"]) == metric["n"]
    assert found["top1"]["n"] == "597"
    assert {"mscr", "loss", "recovery"} <= set(found)
    clean = next(row for row in table if (row["model"], row["eval_setting"]) == ("digits-linear", "digits"))
    assert found["mscr"]["clean_setting_fingerprint"] == clean["setting_fingerprint"]
    assert found["mscr"]["clean_eval_setting"] == "digits"
    refused = command("db.py", "--export", "all.csv")
    assert (refused.code, "Give --override" in refused.err) == (2, True)


def test_the_grid_has_the_models_and_settings(command: Command, folder: Path) -> None:
    assert command("db.py", "--export", "grid.csv", "--wide").code == 0
    grid = rows(folder / "grid.csv")
    assert [row["model"] for row in grid] == sorted(MODELS)
    assert [*grid[0]] == ["model", *sorted(SETTINGS)]


def test_published_numbers_stand_beside_ours_only_by_name(command: Command, folder: Path) -> None:
    (folder / "grid.csv").write_text("model,digits\ndigits-linear,12.5\nother,\n")
    done = command("db.py", "--import-csv", "grid.csv", "--source", "paper")
    assert (done.code, done.err.strip()) == (0, "Read 2 cells of grid.csv under the source 'paper': 2 new, 1 empty.")
    assert "0 new" in command("db.py", "--import-csv", "grid.csv", "--source", "paper").err
    command("db.py", "--export", "ours.csv", "--wide")
    assert [row["model"] for row in rows(folder / "ours.csv")] == sorted(MODELS)
    command("db.py", "--export", "both.csv", "--wide", "--with-published", "paper")
    both = {(row["model"], row["source"]): row["digits"] for row in rows(folder / "both.csv")}
    assert both["digits-linear", "paper"] == "12.5"
    assert both["other", "paper"] == ""
    assert float(both["digits-linear", ""]) > 90
    unknown = command("db.py", "--export", "x.csv", "--with-published", "papers")
    assert (unknown.code, "Did you mean paper?" in unknown.err) == (2, True)


def test_saved_logits_come_back_with_the_same_metrics_and_comparisons(command: Command, folder: Path) -> None:
    entries = []
    for setting in reversed(SETTINGS):  # the shifted one first: its comparison has to wait for the clean one
        assert command("db.py", "--save-logits", setting, setting).code == 0
        index = json.loads((folder / setting / "index.json").read_text())["models"]
        (entry,) = [one for one in index if one["model"] == "digits-linear"]
        (folder / "in").mkdir(exist_ok=True)
        shutil.copy(folder / setting / entry["file"], folder / "in" / f"{setting}.npz")
        entries.append({"model": "elsewhere", "eval_setting": setting, "file": f"{setting}.npz"})
    (folder / "in" / "index.json").write_text(json.dumps({"models": entries}))
    done = command("db.py", "--import-logits", "in")
    assert (done.code, done.err.strip()) == (0, "Imported the logits of 2 evaluation(s) of elsewhere.")
    command("db.py", "--export", "all.csv")
    values: dict[str, list[tuple[str, ...]]] = {"digits-linear": [], "elsewhere": []}
    for row in rows(folder / "all.csv"):
        if row["model"] in values:
            values[row["model"]].append(tuple(row[name] for name in ("eval_setting", "metric", "value", "n", "reason")))
    assert values["elsewhere"] == values["digits-linear"]


def test_a_merge_takes_over_everything_once_and_names_what_differs(command: Command, folder: Path) -> None:
    (folder / "results").rename(folder / "other")
    url = f"sqlite:///{folder / 'other' / 'testbed.sqlite'}"
    planned = command("db.py", "--merge", url, "--dry-run")
    assert planned.code == 3, "a dry run makes no database"
    done = command("db.py", "--merge", url)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Added: 1 data sets, 2 models, 2 model versions, 2 settings, 2 setting versions, 4 eval")
    again = command("db.py", "--merge", url)
    assert again.out == "Added: nothing. Held by both: 4 evaluations.\n"
    for database in ("other", "results"):
        command("db.py", "--export", f"{database}.csv", "--db-url", folder / database / "testbed.sqlite")
    assert (folder / "other.csv").read_bytes() == (folder / "results.csv").read_bytes()


def test_two_halves_become_the_whole_with_its_metrics_and_comparisons(command: Command, folder: Path) -> None:
    command("db.py", "--export", "whole.csv")
    (folder / "other").mkdir()
    shutil.copy(folder / "results" / "testbed.sqlite", folder / "other" / "testbed.sqlite")
    for name, lost in (("results", 1), ("other", 0)):
        with closing(sqlite3.connect(folder / name / "testbed.sqlite")) as connection:
            noisy = [
                (row[0],) for row in connection.execute("select id from evaluations where num_draws = 2").fetchall()
            ]
            change = "status = 'running', num_metrics = 0, digest = null"  # as the store changes a row
            connection.executemany(f"update evaluations set {change} where id = ?", noisy)  # noqa: S608
            connection.executemany("delete from metrics where evaluation_id = ?", noisy)
            for table in ("logit_payloads", "logit_shards"):
                statement = f"delete from {table} where evaluation_id = ? and draw = {lost}"  # noqa: S608
                connection.executemany(statement, noisy)
            connection.commit()
        with Store.open(folder / name / "testbed.sqlite") as store, store.writing():
            pass  # rows without a digest get theirs
    done = command("db.py", "--merge", "other/testbed.sqlite")
    assert (done.code, done.err) == (0, "")
    assert "2 evaluations completed" in done.out
    command("db.py", "--export", "merged.csv")
    assert (folder / "merged.csv").read_bytes() == (folder / "whole.csv").read_bytes()


def test_a_conflict_is_listed_and_the_exit_code_is_one(command: Command, folder: Path) -> None:
    (folder / "other").mkdir()
    shutil.copy(folder / "results" / "testbed.sqlite", folder / "other" / "testbed.sqlite")
    with closing(sqlite3.connect(folder / "other" / "testbed.sqlite")) as connection:
        connection.execute("update logit_shards set labels_sha256 = 'x' where draw = 1 and start = 0")
        connection.commit()
    command("db.py", "--export", "before.csv")
    done = command("db.py", "--merge", "other/testbed.sqlite")
    assert done.code == 1
    assert "Conflict: digits-1nn on digits-mscr-linf" in done.err
    assert done.err.count("It was kept as it is here.") == 2
    command("db.py", "--export", "after.csv")
    assert (folder / "after.csv").read_bytes() == (folder / "before.csv").read_bytes()
