"""The standard streams of a command line: what is printed is escaped, and where it cannot be, that is one line."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress

from testbed.errors import TestbedError
from testbed.visible import visible


class OutputError(TestbedError):
    """The results cannot be printed: the disk is full, or stdout is closed."""

    exit_code = 1


@contextmanager
def standard_streams() -> Iterator[None]:
    """While it is entered, stdout raises an OutputError where it cannot be written, and stderr is silent instead.

    A reader that has gone, such as `head`, is a BrokenPipeError of stdout. Nothing is raised at the end of the program.
    """
    _open_closed_streams()
    sys.stdout.flush()
    is_by_line = bool(sys.stdout.line_buffering)
    results = _Results(sys.stdout.buffer, sys.stdout.encoding, "backslashreplace", line_buffering=is_by_line)
    lines = _Lines(sys.stderr.buffer, sys.stderr.encoding, "backslashreplace", line_buffering=True)
    try:
        with redirect_stdout(results), redirect_stderr(lines):
            yield
    finally:
        for stream in (results, lines):
            _let_go(stream)


class _Results(io.TextIOWrapper):
    """Output that a terminal shows and does not obey, whatever stands in a name; letters it lacks become escapes."""

    def write(self, text: str) -> int:
        with _told():
            super().write(visible(text, in_one_line=False))
        return len(text)

    def flush(self) -> None:
        with _told():
            super().flush()


class _Lines(io.TextIOWrapper):
    """What is said to people: an evaluation goes on where nobody listens any more."""

    def write(self, text: str) -> int:
        try:
            super().write(text)
        except OSError:
            _discard(self)
        return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            _discard(self)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"The output cannot be written: {error.strerror}. What was stored stays: run the same command again, with "
            "its output elsewhere."
        ) from error


def _open_closed_streams() -> None:
    """Puts something in the place of streams that were closed before the program began.

    Whatever file is opened next would get the number of the stream, and everything that is printed.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            flags = os.O_WRONLY if name == "stderr" else os.O_RDONLY  # so that writing results is an error
            descriptor = os.open(os.devnull, flags)
            os.set_inheritable(descriptor, True)
            stream = os.fdopen(descriptor, "r" if name == "stdin" else "w", encoding="utf-8")
            setattr(sys, name, stream)


def _let_go(stream: io.TextIOWrapper) -> None:
    """Leaves the stream underneath as it was found, or with nothing in it that could fail once more."""
    try:
        stream.flush()
    except (OSError, OutputError):
        _discard(stream)
    with suppress(OSError, OutputError):
        stream.detach()  # or it would close the stream with itself


def _discard(stream: io.TextIOWrapper) -> None:
    """Sends what is left, and all that follows, nowhere."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
