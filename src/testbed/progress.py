"""One progress bar over a whole plan, on stderr: a bar on a terminal, a line every half minute elsewhere."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from types import TracebackType

from tqdm import tqdm

LINE_SECONDS = 30.0
LOOK_SECONDS = 0.5  # between two looks of a bar that nothing advances
RATE_SECONDS = 120.0  # the speed is that of the last so many seconds
QUICK_SECONDS = 2.0


def nothing_to_decode() -> tuple[int, int]:
    """Samples that are decoded, and how many there are to decode, where all are."""
    return 0, 0


class PlanProgress:
    """Counts samples over all evaluations of a plan. What was stored before counts as done, not as speed.

    Args:
        total: samples times draws of all evaluations.
        done: how many of them are stored already.
        is_quiet: shows no bar; lines are still said.
        devices: of the workers, one each.
        decoding: how many samples are decoded, and how many there are to decode.
        at: what the work is at, in a few words.
        on_busy: is told where the time of each unit went, by worker and stage.
    """

    def __init__(
        self,
        *,
        total: int,
        done: int = 0,
        is_quiet: bool = False,
        devices: Sequence[str] = (),
        decoding: Callable[[], tuple[int, int]] = nothing_to_decode,
        at: Callable[[], str] = str,
        on_busy: Callable[[str, Mapping[str, float]], None] | None = None,
    ) -> None:
        self._is_terminal = sys.stderr.isatty() and not is_quiet
        self._is_quiet = is_quiet
        self._total, self._done, self._is_starting = total, done, True
        self._decoding, self._at, self._on_busy = decoding, at, on_busy
        self._devices = ", ".join(name if n == 1 else f"{n} x {name}" for name, n in Counter(devices).items())
        self._last_line = self._last_look = monotonic()
        self._marks = deque([(self._last_line, done)])  # of the last minutes
        self._bar = tqdm(
            desc=self._devices or None,
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
        self._mark()
        self._bar.update(num_samples)
        self._say_line_if_due()

    def skip(self, num_samples: int) -> None:
        """`num_samples` need not be done any more: like those that were stored before, they are no speed."""
        self._done += num_samples
        self._marks = deque((at, done + num_samples) for at, done in self._marks)
        if self._is_terminal:
            self._bar.n += num_samples
            self._bar.initial += num_samples
            self._bar.last_print_n += num_samples

    def tick(self) -> None:
        """Time has passed: the bar's clock moves, and a line is due from time to time, also where nothing advances."""
        if self._is_terminal and monotonic() - self._last_look > LOOK_SECONDS:
            self._last_look = monotonic()
            words = ("starting" if self._is_starting else "", self._at(), self._decoded())
            self._bar.set_postfix_str(", ".join(filter(None, words)), refresh=False)
            self._bar.refresh()
        self._say_line_if_due()

    def began(self) -> None:
        """A worker is up: time from now on counts for the bar's speed."""
        if self._is_starting:
            self._is_starting = False
            self._marks = deque([(monotonic(), self._done)])
            self._bar.unpause()

    def busy(self, worker_name: str, stage_seconds: Mapping[str, float]) -> None:
        """Where the time of a worker's latest unit went, by stage."""
        if self._on_busy is not None:
            self._on_busy(worker_name, stage_seconds)

    def note(self, line: str) -> None:
        """Prints a line that only tells how far the work is."""
        if not self._is_quiet:
            self.say(line)

    def say(self, line: str) -> None:
        """Prints a line beside the bar."""
        self._bar.clear()
        print(line, file=sys.stderr, flush=True)
        self._bar.refresh()

    def _say_line_if_due(self) -> None:
        if not self._is_terminal and not self._is_quiet and monotonic() - self._last_line > LINE_SECONDS:
            self._last_line = monotonic()
            self.say(self._line())

    def _line(self) -> str:
        rate = self._rate()
        left = f"{_duration((self._total - self._done) / rate)} left" if rate else "time left unknown"
        percent = 100 * self._done / max(1, self._total)
        parts = [f"{self._done}/{self._total} samples ({percent:.0f} %)", f"{rate:.0f} per second", left]
        return ", ".join(part for part in (self._at(), *parts, self._decoded(), self._devices) if part)

    def _mark(self) -> None:
        """Notes when how many were done, once a second, and forgets what is long past."""
        now = monotonic()
        if now - self._marks[-1][0] >= 1:
            self._marks.append((now, self._done))
        while len(self._marks) > 2 and now - self._marks[1][0] > RATE_SECONDS:
            self._marks.popleft()

    def _rate(self) -> float:
        """Samples per second, of late: what was slow minutes ago, such as decoding, says nothing of what is left."""
        now = monotonic()
        begin, done = self._marks[0]
        return (self._done - done) / (now - begin) if now > begin else 0.0

    def _decoded(self) -> str:
        done, total = self._decoding()
        return f"{done}/{total} decoded" if done < total else ""


def _duration(seconds: float) -> str:
    """A time in the largest two units that matter: 45 s, 12 min, 3 h 20 min."""
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


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
