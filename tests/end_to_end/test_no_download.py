"""`--no-download`: an evaluation whose data is not there ends at once, in one line, without a network."""

from __future__ import annotations

import pytest
from tests.conftest import Command
from tests.guards.test_readme import SCRIPTS, _options


def test_data_that_is_not_there_is_one_line_and_no_download(command: Command) -> None:
    done = command(
        "eval.py", "--models", "digits-linear", "--eval-settings", "cifar10", "--no-download", "--dry-run",
        "--data-root", "nowhere", TESTBED_NO_DOWNLOAD="",
    )  # fmt: skip
    assert (done.code, done.out) == (2, "")
    line = done.err.splitlines()[-1]
    assert line.startswith("Error: Data set 'cifar10' (test) is not under ")
    assert "Downloads are forbidden (--no-download, TESTBED_NO_DOWNLOAD)" in line


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_can_be_told(script: str) -> None:
    assert _options(script)["--no-download"].is_flag
