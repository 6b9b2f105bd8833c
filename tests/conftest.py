"""What tests share: the product run as its users run it, in a folder and with a cache of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.postgresql import postgresql

__all__ = ["postgresql"]  # a fixture of all tests

ROOT = Path(__file__).resolve().parents[1]
OFFLINE = {"TESTBED_NO_DOWNLOAD": "1"}
os.environ.update(OFFLINE)  # a test that needs data which is not there says so, and never waits for a network
if "PYTEST_XDIST_WORKER" in os.environ:  # a process per core, whose threads would get in each other's way
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Done]


def environment(home: Path) -> dict[str, str]:
    """The environment of a command: the user's own, less what would make it depend on this machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TESTBED_")}
    return {**kept, **OFFLINE, "TESTBED_HOME": str(home), "CUDA_VISIBLE_DEVICES": "", "PYTHONWARNINGS": "default"}


@pytest.fixture(scope="session", autouse=True)
def _hear_interruptions() -> None:
    """A suite that a shell started in the background ignores Ctrl-C, and so would the programs that tests interrupt."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that the commands of all tests share, as they share a user's."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def families(cache_home: Path) -> Path:
    """The folder of that cache with the names of all families of models: for a test that lists them in a command,
    which would spend seconds on importing the libraries that they come from."""
    from registry import registry
    from testbed.definitions import load_definitions
    from testbed.family_names import FOLDER, family_names

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TESTBED_HOME", str(cache_home))
        load_definitions()
        family_names(registry.model_families)
    return cache_home / FOLDER


@pytest.fixture
def command(tmp_path: Path, cache_home: Path) -> Command:
    """Runs `eval.py`, `db.py` or `train.py` in the test's folder: `command('eval.py', '--models', ...)`."""

    def run(script: str, *arguments: object, timeout: float = 300, **variables: str) -> Done:
        done = subprocess.run(
            [sys.executable, str(ROOT / script), *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(cache_home) | variables,
            timeout=timeout,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run
