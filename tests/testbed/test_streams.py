"""Standard streams that are closed, full or left by their reader: one line and an exit code, and nothing is lost."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from testbed.cli import run

SOURCE = Path(__file__).parents[2] / "src"
# Says a line, prints results, writes a file meanwhile, and ends as it is told.
PROGRAM = """
import sys
from pathlib import Path
import click
from testbed.cli import run, say
from testbed.errors import StoreError

@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("rows", type=int)
@click.option("--wrong", is_flag=True)
def main(file, rows, wrong):
    say("a line")
    for row in range(rows):
        print(f"row {row}")
    with open(file, "w") as stream:
        say("another line")
        stream.write("whole")
    if wrong:
        raise StoreError("locked")
    return 0

run(main)
"""
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")


def ended(tmp_path: Path, redirection: str, rows: int = 3, *options: str) -> tuple[int, str, str]:
    """Exit code, stdout, and stderr of the program behind a shell's redirection."""
    (tmp_path / "program.py").write_text(PROGRAM)
    command = ["bash", "-c", f'exec "$0" "$@" {redirection}', sys.executable, "program.py", "file", str(rows), *options]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, timeout=60, env={**os.environ, "PYTHONPATH": str(SOURCE)}
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("rows", [3, 100_000])  # within the buffer, and beyond it
@pytest.mark.parametrize(
    ("redirection", "cause"),
    [
        (">&-", os.strerror(errno.EBADF)),
        pytest.param(">/dev/full", os.strerror(errno.ENOSPC), marks=needs_full),
        pytest.param("<&- >/dev/full", os.strerror(errno.ENOSPC), marks=needs_full),
    ],
)
def test_results_that_cannot_be_printed_are_one_line_and_exit_code_1(
    tmp_path: Path, redirection: str, cause: str, rows: int
) -> None:
    code, printed, said = ended(tmp_path, redirection, rows)
    assert (code, printed) == (1, "")
    last = said.splitlines()[-1]
    assert last.startswith(f"Error: The output cannot be written: {cause}. What was stored stays")
    assert len(said.splitlines()) <= 3


def test_a_command_that_prints_nothing_needs_no_stdout(tmp_path: Path) -> None:
    assert ended(tmp_path, ">&-", 0) == (0, "", "a line\nanother line\n")


@pytest.mark.parametrize("redirection", ["2>&-", pytest.param("2>/dev/full", marks=needs_full), "<&- 2>&-"])
def test_where_nobody_listens_the_command_does_its_work(tmp_path: Path, redirection: str) -> None:
    assert ended(tmp_path, redirection) == (0, "row 0\nrow 1\nrow 2\n", "")
    assert (tmp_path / "file").read_text() == "whole", "no line went into it"
    assert ended(tmp_path, redirection, 1, "--wrong")[0] == 3


def test_with_all_streams_closed_the_work_is_done_and_the_code_tells(tmp_path: Path) -> None:
    assert ended(tmp_path, "<&- >&- 2>&-")[0] == 1
    assert ended(tmp_path, "<&- >&- 2>&-", 0)[0] == 0
    assert (tmp_path / "file").read_text() == "whole"


def test_a_reader_that_leaves_ends_the_command_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "program.py", "file", "100000"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    ) as program:  # fmt: skip
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()
        assert program.stderr.read() == b"a line\n"
        assert program.wait() == 1


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(errno.EMFILE, "Too many open files", "a.npz"), "Too many open files (a.npz). Raise the limit (ulimit"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device. Free space"),
        (PermissionError(errno.EACCES, "Permission denied", "b"), "Permission denied (b). Check that path"),
        (UnicodeEncodeError("utf-8", "a\udcff", 1, 2, "surrogates not allowed"), r"The name 'a\udcff' is not UTF-8."),
    ],
)
def test_what_the_system_refuses_is_one_line_with_a_remedy(
    error: Exception, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def body() -> None:
        raise error

    with pytest.raises(SystemExit) as left:
        run(click.Command("body", callback=body), [])
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"Error: {line}")
    assert said.count("\n") == 1


def test_a_letter_that_an_encoding_lacks_is_a_fault_of_the_program() -> None:
    def body() -> None:
        "ü".encode("ascii")

    with pytest.raises(UnicodeEncodeError):
        run(click.Command("body", callback=body), [])
