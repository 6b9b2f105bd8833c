"""How far an examination is: what it is at, and how many images it has still to ask about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from testbed.progress import PlanProgress

Advance = Callable[[int], None]


class Telling:
    """Tells on stderr how far an examination is, part by part.

    Args:
        total: images that its parts ask about at most, together.
        is_quiet: tells nothing.
    """

    def __init__(self, *, total: int, is_quiet: bool) -> None:
        self._at = ""
        self._bar = PlanProgress(total=total, is_quiet=is_quiet, at=lambda: self._at)
        self._bar.began()

    def __enter__(self) -> Telling:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def note(self, line: str) -> None:
        """Tells a line."""
        self._bar.note(line)

    @contextmanager
    def part(self, at: str, *, total: int) -> Iterator[Advance]:
        """What is told how many images more a part asked about, of so many; those that it leaves out need no asking."""
        self._at, asked = at, 0

        def advance(count: int) -> None:
            nonlocal asked
            asked += count
            self._bar.advance(count)
            self._bar.tick()

        yield advance
        self._bar.skip(total - asked)
