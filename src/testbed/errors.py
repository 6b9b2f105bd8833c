"""What can go wrong for a user, one family: each error is a sentence that says what, which value, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class TestbedError(Exception):
    """The user has to change something; the command line prints the message alone and exits with `exit_code`."""

    __test__ = False  # pytest would otherwise take the name for a test class
    exit_code = 2


class DefinitionError(TestbedError):
    """A model, setting, data set or metric is defined in a way that cannot work."""


class UnknownNameError(TestbedError):
    """A name that nothing is registered under."""


class DataError(TestbedError):
    """A data set is missing, damaged, or not what was declared."""


class MissingDataError(DataError):
    """Data that are not where they were looked for, and could not be had."""


class DeviceError(TestbedError):
    """A device was asked for that is not there."""


class ShapeError(TestbedError):
    """An array has another shape than the caller promised."""


class StoreError(TestbedError):
    """The database cannot be opened, read or written."""

    exit_code = 3


class BusyError(StoreError):
    """Another program writes to the database: whoever waits can have it later."""


@contextmanager
def reading(path: Path, *, kind: str, remedy: str) -> Iterator[None]:
    """Around a library that reads a file, for of a damaged one libraries raise nearly anything.

    Args:
        path: of the file.
        kind: what it should be, such as 'a parquet file'.
        remedy: a sentence that says what to do.
    Raises: DataError: whatever was raised that is no error of this family, in one line.
    """
    try:
        yield
    except TestbedError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"Cannot read {path} as {kind} ({reason}). {remedy}") from error


def suggestion(name: str, known: Iterable[str]) -> str:
    """`Did you mean a, b or c?` for the known names nearest to `name`; an empty string where none is near."""
    near = difflib.get_close_matches(name, list(dict.fromkeys(known)), n=3, cutoff=0.6)
    if not near:
        return ""
    listed = near[0] if len(near) == 1 else f"{', '.join(near[:-1])} or {near[-1]}"
    return f"Did you mean {listed}?"


def reason_in(path: Path, error: BaseException) -> str:
    """One line: an exception of users' code, and the line of the file `path` that it passed through."""
    lines = []
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    line = error.lineno if isinstance(error, SyntaxError) else (lines[-1] if lines else None)
    where = f", line {line}" if line else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{where}"
