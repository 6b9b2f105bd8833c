"""`db.py` from its command line: administration, repair, upgrade, and what it prints."""

from __future__ import annotations

import gzip
import importlib
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest
from tests.conftest import ROOT, Command

from testbed.commands.database import ACTIONS, action

DATABASE = "results/testbed.sqlite"
EVALUATE = (
    "--models",
    "digits-linear",
    "digits-1nn",
    "--eval-settings",
    "digits",
    "--limit",
    40,
    "--workers",
    0,
    "--db",
)
SETTING = "digits@limit40"
PLUGIN = """
import torch
from registry import registry
from models.model_base import Model

def classify(images, model):
    return images.flatten(1)[:, :10]

registry.add_model(
    Model(
        name={name!r}, transform=None, classifier_loader=lambda: None, eval_batch_size=16, classify=classify,
        label_space="digits", version={version!r},
    )
)
"""


@pytest.fixture(scope="session")
def evaluated() -> dict[str, Path]:
    return {}


@pytest.fixture
def database(command: Command, tmp_path: Path, evaluated: dict[str, Path], tmp_path_factory: Any) -> Path:
    """Two evaluations in the shared database; evaluated once, and copied for every test."""
    path = tmp_path / DATABASE
    path.parent.mkdir()
    if not evaluated:
        assert command("eval.py", *EVALUATE, "--quiet").code == 0
        evaluated["path"] = tmp_path_factory.mktemp("evaluated") / "store.sqlite"
        assert command("db.py", "--compact").code == 0
        shutil.copy(path, evaluated["path"])
    else:
        shutil.copy(evaluated["path"], path)
    return path


def test_the_order_of_actions_is_that_of_the_options() -> None:
    main: click.Command = importlib.import_module("db").main
    names = [parameter.name for parameter in main.params]
    assert [name for name in names if name in ACTIONS] == list(ACTIONS)
    for name in ACTIONS:
        assert callable(action(name))


def test_several_actions_stop_at_the_first_that_fails(command: Command, database: Path) -> None:
    done = command("db.py", "--remove-model", "digits-lineal", "--list-models-db", "--json")
    assert done.code == 2
    assert done.out == ""
    assert (
        done.err == "Error: There is no model 'digits-lineal' in the store. Did you mean digits-linear or digits-1nn?\n"
    )
    done = command("db.py", "--list-models-db", "--remove-model", "digits-linear")
    assert (done.code, done.out) == (0, "digits-1nn\n"), "the order is that of the list, not of the command line"


def test_removing_restoring_and_purging(command: Command, database: Path) -> None:
    assert command("db.py", "--remove-evaluation", "digits-linear", SETTING).code == 0
    assert command("db.py", "--print-eval", "digits-linear", SETTING).code == 2
    assert command("db.py", "--remove-eval-setting", SETTING).code == 0
    assert command("db.py", "--restore", SETTING).code == 0, "and with it what was removed of it"
    assert command("db.py", "--print-eval", "digits-linear", SETTING).code == 0
    assert command("db.py", "--remove-model", "digits-1nn").code == 0
    done = command("db.py", "--purge")
    assert done.code == 2
    assert "would delete 1 model(s), 0 setting(s) and 1 evaluation(s), 1,920 bytes of results" in done.err
    assert "--override" in done.err
    done = command("db.py", "--purge", "--override", "--compact")
    assert "Deleted 1 model(s)" in done.err
    before, after = (int(word.replace(",", "")) for word in done.err.splitlines()[-1].split() if word[0].isdigit())
    assert before >= after == database.stat().st_size
    assert command("db.py", "--restore", "digits-1nn").code == 2


def test_evaluating_what_was_removed_brings_it_back_without_running_it(command: Command, database: Path) -> None:
    command("db.py", "--remove-evaluation", "digits-1nn", SETTING)
    done = command("eval.py", *EVALUATE, "--quiet")
    assert "80 of 80 samples are stored already" in done.err
    assert command("db.py", "--print-eval", "digits-1nn", SETTING).code == 0


def test_a_renamed_model_is_found_by_its_renamed_definition(command: Command, tmp_path: Path) -> None:
    for name, version in (("one", "1"), ("two", "1")):
        (tmp_path / f"{name}.py").write_text(PLUGIN.format(name=name, version=version))

    def evaluate(name: str) -> str:
        options = ("--eval-settings", "digits", "--limit", 40, "--workers", 0, "--db")
        done = command("eval.py", "--models", name, *options, "--plugin", f"{name}.py")
        assert done.code == 0, done.err
        return done.err

    assert "done: one" in evaluate("one")
    done = command("db.py", "--rename-model", "one", "two", "--plugin", "one.py", "two.py")
    assert done.code == 2
    assert "has a model 'one' and another 'two'" in done.err
    done = command("db.py", "--rename-model", "one", "two", "--plugin", "one.py")
    assert "Notice: its definition is still named one" in done.err
    assert "40 of 40 samples are stored already" in evaluate("two")
    assert "done: one" in evaluate("one"), "under its old name it is another model"
    assert command("db.py", "--list-models-db").out == "one\ntwo\n"


