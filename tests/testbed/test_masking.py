"""Passwords and what may be one are masked, wherever in a URL they stand."""

from __future__ import annotations

import click
import pytest

from testbed.cli import run, say
from testbed.masking import masked, masked_text
from testbed.provenance import provenance

HIDDEN = "tops3cret"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql+psycopg://me:tops3cret@host/db", "postgresql+psycopg://me:***@host/db"),
        ("postgresql://me:tops3cret@host:5432/db?sslmode=require", "postgresql://me:***@host:5432/db?sslmode=require"),
        ("postgresql://me@host/db?password=tops3cret", "postgresql://me@host/db?password=***"),
        ("postgresql:///db?host=/run/x&password=tops3cret&port=1", "postgresql:///db?host=/run/x&password=***&port=1"),
        ("postgresql:///db?sslpassword=tops3cret", "postgresql:///db?sslpassword=***"),
        ("postgresql:///db?passfile=tops3cret&service=tops3cret", "postgresql:///db?passfile=***&service=***"),
        ("postgresql:///db?conninfo=password%3Dtops3cret", "postgresql:///db?conninfo=***"),
        ("postgresql:///db?options=-c%20x.y%3Dtops3cret", "postgresql:///db?options=***"),
        ("postgresql:///db?%70assword=tops3cret", "postgresql:///db?%70assword=***"),
        ("postgresql:///db?PASSWORD=tops3cret", "postgresql:///db?PASSWORD=***"),
        ("postgresql:///db?new_kind_of_key=tops3cret", "postgresql:///db?new_kind_of_key=***"),
        ("postgresql:///db?host=x;password=tops3cret", "postgresql:///db?host=***"),
        ("postgresql:///db?host=x%20password%3Dtops3cret", "postgresql:///db?host=***"),
        ("postgresql:///db?tops3cret", "postgresql:///db?***"),
        ("postgresql://me@host/db?password=a@tops3cret", "postgresql://me@host/db?password=***"),
        ("postgresql://host:5432/db?password=a@tops3cret", "postgresql://host:5432/db?password=***"),
        ("postgresql://me:tops3cret/@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:a@tops3cret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:a?tops3cret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:tops3cret", "postgresql://me:***"),
        ("postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"),
        ("--db-url=postgresql://me:tops3cret@h/db", "--db-url=postgresql://me:***@h/db"),
        ("sqlite:///results/testbed.sqlite", "sqlite:///results/testbed.sqlite"),
        ("digits-resnet", "digits-resnet"),
    ],
)
def test_all_but_harmless_parts_of_a_url_are_masked(url: str, shown: str) -> None:
    assert masked(url) == shown
    assert HIDDEN not in shown


def test_a_text_is_masked_where_a_secret_or_a_url_stands_in_it() -> None:
    assert masked_text('FATAL: "tops3cret" is wrong', [HIDDEN]) == 'FATAL: "***" is wrong'
    assert masked_text("abc", ["a", ""]) == "abc", "no part of another word"
    assert masked_text(f"See 'postgresql://me:{HIDDEN}@h/db'.") == "See 'postgresql://me:***@h/db'."
    address = "https://host/file?download=1"
    assert masked_text(f"Get {address}.") == f"Get {address}."


def test_what_the_command_line_says_is_masked(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"Stored in postgresql:///db?password={HIDDEN}.")
    with pytest.raises(SystemExit):
        run(click.Command("body", callback=lambda: None), [f"postgresql://me:{HIDDEN}@host/db"])
    assert HIDDEN not in capsys.readouterr().err


def test_the_stored_command_line_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["eval.py", "--db-url", f"postgresql:///db?host=/tmp&password={HIDDEN}", f"--db-url=x://u:{HIDDEN}@h"]
    monkeypatch.setattr("sys.argv", given)
    argv = provenance(devices=[])["argv"]
    assert argv[2:] == ["postgresql:///db?host=/tmp&password=***", "--db-url=x://u:***@h"]
