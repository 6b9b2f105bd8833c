"""Workers that are killed, crash or hang, and users who press Ctrl-C once or twice: nothing is lost but time."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.conftest import ROOT, Command, environment

PLUGIN = """
import os
import time

import torch

from models.model_base import Model
from registry import registry

WEIGHTS = torch.arange(640.0).reshape(64, 10).sin()

def steady(images, model):
    time.sleep(0.05)
    return images.flatten(1) @ WEIGHTS

def aborting(images, model):
    os.abort()

def endless(images, model):
    time.sleep(1e9)

for classify in (steady, aborting, endless):
    registry.add_model(Model(
        name=classify.__name__, transform=None, classifier_loader=lambda: None, classify=classify, eval_batch_size=32,
        label_space='digits', version='1',
    ))
"""
SETTINGS = ("digits", "digits-noise-linf-0.1")
DRAWS = 4
NUM_SHARDS = 5 * (1 + DRAWS)
PATIENCE = 180.0  # seconds
Shards = dict[tuple[str, int, int], tuple[str, bytes]]


class Program:
    """`eval.py` at work on one database, in a process group of its own, as a terminal or a batch system has it."""

    def __init__(self, folder: Path, home: Path, *, workers: int, models: tuple[str, ...] = ("steady",)) -> None:
        (folder / "models.py").write_text(PLUGIN)
        self.database, self.errors = folder / "store.sqlite", folder / "errors.txt"
        line = [sys.executable, str(ROOT / "eval.py"), "--models", *models, "--eval-settings", *SETTINGS,
                "--plugin", "models.py", "--db-url", "sqlite:///store.sqlite", "--draws", DRAWS, "--quiet",
                "--workers", workers]  # fmt: skip
        with open(self.errors, "w") as stream:
            self.process = subprocess.Popen(list(map(str, line)), cwd=folder, env=environment(home), stderr=stream,
                                            stdout=subprocess.DEVNULL, start_new_session=True)  # fmt: skip

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the program and its workers."""
        os.killpg(self.process.pid, number)

    def until(self, is_so: Callable[[], bool]) -> None:
        """Waits until something is so, while the program runs."""
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            assert self.process.poll() is None, f"it has ended: {self.errors.read_text()}"
            assert time.monotonic() < deadline, f"nothing happens: {self.errors.read_text()}"
            time.sleep(0.01)

    def end(self) -> tuple[int, str]:
        """The exit code, and all that was said."""
        return self.process.wait(PATIENCE), self.errors.read_text()

    def workers(self) -> list[int]:
        """Process ids of the workers."""
        with suppress(FileNotFoundError):
            pid = self.process.pid
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            return [int(child) for child in children if b"spawn_main" in _command_line(int(child))]
        return []

    def num_shards(self) -> int:
        return len(shards(self.database))


def _command_line(pid: int) -> bytes:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def query(database: Path, statement: str) -> list[tuple[object, ...]]:
    try:
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
            return connection.execute(statement).fetchall()
    except sqlite3.OperationalError:  # its tables are not there yet
        return []


def shards(database: Path) -> Shards:
    """Everything stored of every shard, by setting, draw and start."""
    rows = query(
        database,
        """
        select eval_settings.name, draw, start, sha256, predictions from logit_shards
        join evaluations on evaluations.id = evaluation_id
        join setting_versions on setting_versions.id = setting_version_id
        join eval_settings on eval_settings.id = setting_id
        """,
    )
    return {row[:3]: row[3:] for row in rows}  # type: ignore[misc]


Start = Callable[..., Program]


@pytest.fixture
def start(tmp_path: Path, cache_home: Path) -> Iterator[Start]:
    """Starts programs, and leaves none behind."""
    started = []

    def begin(**options: object) -> Program:
        started.append(Program(tmp_path, cache_home, **options))  # type: ignore[arg-type]
        return started[-1]

    yield begin
    for program in started:
        with suppress(ProcessLookupError):
            program.signal(signal.SIGKILL)
        program.process.wait()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, cache_home: Path) -> Shards:
    program = Program(tmp_path_factory.mktemp("undisturbed"), cache_home, workers=0)
    code, error = program.end()
    assert code == 0, error
    stored = shards(program.database)
    assert len(stored) == NUM_SHARDS
    return stored


def test_four_workers_store_the_bytes_of_none(start: Start, undisturbed: Shards) -> None:
    program = start(workers=4)
    code, error = program.end()
    assert code == 0, error
    assert shards(program.database) == undisturbed


