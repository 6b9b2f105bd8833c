"""What a run did, as a file with one JSON object per line: for programs, and for whoever looks for a fault later.

It is a handler of Python's own `logging`, under the name `testbed.events`: a program that uses the testbed as a library
may add others.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MAX_BYTES = 64 << 20  # a file of this size is put aside, in the place of the one that was put aside before
_LOGGER = logging.getLogger("testbed.events")
_LOGGER.addHandler(logging.NullHandler())  # where nobody asks for events, they are not shown either
_LOGGER.propagate = False


def record(event: str, **facts: Any) -> None:
    """Notes an event with JSON-able facts; nothing happens where no log is open."""
    if _LOGGER.isEnabledFor(logging.INFO):
        _LOGGER.info(event, extra={"facts": facts})


@contextmanager
def event_log(path: Path, *, warn: Callable[[str], None]) -> Iterator[None]:
    """Appends the events of the block to a file; `warn` is told where it cannot be written, and the block goes on."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > MAX_BYTES:
            path.replace(path.with_name(f"{path.name}.1"))
        handler = _File(path, encoding="utf-8")
    except OSError as error:
        warn(f"Warning: The log {path} cannot be written ({error.strerror}), so that events are not kept.")
        yield
        return
    handler.setFormatter(_JsonLines())
    before = _LOGGER.level
    _LOGGER.addHandler(handler)
    _LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        _LOGGER.setLevel(before)
        _LOGGER.removeHandler(handler)
        with suppress(OSError):
            handler.close()


class _File(logging.FileHandler):
    """An evaluation does not suffer where its log cannot be written any more, as on a full disk."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


class _JsonLines(logging.Formatter):
    """One event as one line: when, by which process, what."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        facts = getattr(record, "facts", {})
        return json.dumps({"at": at, "pid": os.getpid(), "event": record.getMessage(), **facts}, default=str)
