"""How long each worker has been silent, and which of them are given up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic

START_SECONDS = 60.0  # at least: a worker imports libraries and definitions before its first sign of life
MAX_STARTS = 3  # in a row that came to nothing
LONGEST_TURN = 2.0  # seconds


@dataclass
class _Seen:
    at: float
    is_up: bool = False
    num_false_starts: int = 0
    verdict: str = ""


class Watch:
    """Keeps the time of every worker, by a clock that runs only while somebody listens.

    A driver that computes metrics for minutes, or is stopped and continued, has heard nothing because it did not
    listen: each turn of its loop counts for two seconds at most.

    Args:
        timeout: seconds without a sign of life after which a worker is given up.
        clock: in seconds.
    """

    def __init__(self, timeout: float, clock: Callable[[], float] = monotonic) -> None:
        self._timeout, self._clock = timeout, clock
        self._now, self._last_turn = 0.0, clock()
        self._seen: dict[str, _Seen] = {}

    def turn(self) -> None:
        """Lets time pass, once per turn of the driver's loop."""
        now = self._clock()
        self._now += min(now - self._last_turn, LONGEST_TURN)
        self._last_turn = now

    def add(self, worker: str, *, in_place_of: str | None = None) -> None:
        """Begins to watch a worker that has just been started."""
        before = self._seen.pop(in_place_of, None) if in_place_of is not None else None
        num_false_starts = before.num_false_starts + 1 if before is not None and not before.is_up else 0
        self._seen[worker] = _Seen(at=self._now, num_false_starts=num_false_starts)

    def heard(self, worker: str) -> None:
        """Notes a sign of life."""
        self._seen[worker].at, self._seen[worker].is_up = self._now, True

    def begins(self, worker: str) -> None:
        """Notes that a worker that had nothing to do has been given something."""
        self._seen[worker].at = self._now

    def is_up(self, worker: str) -> bool:
        """Whether a worker has ever given a sign of life."""
        return self._seen[worker].is_up

    def may_start_again(self, worker: str) -> bool:
        """Whether a lost worker should be replaced: not after `MAX_STARTS` in its place that never came to life."""
        seen = self._seen[worker]
        return seen.is_up or seen.num_false_starts + 1 < MAX_STARTS

    def newly_silent(self, workers: Iterable[str]) -> list[str]:
        """Those of the workers that have been silent for too long; each is named once."""
        silent = [worker for worker in workers if not self._seen[worker].verdict and self._is_silent(worker)]
        for worker in silent:
            limit = f"{self._limit(worker):g} s"
            self._seen[worker].verdict = f"worker {worker} gave no sign of life for {limit}; --unit-timeout allows more"
        return silent

    def verdict(self, worker: str) -> str:
        """Why a worker was given up; empty if it was not."""
        return self._seen[worker].verdict

    def _is_silent(self, worker: str) -> bool:
        return self._now - self._seen[worker].at > self._limit(worker)

    def _limit(self, worker: str) -> float:
        return self._timeout if self._seen[worker].is_up else max(self._timeout, START_SECONDS)
