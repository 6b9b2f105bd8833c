"""Several programs that evaluate into one database at once: every evaluation is made, and none twice."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT, Command, environment

from testbed.store.store import Store
from testbed.store.verification import verify

PLANS = (
    (("digits-linear", "digits-1nn"), ("digits",)),
    (("digits-1nn",), ("digits", "digits-noise-linf-0.1")),
    (("digits-linear",), ("digits-noise-linf-0.1",)),
    (("digits-linear", "digits-1nn"), ("digits-noise-linf-0.1", "digits-mscr-linf")),
)
SMALL = ("--limit", "40", "--draws", "2", "--workers", "0", "--quiet")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_four_overlapping_plans_at_once(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, cache_home: Path, command: Command
) -> None:
    """Two wait for their turn; two are refused where they come too late, and run again as the message says."""
    url = f"sqlite:///{tmp_path / 'store.sqlite'}"
    if kind == "postgresql":
        url = request.getfixturevalue("postgresql").new_database()

    def arguments(number: int, *more: str) -> list[str]:
        models, settings = PLANS[number]
        return ["--models", *models, "--eval-settings", *settings, "--db-url", url, *SMALL, *more]

    with ExitStack() as stack:
        waiting = [["--wait"] * (number < 2) for number in range(4)]
        started = [
            stack.enter_context(_start(arguments(number, *waiting[number]), tmp_path, cache_home))
            for number in range(4)
        ]
        for number, process in enumerate(started):
            _, err = process.communicate(timeout=240)
            code = process.returncode
            while code != 0:
                assert number >= 2, err
                assert code == 3, err
                assert "is in use by process" in err
                again = command("eval.py", *arguments(number), timeout=240)
                code, err = again.code, again.err
    with Store.open(url, read_only=True, create=False) as store:
        found = store.list_evaluations()
        assert sorted((one.model, one.setting.removesuffix("@limit40"), one.status) for one in found) == [
            (model, setting, "complete")
            for model in ("digits-1nn", "digits-linear")
            for setting in ("digits", "digits-mscr-linf", "digits-noise-linf-0.1")
        ]
        with store.reading() as connection:
            attempts = connection.exec_driver_sql("select attempts from evaluations").fetchall()
        assert {row[0] for row in attempts} == {1}, "no evaluation was taken up twice"
        assert verify(store).findings == ()


def _start(arguments: list[str], folder: Path, home: Path) -> subprocess.Popen[str]:
    line: list[Any] = [sys.executable, ROOT / "eval.py", *arguments]
    return subprocess.Popen(
        line, cwd=folder, env=environment(home), text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
