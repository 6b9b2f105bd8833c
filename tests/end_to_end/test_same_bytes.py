"""Stored logits are the same bytes however the work is cut up, interrupted or ordered."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import ROOT, Command, environment

MODELS = ("digits-linear", "digits-resnet", "digits-1nn")
SETTINGS = ("digits-mscr-linf", "digits-c.snow.3_in-memory")
DRAWS = 4
NUM_KILLS = int(os.environ.get("TESTBED_TEST_KILLS", "3"))  # how often the same run is killed and resumed
Shards = dict[tuple[str, str, int, int], tuple[str, bytes, bytes]]


def arguments(url: str, *more: object, models: tuple[str, ...] = MODELS) -> list[str]:
    fixed = ["--models", *models, "--eval-settings", *SETTINGS, "--draws", DRAWS, "--db-url", url, "--quiet"]
    return [str(argument) for argument in (*fixed, *more)]


def shards(path: Path) -> Shards:
    """Everything stored of every shard, by model, setting, draw and start."""
    query = """
        select models.name, eval_settings.name, draw, start, sha256, predictions, target_ranks from logit_shards
        join evaluations on evaluations.id = evaluation_id
        join model_versions on model_versions.id = model_version_id
        join models on models.id = model_id
        join setting_versions on setting_versions.id = setting_version_id
        join eval_settings on eval_settings.id = setting_id
    """
    with sqlite3.connect(path) as database:
        return {row[:4]: row[4:] for row in database.execute(query)}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, cache_home: Path) -> Shards:
    folder = tmp_path_factory.mktemp("undisturbed")
    command = [sys.executable, str(ROOT / "eval.py"), *arguments("sqlite:///one.sqlite", "--workers", 1)]
    done = subprocess.run(command, cwd=folder, env=environment(cache_home), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    stored = shards(folder / "one.sqlite")
    assert len(stored) == len(MODELS) * 5 * (1 + len(SETTINGS) * DRAWS)
    return stored


@pytest.mark.parametrize(
    ("workers", "models"), [(0, MODELS), (3, MODELS), (1, MODELS[::-1])], ids=["inline", "three workers", "other order"]
)
def test_same_bytes_for_any_workers_and_order(
    command: Command, tmp_path: Path, undisturbed: Shards, workers: int, models: tuple[str, ...]
) -> None:
    done = command("eval.py", *arguments("sqlite:///other.sqlite", "--workers", workers, models=models))
    assert done.code == 0, done.err
    assert shards(tmp_path / "other.sqlite") == undisturbed


def test_same_bytes_after_kills_and_a_resume(
    command: Command, tmp_path: Path, cache_home: Path, undisturbed: Shards
) -> None:
    path, chance = tmp_path / "killed.sqlite", random.Random(0)
    line = [sys.executable, str(ROOT / "eval.py"), *arguments("sqlite:///killed.sqlite", "--workers", 2)]
    for kill in range(1, NUM_KILLS + 1):
        started = subprocess.Popen(line, cwd=tmp_path, env=environment(cache_home), stderr=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        last = len(undisturbed) - 5  # so that there is something left to kill it at
        wanted = chance.randrange((kill - 1) * last // NUM_KILLS + 1, kill * last // NUM_KILLS + 1)
        while started.poll() is None and (not path.exists() or _num_shards(path) < wanted):
            time.sleep(0.01)
        started.send_signal(signal.SIGKILL)
        assert started.wait() == -signal.SIGKILL, "it had finished before it could be killed"
        kept = shards(path)
        assert len(kept) > 0
        assert kept.items() <= undisturbed.items()
        verified = command("db.py", "--db-url", "sqlite:///killed.sqlite", "--verify")
        assert verified.code == 0, verified.out
    done = command("eval.py", *arguments("sqlite:///killed.sqlite", "--workers", 2))
    assert done.code == 0, done.err
    assert shards(path) == undisturbed
    with sqlite3.connect(path) as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
        assert database.execute("select distinct status from evaluations").fetchall() == [("complete",)]


def _num_shards(path: Path) -> int:
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            return int(database.execute("select count(*) from logit_shards").fetchone()[0])
    except sqlite3.OperationalError:  # its tables are not there yet
        return 0


@pytest.mark.parametrize(("end", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_an_interruption_keeps_what_is_stored_and_the_same_command_resumes(
    command: Command, tmp_path: Path, cache_home: Path, undisturbed: Shards, end: signal.Signals, code: int
) -> None:
    path = tmp_path / "interrupted.sqlite"
    line = [sys.executable, str(ROOT / "eval.py"), *arguments("sqlite:///interrupted.sqlite", "--workers", 1)]
    started = subprocess.Popen(line, cwd=tmp_path, env=environment(cache_home), stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, text=True, start_new_session=True)  # fmt: skip
    while started.poll() is None and (not path.exists() or _num_shards(path) < 5):
        time.sleep(0.01)
    os.killpg(started.pid, end)  # as a terminal or a batch system does: the workers get it too
    _, error = started.communicate(timeout=60)
    assert started.returncode == code
    assert "Interrupted" in error
    assert "Traceback" not in error
    done = command("eval.py", *arguments("sqlite:///interrupted.sqlite", "--workers", 1))
    assert done.code == 0
    assert "are stored already" in done.err
    assert shards(path) == undisturbed


def test_a_killed_workers_unit_is_done_by_another(
    command: Command, tmp_path: Path, undisturbed: Shards, cache_home: Path
) -> None:
    path = tmp_path / "orphan.sqlite"
    line = [sys.executable, str(ROOT / "eval.py"), *arguments("sqlite:///orphan.sqlite", "--workers", 2)]
    started = subprocess.Popen(line, cwd=tmp_path, env=environment(cache_home), stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, text=True)  # fmt: skip
    while started.poll() is None and (not path.exists() or _num_shards(path) < 3):
        time.sleep(0.01)
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
    workers = [pid for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(int(workers[0]), signal.SIGKILL)
    _, error = started.communicate(timeout=120)
    assert started.returncode == 0, error
    assert shards(path) == undisturbed
    with sqlite3.connect(path) as database:
        workers = {row[0] for row in database.execute("select distinct worker from logit_shards")}
    assert any("~1" in worker for worker in workers), "the killed worker had no unit in hand"


def test_another_batch_size_gives_the_same_predictions_and_nearly_the_same_logits(
    command: Command, tmp_path: Path
) -> None:
    saved = {}
    for size in (128, 50):
        url = f"sqlite:///{size}.sqlite"
        done = command("eval.py", *arguments(url, "--batch-size", size, "--workers", 0))
        assert done.code == 0, done.err
        assert command("db.py", "--db-url", url, "--save-logits", SETTINGS[0], f"saved{size}").code == 0
        for path in (tmp_path / f"saved{size}").glob("*.npz"):
            with np.load(path) as arrays:
                saved[size, path.name.rsplit("-", 1)[0]] = arrays["logits"]
    for model in MODELS:
        one, other = saved[128, model], saved[50, model]
        assert (one.argmax(axis=2) == other.argmax(axis=2)).all()
        assert np.abs(one - other).max() <= 1e-5 * np.abs(one).max()
