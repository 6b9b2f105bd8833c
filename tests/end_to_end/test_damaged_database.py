"""A database that is damaged anywhere: the damage is named where it matters, and nothing ends in a traceback."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from testbed.errors import StoreError, TestbedError

NUM_DAMAGES = 300  # of columns, and as many of bytes
AT_ONCE = 10  # in a test
SETTING = "digits-mscr-linf@limit40"
EVALUATED = ["--models", "digits-linear", "digits-1nn", "--eval-settings", "digits", "digits-mscr-linf",
             "--limit", "40", "--draws", "2", "--workers", "0", "--quiet", "--db"]  # fmt: skip
COMMANDS = (
    ["--verify"],
    ["--print-eval", "digits-linear", SETTING],
    ["--print-eval", "digits-linear", SETTING, "--json"],
    ["--export", "EXPORTED", "--override", "--with-published", "paper"],
    ["--mscr", "--json"],
    ["--claim", "loss(digits-mscr-linf@limit40) <= 20%"],
)
# A value of another kind, or beyond all bounds, for any column.
STRANGE = (
    None,
    "",
    "{broken",
    "the day before",
    b"\xff\xfe",
    -1,
    2**62,
    1e300,
    float("inf"),
    '{"a": [1, {"b": null}]}',
)


@dataclass(frozen=True)
class Said:
    """What a command printed and wrote, or the one line that it ended with."""

    code: int
    out: str
    error: str


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory, cache_home: Path) -> bytes:
    """A database with evaluations, comparisons, a separation and published numbers, in one file."""
    folder = tmp_path_factory.mktemp("sound")
    path, grid = folder / "sound.sqlite", folder / "grid.csv"
    grid.write_text("model,val\nnet,76.1\nother,71.3\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TESTBED_HOME", str(cache_home))
        for script, given in (("eval", EVALUATED), ("db", ["--import-csv", str(grid), "--source", "paper"])):
            done = CliRunner().invoke(import_module(script).main, [*given, "--db-url", str(path)])
            assert done.exit_code == 0, done.output
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("vacuum")
        connection.execute("pragma wal_checkpoint(truncate)")
    return path.read_bytes()


def said(path: Path, command: list[str]) -> Said:
    """Runs a command of db.py; whatever it raises but an error of the testbed is raised."""
    exported = path.with_suffix(".csv")
    exported.unlink(missing_ok=True)
    given = [str(exported) if part == "EXPORTED" else part for part in command]
    result = CliRunner().invoke(import_module("db").main, [*given, "--db-url", str(path)], standalone_mode=False)
    written = exported.read_text() if exported.exists() else ""
    error = result.exception
    if error is not None and not isinstance(error, TestbedError):
        raise error
    code = error.exit_code if isinstance(error, TestbedError) else result.return_value or 0
    return Said(code=code, out=result.stdout.replace(str(path), "DB") + written, error=str(error or ""))


def all_said(path: Path) -> list[Said]:
    return [said(path, command) for command in COMMANDS]


def check(path: Path, sound: list[Said], damage: str) -> None:
    """Whatever is printed otherwise is named by --verify, or by the command itself; each error is one line."""
    verified, *others = all_said(path)
    for command, before, now in zip(COMMANDS[1:], sound[1:], others, strict=True):
        where = f"{damage}: {' '.join(command)}: {now.error}"
        assert "\n" not in now.error, where
        if now.error:
            assert now.code in (StoreError.exit_code, TestbedError.exit_code), where
        elif now.out != before.out:
            assert verified.code != 0, where
    assert "\n" not in verified.error, damage


@pytest.fixture(scope="module")
def sound(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> list[Said]:
    path = tmp_path_factory.mktemp("sound") / "store.sqlite"
    path.write_bytes(content)
    found = all_said(path)
    assert [one.code for one in found] == [0] * len(COMMANDS), found
    return found


def cells(path: Path) -> list[tuple[str, str]]:
    """All columns of all tables that have rows."""
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
        filled = [name for name in names if connection.execute(f"select 1 from {name}").fetchone()]  # noqa: S608
        return [(name, row[1]) for name in filled for row in connection.execute(f"pragma table_info({name})")]


def changed_column(path: Path, draw: random.Random, table: str, column: str) -> str:
    """Changes one cell in a random row; returns what was changed."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(f"select rowid, {column} from {table}").fetchall()  # noqa: S608
        while True:
            row, before = draw.choice(rows)
            after = another(before, draw)
            text = "cast(? as text)" if isinstance(after, bytes) and not isinstance(before, bytes) else "?"
            try:
                connection.execute(f"update {table} set {column} = {text} where rowid = ?", (after, row))  # noqa: S608
            except sqlite3.IntegrityError:  # SQLite itself does not let it happen
                continue
            connection.commit()
            return f"{table}.{column} of row {row}: {before!r:.80} became {after!r:.80}"


def another(value: object, draw: random.Random) -> object:
    """A value near this one, or a strange one."""
    if draw.random() < 0.4:
        return draw.choice(STRANGE)
    if isinstance(value, int):
        return value + draw.choice((-1, 1, 7))
    if isinstance(value, float):
        return value * draw.choice((0.5, 1.01, -1))
    if isinstance(value, bytes) and value:
        place = draw.randrange(len(value))
        return value[:place] + bytes([value[place] ^ 1 << draw.randrange(8)]) + value[place + 1 :]
    if isinstance(value, str) and value:
        place = draw.randrange(len(value))
        return value[:place] + draw.choice("abc019") + value[place + 1 :]
    return draw.choice(STRANGE)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache_home: Path) -> Path:
    monkeypatch.setenv("TESTBED_HOME", str(cache_home))
    return tmp_path / "store.sqlite"


def restore(path: Path, content: bytes) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    path.write_bytes(content)


@pytest.mark.attack
@pytest.mark.parametrize("first", range(0, NUM_DAMAGES, AT_ONCE))
def test_a_changed_column_is_named_where_it_matters(path: Path, content: bytes, sound: list[Said], first: int) -> None:
    restore(path, content)
    columns = cells(path)
    for number in range(first, first + AT_ONCE):
        restore(path, content)
        draw = random.Random(number)
        check(path, sound, changed_column(path, draw, *columns[number % len(columns)]))


@pytest.mark.attack
@pytest.mark.parametrize("first", range(0, NUM_DAMAGES, AT_ONCE))
def test_a_flipped_byte_is_named_where_it_matters(path: Path, content: bytes, sound: list[Said], first: int) -> None:
    for number in range(first, first + AT_ONCE):
        draw = random.Random(number)
        damaged, place = bytearray(content), draw.randrange(len(content))
        damaged[place] ^= 1 << draw.randrange(8)
        restore(path, bytes(damaged))
        check(path, sound, f"bit of byte {place}")
