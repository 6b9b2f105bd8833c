"""Text that steers nothing: a terminal shows names and does not obey them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.report import aligned_table
from testbed.visible import visible

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("abc\u202egpj.exe", r"abc\u202egpj.exe"),
        ("a\u2066b\u2069", r"a\u2066b\u2069"),
        ("a\r\nb\tc\x00\x9b", r"a\r\nb\tc\x00\x9b"),
        ("a\u2028b", r"a\u2028b"),
        ("half \ud83e", r"half \ud83e"),
    ],
)
def test_what_steers_stands_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", ["ResNet-50 (384 px)", "🦊👩‍🔬", "شبكة", "模型", "$x_1$ <b>&amp;\\", "no\u00a0break"])
def test_what_is_only_strange_stays(text: str) -> None:
    assert visible(text) == text


def test_lines_are_kept_where_a_text_has_several() -> None:
    assert visible("a\n\tb\x07", in_one_line=False) == "a\n\tb\\x07"


def test_a_line_break_in_a_name_does_not_make_a_row_of_a_table() -> None:
    lines = aligned_table([("model", "%"), ("a\nb  99", "1")], num_names=1).splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("a\\nb  99")


def test_commands_print_text_alone_also_where_the_terminal_lacks_letters() -> None:
    code = (
        "import click, sys; from testbed.cli import run, say\n"
        "@click.command()\n"
        "def main():\n"
        "    print('\\x1b[2J L∞ \\u202e'); say('\\x1b[2J'); return 1\n"
        "run(main, [])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "\\x1b[2J L\\u221e \\u202e\n", "\\x1b[2J\n")
