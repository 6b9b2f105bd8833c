"""Where the time of a run went: for the driver and for every device, rows that add up to the time on the clock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

DRIVER = "driver"
# The rows: what comes before a worker's first unit, the stages of its units, what the driver does, and what is left.
BEFORE = ("start-up", "preflight", "decode")
ROWS = (*BEFORE, "worker start", "read", "load", "perturb", "forward", "encode", "lost", "store", "results")
IDLE, AT_ONCE = "idle", "at once"

Seconds = dict[str, float]  # by row


class Profile:
    """Collects where time went: one column for the driver, and one per device, the mean of its workers.

    A worker that shares the driver's process has no column of its own: both are one.

    Args:
        is_inline: whether the only worker shares the driver's process.
        clock: in seconds.
        begun: time by the clock at which the program started; now where it is not given.
    """

    def __init__(
        self, *, is_inline: bool = False, clock: Callable[[], float] = time.perf_counter, begun: float | None = None
    ) -> None:
        self.clock, self._is_inline = clock, is_inline
        self._begun = self._phase_begun = clock() if begun is None else begun
        self._phase = BEFORE[0]
        self._apart = 0.0  # of this phase, what is not its own: the wait for workers, and what has another row
        self._driver: Seconds = {}
        self._workers: dict[str, Seconds] = {}
        self._starting: dict[str, float] = {}  # workers that have not been heard of, and since when
        self._heard: dict[str, float] = {}  # the others, and when they were heard of last

    @classmethod
    def of_this_process(cls, *, is_inline: bool = False) -> Profile:
        """A profile that counts from the start of the process."""
        return cls(is_inline=is_inline, begun=time.perf_counter() - _age_of_process())

    def begin(self, phase: str) -> None:
        """Begins a phase of the driver: 'preflight', 'store' (less the wait for workers) or 'results'."""
        now = self.clock()
        self._driver[self._phase] = self._driver.get(self._phase, 0.0) + now - self._phase_begun - self._apart
        self._phase, self._phase_begun, self._apart = phase, now, 0.0

    def took(self, row: str, seconds: float) -> None:
        """Part of the present phase went into something that has a row of its own."""
        self._driver[row] = self._driver.get(row, 0.0) + seconds
        self._apart += seconds

    def started(self, worker: str, seconds: float) -> None:
        """A worker has been started, which took `seconds`; it may have to import much before it says something."""
        self._starting[worker] = self.clock() - seconds
        self._workers.setdefault(_seat(worker), {})
        if self._is_inline:
            self.heard(worker)

    def heard(self, worker: str) -> None:
        """A worker has given a sign of life: the first one ends its start."""
        if (begun := self._starting.pop(worker, None)) is not None:
            self.busy(worker, {"worker start": self.clock() - begun})
        self._heard[worker] = self.clock()

    def lost(self, worker: str) -> None:
        """A worker has died, or was silent for too long: what it was at since it was heard of last came to nothing."""
        since = self._heard.pop(worker, self.clock())
        self.heard(worker)
        if since < self.clock():
            self.busy(worker, {"lost": self.clock() - since})

    def waited(self, seconds: float) -> None:
        """The driver has waited for workers."""
        self._apart += seconds

    def busy(self, worker: str, stage_seconds: Mapping[str, float]) -> None:
        """Where the time of a worker's unit went, by stage."""
        seat = _seat(worker)
        self._workers[seat] = _sum([self._workers.get(seat, {}), stage_seconds])

    def columns(self) -> dict[str, Seconds]:
        """Seconds by row, for the driver and for every device, up to now; each column adds up to the same time."""
        self.begin(self._phase)
        for worker in list(self._starting):
            self.heard(worker)  # what it has taken up to now
        wall = self._phase_begun - self._begun
        if self._is_inline and self._workers:
            whole = _sum([self._driver, *self._workers.values()])
            return {_device(seat): _completed(whole, wall) for seat in self._workers}
        before = {row: self._driver[row] for row in BEFORE if row in self._driver}
        columns = {DRIVER: _completed(self._driver, wall)}
        for device in dict.fromkeys(map(_device, self._workers)):
            workers = [spent for seat, spent in self._workers.items() if _device(seat) == device]
            mean = {row: seconds / len(workers) for row, seconds in _sum(workers).items()}
            name = device if len(workers) == 1 else f"{device} (mean of {len(workers)})"
            columns[name] = _completed({**before, **mean}, wall)
        return columns

    def text(self) -> str:
        """The columns side by side, in seconds and percent of the time on the clock."""
        columns = self.columns()
        wall = sum(next(iter(columns.values())).values())
        found = {row for column in columns.values() for row in column}
        rows = [row for row in (*ROWS, *sorted(found - {*ROWS, IDLE, AT_ONCE}), IDLE, AT_ONCE) if row in found]
        cells = [["", *columns]]
        cells += [[row, *(_cell(column.get(row), wall) for column in columns.values())] for row in rows]
        cells += [["total", *(_cell(sum(column.values()), wall) for column in columns.values())]]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in cells)
        return "\n".join("  ".join(line) for line in lines)


def _sum(parts: Iterable[Mapping[str, float]]) -> Seconds:
    total: Seconds = {}
    for part in parts:
        for row, seconds in part.items():
            total[row] = total.get(row, 0.0) + seconds
    return total


def _completed(spent: Mapping[str, float], wall: float) -> Seconds:
    """The rows with what is left of the time. Of stages that ran at once, what counts twice is taken off."""
    left = wall - sum(spent.values())
    return {**spent, (IDLE if left >= 0 else AT_ONCE): left}


def _cell(seconds: float | None, wall: float) -> str:
    return "" if seconds is None else f"{seconds:.1f} s {100 * seconds / wall if wall else 0:4.0f} %"


def _seat(worker: str) -> str:
    """What a worker and those in its place after it was lost have in common: 'cpu/0' of 'cpu/0~2'."""
    return worker.partition("~")[0]


def _device(seat: str) -> str:
    return seat.partition("/")[0]


def _age_of_process() -> float:
    """Seconds since this process was started; 0 where the system does not tell."""
    with suppress(OSError, ValueError, AttributeError, IndexError):
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
    return 0.0
