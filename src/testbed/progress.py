"""One progress bar over a whole plan, on stderr: a bar on a terminal, a line every half minute elsewhere."""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType

from tqdm import tqdm

LINE_SECONDS = 30.0
QUICK_SECONDS = 2.0


class PlanProgress:
    """Counts samples over all evaluations of a plan. What was stored before counts as done, not as speed.

    Args:
        total: samples times draws of all evaluations.
        done: how many of them are stored already.
        is_quiet: shows no bar; lines are still said.
    """

    def __init__(self, *, total: int, done: int = 0, is_quiet: bool = False) -> None:
        self._is_terminal = sys.stderr.isatty() and not is_quiet
        self._is_quiet = is_quiet
        self._total, self._done, self._skipped = total, done, done
        self._begin = self._last_line = monotonic()
        self._bar = tqdm(
            total=total,
            initial=done,
            unit=" samples",
            unit_scale=True,
            disable=not self._is_terminal,
            dynamic_ncols=True,
        )

    def __enter__(self) -> PlanProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def advance(self, num_samples: int) -> None:
        """`num_samples` more are done."""
        self._done += num_samples
        self._bar.update(num_samples)
        if not self._is_terminal and not self._is_quiet and monotonic() - self._last_line > LINE_SECONDS:
            self._last_line = monotonic()
            self.say(self._line())

    def note(self, line: str) -> None:
        """Prints a line that only tells how far the work is."""
        if not self._is_quiet:
            self.say(line)

    def say(self, line: str) -> None:
        """Prints a line beside the bar."""
        self._bar.clear()
        print(line, file=sys.stderr, flush=True)
        self._bar.refresh()

    def _line(self) -> str:
        rate = (self._done - self._skipped) / (monotonic() - self._begin)
        left = (self._total - self._done) / rate if rate else float("inf")
        percent = 100 * self._done / max(1, self._total)
        return f"{self._done}/{self._total} samples ({percent:.0f} %), {rate:.0f} per second, {left:.0f} s left"


class SearchProgress:
    """Tells how far a search is, as the `progress` that it calls; nothing of one that is over at once.

    Args:
        what: the search, in a sentence.
        is_quiet: tells nothing.
    """

    def __init__(self, what: str, *, is_quiet: bool = False) -> None:
        self._what, self._is_quiet = what, is_quiet
        self._bar: PlanProgress | None = None
        self._begin: float | None = None
        self._done = 0

    def __enter__(self) -> SearchProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)

    def __call__(self, done: int, total: int) -> None:
        """`done` of `total` samples are searched."""
        self._begin = self._begin or monotonic()
        if self._bar is None and monotonic() - self._begin > QUICK_SECONDS:
            self._bar = PlanProgress(total=total, is_quiet=self._is_quiet)
            self._bar.note(self._what)
        if self._bar is not None:
            self._bar.advance(done - self._done)
            self._done = done