def test_a_damaged_piece_is_found_taken_out_and_computed_again(command: Command, database: Path) -> None:
    shown = command("db.py", "--print-eval", "digits-linear", SETTING, "--json").json
    with closing(sqlite3.connect(database)) as connection:
        query = "select payload, evaluation_id from logit_payloads order by evaluation_id limit 1"
        payload, evaluation = connection.execute(query).fetchone()
        damaged = bytes([payload[0] ^ 1]) + payload[1:]
        connection.execute("update logit_payloads set payload = ? where evaluation_id = ?", (damaged, evaluation))
        connection.commit()
    done = command("db.py", "--verify")
    assert done.code == 1
    assert done.out == (
        f"Evaluation {evaluation} ('digits-linear' on '{SETTING}'): logits (checksum) of draw 0, samples 0 to 40, are "
        "damaged.\n"
    )
    assert "--verify --repair" in done.err
    assert command("db.py", "--save-logits", SETTING, "out").code == 3, "a damaged piece is never handed out"
    done = command("db.py", "--verify", "--repair", "--json")
    assert (done.code, done.json["num_reopened"]) == (0, 1)
    assert command("db.py", "--status", "--json").json["totals"]["interrupted"] == 1
    done = command("eval.py", *EVALUATE, "--quiet")
    assert "40 of 80 samples are stored already" in done.err
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute(query).fetchone() == (payload, evaluation)
    assert command("db.py", "--verify").code == 0
    assert command("db.py", "--print-eval", "digits-linear", SETTING, "--json").json == shown


def test_a_file_that_may_not_grow_is_one_line_and_the_same_command_resumes(
    command: Command, database: Path, tmp_path: Path
) -> None:
    evaluate = ("--models", "digits-linear", "--eval-settings", "digits-noise-linf-0.1", "--workers", 0, "--db")
    assert command("eval.py", *evaluate, "--dry-run").code == 0, "images are decoded before the limit is set"
    limited = tmp_path / "limited.py"
    limited.write_text(
        "import resource, runpy, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2_700_000, 2_700_000))\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    done = command(str(limited), ROOT / "eval.py", *evaluate)
    assert done.code == 3, done.err
    (line,) = [line for line in done.err.splitlines() if line.startswith("Error: ")]
    assert "testbed.sqlite" in line
    assert "free on its disk" in line
    assert "what was stored is kept" in line
    assert command("db.py", "--verify").code == 0
    done = command("eval.py", *evaluate)
    assert done.code == 0, done.err
    assert "samples are stored already" in done.err
    assert command("db.py", "--verify").code == 0


def test_an_earlier_revision_is_refused_and_upgraded(command: Command, tmp_path: Path) -> None:
    asset = ROOT / "tests" / "testbed" / "store" / "assets" / "v0.1.0.sqlite.gz"
    (tmp_path / "old.sqlite").write_bytes(gzip.decompress(asset.read_bytes()))
    done = command("db.py", "--db-url", "old.sqlite", "--list-models-db")
    assert done.code == 3
    assert "has schema v0.1.0" in done.err
    assert "Run `python db.py --upgrade`" in done.err
    done = command("db.py", "--db-url", "old.sqlite", "--upgrade", "--list-models-db")
    assert (done.code, done.out) == (0, "digits-1nn\ndigits-linear\n")
    assert "old.sqlite.v0.1.0.bak" in done.err
    assert command("db.py", "--db-url", "old.sqlite.v0.1.0.bak", "--list-models-db").code == 3
    assert command("db.py", "--db-url", "old.sqlite", "--upgrade").code == 0, "and nothing is to be done any more"


def test_what_it_shows(command: Command, database: Path) -> None:
    done = command("db.py", "--status")
    assert [line.split() for line in done.out.splitlines()[1:4]] == [
        ["digits-1nn", "1", "0", "0", "0", "0", "0"],
        ["digits-linear", "1", "0", "0", "0", "0", "0"],
        ["all", "2", "0", "0", "0", "0", "0"],
    ]
    assert done.out.splitlines()[4] == "Nobody writes to it."
    card = command("db.py", "--show-model", "digits-linear", "--json").json
    assert (card["name"], card["label_space"], card["facts"]["num_outputs"]) == ("digits-linear", "digits", 10)
    assert [(one["eval_setting"], one["status"], one["n"]) for one in card["evaluations"]] == [
        (SETTING, "complete", 40)
    ]
    card = command("db.py", "--show-setting", SETTING, "--json").json
    assert (card["dataset"], card["split"], card["n"]) == ("digits", "test", 40)
    assert command("db.py", "--show-setting", "no-such-setting").code == 2
    text = command("db.py", "--show-model", "digits-1nn").out
    assert "name: digits-1nn\n" in text
    assert f"digits-1nn on {SETTING}, seed 0: complete, top-1 97.50 %" in text
    places = {one["what"]: one for one in command("db.py", "--paths", "--json").json}
    assert places["database"]["bytes"] >= database.stat().st_size
    assert Path(places["database"]["path"]).resolve() == database.resolve()
    assert set(places) == {"database", "caches", "image banks", "data sets", "checkpoints"}
    assert places["image banks"]["whole"] >= 1
    assert places["image banks"]["partial"] == 0


def test_differences_to_the_registry(command: Command, database: Path, tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(PLUGIN.format(name="toy", version=None))
    done = command("db.py", "--add-model", "toy", "--add-eval-setting", "digits", "--plugin", "toy.py")
    assert done.code == 0, done.err
    (tmp_path / "toy.py").write_text(PLUGIN.format(name="toy", version=None) + "# another file\n")
    found = {(one["kind"], one["name"]): one["state"] for one in command(
        "db.py", "--diff-registry", "--plugin", "toy.py", "--json").json}  # fmt: skip
    assert found["model", "toy"] == "changed"
    assert ("model", "digits-linear") not in found
    assert found["model", "digits-resnet"] == "registry only"
    assert ("eval-setting", "digits") not in found
    assert ("eval-setting", SETTING) not in found
    done = command("db.py", "--diff-registry")
    assert "model toy: store only\n" in done.out
    assert "digits\n" in command("db.py", "--list-parent-eval-settings-registry").out
