"""The contract between the driver and whatever runs workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from testbed.engine.unit import SignOfLife, Unit, UnitResult


@dataclass(frozen=True)
class WorkerLost:
    """A worker died, with or without units in hand, and why as far as can be told."""

    reason: str


@dataclass(frozen=True)
class Event:
    """What `wait` reports of one worker: the answer to `unit`, that the worker is lost, or that it is at work."""

    worker: str
    outcome: UnitResult | WorkerLost | SignOfLife
    unit: Unit | None = None  # that a UnitResult answers


class Engine(Protocol):
    """Runs units on workers. It schedules nothing, retries nothing and stores nothing: the driver does.

    A worker gives its first sign of life when it can begin, and works on its units in the order they were submitted
    in. Every unit is answered by one result, unless the worker is lost: one `WorkerLost` then stands for all units that
    it had in hand. A worker can be lost at any time, also before its first unit and between two.

    Attributes:
        depth: units that a worker may have in hand: those beyond the first wait for it, so that it never waits.
    """

    depth: int

    def start(self) -> list[str]:
        """Starts all workers and returns their names."""

    def submit(self, worker: str, unit: Unit) -> None:
        """Hands a unit to a worker with fewer than `depth` in hand; returns at once where the engine has processes."""

    def wait(self, timeout: float) -> list[Event]:
        """Events since the last call, at least one unless `timeout` seconds pass first."""

    def kill(self, worker: str) -> None:
        """Ends a worker that gives no sign of life; `wait` then reports it as lost."""

    def respawn(self, worker: str) -> str:
        """Starts a fresh worker in the place of a lost one and returns its name."""

    def stop(self) -> None:
        """Ends all workers now; units in hand are dropped. Safe to call twice."""
