"""Ctrl-C and SIGTERM: the first asks for an end in good order, the second ends at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

_ASKED = (
    "\nInterrupted: no more work is begun, and what the workers are at is finished and stored. "
    "A second Ctrl-C or SIGTERM stops at once.\n"
)


class Terminated(KeyboardInterrupt):
    """A batch system asks the program to end (SIGTERM): the same as Ctrl-C, with its own exit code."""


class Interruption:
    """While it is entered, the first Ctrl-C or SIGTERM is remembered; the second raises an error.

    That is KeyboardInterrupt, or its kind Terminated. A signal that is ignored stays ignored: a shell starts background
    jobs so. Handlers are a matter of the main thread; entered in another one, this does nothing.
    """

    def __init__(self) -> None:
        self._number: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    @property
    def is_wanted(self) -> bool:
        """Whether somebody has asked for an end."""
        return self._number is not None

    def raise_if_wanted(self) -> None:
        """Raises KeyboardInterrupt or Terminated, whichever was asked for; nothing if neither was."""
        if self._number is not None:
            raise _error(self._number)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self._number is not None:
            raise _error(number)
        self._number = number
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, _ASKED.encode())  # a buffered print can be half way


def _error(number: int) -> KeyboardInterrupt:
    return Terminated() if number == signal.SIGTERM else KeyboardInterrupt()
