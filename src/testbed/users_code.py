"""Code of users: what it prints goes to stderr, as stdout is for results, and what it raises becomes one line."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TypeVar

from testbed.errors import DataError, TestbedError, reason_in

T = TypeVar("T")


def asked(function: Callable[[], T], *, what: str) -> T:
    """What a function of users returns.

    Args: what: begins the sentence that says that it failed.
    Raises: DataError: it did; the message says how, and where.
    """
    try:
        with users_output():
            return function()
    except TestbedError:
        raise
    except (Exception, SystemExit) as error:
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
        where = f" in {files[0]}" if files else ""  # the function's own file, not that of a library it calls
        reason = reason_in(Path(files[0] if files else __file__), error)
        raise DataError(f"{what} failed{where} ({reason}). Mend it and run again.") from error


@contextmanager
def users_output() -> Iterator[None]:
    """Around code of users, in this process and those that it starts: what it writes to stdout goes to stderr.

    So it does where it does not pass Python's `sys.stdout`, as the output of a library in C.
    """
    with _descriptors_swapped(), redirect_stdout(sys.stderr):
        yield


@contextmanager
def _descriptors_swapped() -> Iterator[None]:
    """File descriptor 1 stands for that of stderr; where one of the two is closed, nothing changes."""
    _flush()
    try:
        kept = os.dup(1)
    except OSError:
        yield
        return
    try:
        with suppress(OSError):
            os.dup2(2, 1)
        yield
    finally:
        try:
            _flush()
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def _flush() -> None:
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None:
            stream.flush()
