"""The file of an open database, told from another file that was put in its place while it was open."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path

from testbed.errors import StoreError

HEADER_BYTES = 100
APPLICATION_ID_AT = slice(68, 72)
_STAMP_AT = slice(60, 64)  # SQLite's user_version: random for each of our databases, and never changed

_Mark = tuple[int, int]

# Descriptors of files that are open, and for how many: whoever closes one of a file releases SQLite's locks on it.
_descriptors: dict[_Mark, tuple[int, int]] = {}
_guard = threading.Lock()


class NamedFile:
    """What stood under a name when it was opened: file and write-ahead log by device and inode, content by its stamp.

    A program that writes on after its file was replaced writes into nothing, or into the file of somebody else: SQLite
    finds its write-ahead log by name alone.
    """

    def __init__(self, path: Path) -> None:
        """Raises: OSError: the file cannot be opened."""
        self.path = path
        self._file = _take_descriptor(path)
        self._identity = _identity(self.header())
        self._is_closed = False
        self._log = _beside(path, "-wal")
        self._log_mark: _Mark | None = None
        self._connections: list[sqlite3.Connection] = []

    def header(self) -> bytes:
        """The first bytes of the file that is open, as they are on disk now."""
        with _guard:
            descriptor, _ = _descriptors[self._file]
            os.lseek(descriptor, 0, os.SEEK_SET)
            return os.read(descriptor, HEADER_BYTES)

    def close(self) -> None:
        """Lets go of the file, after its connections are closed."""
        if self._is_closed:
            return
        self._is_closed = True
        with _guard:
            descriptor, count = _descriptors.pop(self._file)
            if count > 1:
                _descriptors[self._file] = descriptor, count - 1
            else:
                os.close(descriptor)

    def add(self, connection: sqlite3.Connection) -> None:
        """Takes note of a new connection to the file, which opens the write-ahead log with its first look at it."""
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        self._connections.append(connection)
        self._log_mark = self._log_mark or _mark(self._log)

    def check(self) -> None:
        """Raises: StoreError: the file of this name is not, or not as, the one that is open."""
        if self._is_closed:
            return
        found = _mark(self.path)
        if found is None:
            raise StoreError(_refusal(self.path, "was removed or moved"))
        if found != self._file:
            raise StoreError(_refusal(self.path, "was replaced by another file"))
        if self._is_overwritten():
            raise StoreError(_refusal(self.path, "was overwritten"))
        if self._log_mark is not None and _mark(self._log) != self._log_mark:
            raise StoreError(_refusal(self._log, "was removed or replaced"))

    def may_close(self) -> bool:
        """Whether the connections may be closed, which is what they are told before; else they never are.

        Where another file has the name, the log goes to the file that is open, so that nobody applies it to the other.
        SQLite itself would leave it there; and would write it into a file that was overwritten in its place.
        """
        if self._is_closed:
            return True
        is_overwritten = self._is_overwritten()
        is_ours = self._log_mark is not None and _mark(self._log) == self._log_mark
        if is_overwritten:
            for connection in self._connections:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))  # not closed when the program ends, either
        if is_ours and (is_overwritten or _mark(self.path) != self._file):
            if is_overwritten or self._is_written_back():
                self._log.unlink()
            else:
                self._log.rename(self._log.with_name(f"{self._log.name}.aside"))
            _beside(self.path, "-shm").unlink(missing_ok=True)
        return not is_overwritten

    def _is_written_back(self) -> bool:
        """Writes the log into the open file; returns whether all of it is there."""
        with suppress(sqlite3.Error):
            _, in_log, written = self._connections[-1].execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            return bool(in_log == written)
        return False

    def _is_overwritten(self) -> bool:
        return _identity(self.header()) != self._identity


def _take_descriptor(path: Path) -> _Mark:
    """Device and inode of a file, of which a descriptor is then open."""
    with _guard:
        mark = _mark(path)
        if mark is None or mark not in _descriptors:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
            found = os.fstat(descriptor)
            mark = found.st_dev, found.st_ino
            _descriptors.setdefault(mark, (descriptor, 0))
        descriptor, count = _descriptors[mark]
        _descriptors[mark] = descriptor, count + 1
        return mark


def _mark(path: Path) -> _Mark | None:
    """Device and inode of a file; None where there is none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreError(_refusal(path, f"cannot be looked at any more ({error.strerror})")) from error
    return found.st_dev, found.st_ino


def _identity(header: bytes) -> bytes:
    """What of a database's header never changes."""
    return header[:16] + header[_STAMP_AT] + header[APPLICATION_ID_AT]


def _beside(path: Path, suffix: str) -> Path:
    """A file that SQLite keeps beside the database: it follows links before it adds the suffix."""
    real = path.resolve()
    return real.with_name(real.name + suffix)


def _refusal(path: Path, what: str) -> str:
    return (
        f"The database file {path} {what} while it was in use, so that what was found since is not stored: put it back "
        "or give another path, and run the same command again."
    )
