"""The contract between the driver and whatever runs workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from testbed.engine.unit import Unit, UnitResult


@dataclass(frozen=True)
class WorkerLost:
    """A worker died with a unit in hand, and why as far as can be told."""

    reason: str


@dataclass(frozen=True)
class Event:
    """What `wait` reports of one worker: the answer to its unit, or that it is lost."""

    worker: str
    outcome: UnitResult | WorkerLost


class Engine(Protocol):
    """Runs units on workers. It schedules nothing, retries nothing and stores nothing: the driver does.

    Implementations must report every submitted unit exactly once, as a result or as `WorkerLost`, unless stopped.
    """

    def start(self) -> list[str]:
        """Starts all workers and returns their names."""

    def submit(self, worker: str, unit: Unit) -> None:
        """Hands a unit to an idle worker; returns at once where the engine has processes."""

    def wait(self, timeout: float) -> list[Event]:
        """Events since the last call, at least one unless `timeout` seconds pass first."""

    def respawn(self, worker: str) -> str:
        """Starts a fresh worker in the place of a lost one and returns its name."""

    def stop(self) -> None:
        """Ends all workers now; units in hand are dropped. Safe to call twice."""