def test_workers_that_are_killed_at_random_cost_nothing(start: Start, undisturbed: Shards) -> None:
    program, chance = start(workers=2), random.Random(0)
    for wanted in (2, 8, 14):
        program.until(lambda wanted=wanted: program.num_shards() >= wanted and bool(program.workers()))  # type: ignore[misc]
        os.kill(chance.choice(program.workers()), signal.SIGKILL)
    code, error = program.end()
    assert code == 0, error
    assert shards(program.database) == undisturbed
    assert error.count("was ended by signal SIGKILL") == 3
    assert query(program.database, "select distinct status, attempts from evaluations") == [("complete", 1)]


def test_models_that_crash_or_hang_fail_after_three_attempts_and_the_others_go_on(
    command: Command, tmp_path: Path, undisturbed: Shards
) -> None:
    (tmp_path / "models.py").write_text(PLUGIN)
    done = command("eval.py", "--models", "steady", "aborting", "endless", "--eval-settings", "digits", "--plugin",
                   "models.py", "--db-url", "sqlite:///store.sqlite", "--workers", 2, "--unit-timeout", 3)  # fmt: skip
    assert done.code == 1, done.err
    found = query(
        tmp_path / "store.sqlite",
        """
        select models.name, status, reason from evaluations
        join model_versions on model_versions.id = model_version_id join models on models.id = model_id
        order by models.name
        """,
    )
    assert [row[:2] for row in found] == [("aborting", "failed"), ("endless", "failed"), ("steady", "complete")]
    assert all(str(row[2]).startswith("3 times at samples 0 to 2: worker cpu/") for row in found[:2])
    assert "was ended by signal SIGABRT" in str(found[0][2])
    assert "gave no sign of life for 3 s; --unit-timeout allows more" in str(found[1][2])
    assert done.err.count("\nlost at endless on digits: worker cpu/") == 3
    assert done.err.splitlines()[-2].startswith("Failed: aborting on digits: ")
    assert done.err.splitlines()[-1].startswith("Failed: endless on digits: ")
    clean = {place: stored for place, stored in undisturbed.items() if place[0] == "digits"}
    assert shards(tmp_path / "store.sqlite") == clean


def test_a_first_interruption_stores_what_the_worker_is_at_and_the_same_command_goes_on(
    start: Start, undisturbed: Shards
) -> None:
    program = start(workers=1)
    program.until(lambda: program.num_shards() >= 3)
    kept, workers = program.num_shards(), program.workers()
    program.signal(signal.SIGINT)
    code, error = program.end()
    assert code == 130
    assert "what the workers are at is finished and stored. A second Ctrl-C or SIGTERM stops at once." in error
    assert error.splitlines()[-1] == "Interrupted. What was stored stays; the same command goes on from there."
    assert kept < program.num_shards() <= kept + 3, "the unit that the worker was at is not stored, or many are"
    assert shards(program.database).items() <= undisturbed.items()
    assert query(program.database, "select * from locks") == []
    assert query(program.database, "select exit_status from runs") == [(130,)]
    assert not any(_command_line(pid) for pid in workers)
    again = start(workers=1)
    code, error = again.end()
    assert code == 0, error
    assert "are stored already" in error
    assert shards(again.database) == undisturbed


@pytest.mark.parametrize("workers", [0, 1], ids=["inline", "a worker that starts"])
def test_a_second_interruption_ends_at_once(start: Start, workers: int) -> None:
    program = start(workers=workers, models=("endless",))
    program.until(lambda: bool(query(program.database, "select * from evaluations")))
    program.until(lambda: len(program.workers()) == workers)
    time.sleep(1 if workers else 4)  # until the unit is in hand; inline, until this process is at it: it never ends
    program.signal(signal.SIGINT)
    program.until(lambda: "A second Ctrl-C" in program.errors.read_text())
    time.sleep(0.5)
    assert program.process.poll() is None, "it did not wait for what is at work"
    pids, begin = program.workers(), time.monotonic()
    program.signal(signal.SIGTERM)
    code, error = program.end()
    assert time.monotonic() - begin < 5
    assert code == 143, error
    assert "Traceback" not in error
    assert query(program.database, "select * from locks") == []
    assert not any(_command_line(pid) for pid in pids)


def test_workers_do_not_outlive_a_driver_that_is_killed(start: Start) -> None:
    program = start(workers=1, models=("endless",))
    program.until(lambda: bool(program.workers()))
    (worker,) = program.workers()
    time.sleep(6)  # it is at the unit that never ends
    program.process.send_signal(signal.SIGKILL)
    program.process.wait()
    deadline = time.monotonic() + PATIENCE
    while _command_line(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _command_line(worker)
