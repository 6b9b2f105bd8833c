"""All that is particular to SQLite: files, pragmas, transactions, and what its error codes mean."""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from testbed.errors import StoreError
from testbed.store.columns import json_text
from testbed.store.named_file import APPLICATION_ID_AT, NamedFile

APPLICATION_ID = 0x52425354
PAGE_SIZE = 65536  # megabyte-sized rows are written 2.6 times as fast as with 4096; fixed once a table exists
CACHE_KIB = 65536  # holds several shards: a transaction that outgrows the cache is written twice
BUSY_SECONDS = 60.0

_MAGIC = b"SQLite format 3\0"


def connect(path: Path, *, read_only: bool, create: bool) -> tuple[Engine, NamedFile]:
    """An engine on the database file `path`, made if need be, and that file; one that is not ours is not touched.

    Raises: StoreError: no such file, not a database of the testbed, or not writable.
    """
    try:
        is_new = not path.exists() or path.stat().st_size == 0
        if is_new and (read_only or not create):
            raise StoreError(f"There is no database at {path}. Check the path, or evaluate something into it first.")
        if is_new:
            path.parent.mkdir(parents=True, exist_ok=True)
            _begin_file(path)
        file = NamedFile(path)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"The database {path} cannot be opened: {error}. Give another path.") from error
    try:
        _check_header(path, file.header())
    except StoreError:
        file.close()
        raise
    return _engine(file, read_only=read_only), file


def _check_header(path: Path, header: bytes) -> None:
    """Looks at the bytes themselves: opening a foreign database could already change it."""
    if header and not header.strip(b"\0"):
        raise StoreError(f"{path} was begun, and cut off before anything was stored. Remove it, or give another path.")
    if not header.startswith(_MAGIC):
        raise StoreError(f"{path} is not an SQLite database. It was left untouched; give another path.")
    if int.from_bytes(header[APPLICATION_ID_AT], "big") != APPLICATION_ID:
        raise StoreError(f"{path} is a database of another program. It was left untouched; give another path.")


def _begin_file(path: Path) -> None:
    with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA application_id").fetchone() == (0,):  # nobody was faster
            connection.execute(f"PRAGMA user_version={1 + secrets.randbelow(2**31 - 1)}")  # by which it is known again
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode=WAL")


def _engine(file: NamedFile, *, read_only: bool) -> Engine:
    path = file.path
    uri = path.absolute().as_uri() + _mode(path, read_only=read_only)

    def open_file() -> sqlite3.Connection:
        file.check()  # its log would be applied to another file of its name
        connection = sqlite3.connect(
            uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )  # fmt: skip
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        file.add(connection)
        return connection

    engine = create_engine("sqlite://", creator=open_file, json_serializer=json_text)
    event.listen(engine, "begin", _begin)
    return engine


def _mode(path: Path, *, read_only: bool) -> str:
    if not read_only:
        return "?mode=rw"
    # A database in WAL mode is read through a shared-memory file beside it, which a read-only folder does not allow.
    is_frozen = not os.access(path.parent, os.W_OK) and not path.with_name(path.name + "-wal").exists()
    return "?mode=ro&immutable=1" if is_frozen else "?mode=ro"


def _begin(connection: Connection) -> None:
    """Takes the write lock at once: a transaction that reads and then writes could otherwise lose an update."""
    is_writer = connection.get_execution_options().get("is_writer", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writer else "BEGIN")


def compact(path: Path) -> None:
    """Rewrites the database without its unused pages, and empties its write-ahead log.

    Raises: StoreError: another program uses it, or the disk cannot hold the copy.
    """
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise StoreError(f"The database {path} cannot be compacted: {error}. It is as it was.") from error


def size(path: Path) -> int:
    """Bytes of the database and its write-ahead log."""
    files = (path, path.with_name(path.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def problems(connection: Connection) -> list[str]:
    """What SQLite's own checks of the file and of its references find, a sentence each; a server makes its own."""
    if connection.dialect.name != "sqlite":
        return []
    lines = [line for (line,) in connection.exec_driver_sql("PRAGMA integrity_check(20)") if line != "ok"]
    found = [f"The file is damaged: {line}. Restore it from a copy." for line in lines]
    for table, row, parent, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        found.append(f"Row {row} of table {table} refers to a row of {parent} that is not there.")
    return found


def explain(error: DBAPIError, path: Path) -> str | None:
    """What an SQLite error means and what to do, in one line; None where the code says no more than its message."""
    code = getattr(error.orig, "sqlite_errorname", "") or ""
    for prefix, meaning in _MEANINGS.items():
        if code.startswith(prefix):
            free = shutil.disk_usage(path.parent).free
            return meaning.format(path=path, free=f"{free / 1e6:,.0f} MB", message=error.orig)
    return None


_MEANINGS = {
    "SQLITE_FULL": "No space is left for the database {path} ({free} free on its disk). Free some and run the same "
    "command again: what was stored is kept.",
    "SQLITE_IOERR": "The database {path} cannot be written or read: {message} ({free} free on its disk). Free space "
    "or lift the limit on file sizes, and run the same command again: what was stored is kept.",
    "SQLITE_BUSY": "The database {path} is locked by another program. Run the same command again when that is done.",
    "SQLITE_READONLY": "The database {path} cannot be written: {message}. Check its permissions, or give another path.",
    "SQLITE_CANTOPEN": "The database {path} cannot be opened: {message}. Check its permissions, or give another path.",
    "SQLITE_CORRUPT": "The database {path} is damaged: {message}. Restore it from a copy.",
    "SQLITE_NOTADB": "The database {path} is damaged: {message}. Restore it from a copy.",
}
