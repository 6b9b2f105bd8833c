"""A copy of an SQLite database beside it, which is whole or is not there."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import zip_longest
from pathlib import Path

from testbed.errors import StoreError
from testbed.paths import replacing
from testbed.store import sqlite


def back_up(path: Path, backup: Path) -> None:
    """Makes `backup` a consistent, compact copy of the database `path`, or leaves one that is there and equal.

    What is there and no whole database, as an earlier failure left it, is replaced.

    Raises: StoreError: another database is there, or the copy cannot be written.
    """
    try:
        if backup.exists() and _is_whole(backup):
            if not _is_equal(path, backup):
                raise StoreError(
                    f"The backup {backup} exists already and holds something else. Move it away and run the same "
                    "command again."
                )
            return
        for left in backup.parent.glob(f"{backup.name}.*.tmp*"):  # of a program that was killed
            left.unlink()
        with replacing(backup) as part:
            _copy(path, part)
        _sync(backup.parent)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(
            f"The database {path} cannot be copied to {backup}: {error}. It is as it was: free space on the disk, and "
            "run the same command again."
        ) from error


def _copy(path: Path, part: Path) -> None:
    with closing(sqlite3.connect(path, timeout=sqlite.BUSY_SECONDS)) as connection:
        connection.execute("VACUUM INTO ?", (str(part),))
    _sync(part)


def _sync(path: Path) -> None:
    """Waits until a file, or a folder's list of files, is on disk."""
    if path.is_dir() and os.name != "posix":
        return  # elsewhere folders cannot be opened
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_whole(path: Path) -> bool:
    """Whether a file is a database with tables, undamaged."""
    try:
        with closing(_reading(path)) as connection:
            return bool(_tables(connection)) and connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    except sqlite3.Error:
        return False


def _is_equal(path: Path, backup: Path) -> bool:
    """Whether two databases have the same tables with the same rows."""
    with closing(_reading(path)) as one, closing(_reading(backup)) as other:
        tables = _tables(one)
        return tables == _tables(other) and all(
            mine == theirs for name, _ in tables for mine, theirs in zip_longest(_rows(one, name), _rows(other, name))
        )


def _reading(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=sqlite.BUSY_SECONDS)


def _tables(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [(name, sql) for name, sql in found if not name.startswith("sqlite_")]


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[tuple[object, ...]]:
    return iter(connection.execute(f'SELECT * FROM "{table}" NOT INDEXED'))  # noqa: S608 - a name of our schema
