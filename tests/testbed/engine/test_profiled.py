"""An engine whose workers' starts and waits are profiled does what the engine alone does."""

from __future__ import annotations

import pytest

from testbed.engine.engine import Event, WorkerLost
from testbed.engine.profiled import ProfiledEngine
from testbed.engine.unit import SignOfLife, Unit
from testbed.profile import Profile

UNIT = Unit(task=0, models=("m",), fit_seed=0, noise_seed=0, draw=0, start=0, stop=1, batch_size=1)


class Slow:
    """An engine that takes a second to start a worker, four until it is heard of, and notes what it is asked."""

    depth = 2

    def __init__(self) -> None:
        self.now = 0.0
        self.asked: list[object] = []
        self.says = Event("cpu/0", SignOfLife())

    def start(self) -> list[str]:
        self.now += 1
        return ["cpu/0"]

    def submit(self, worker: str, unit: Unit) -> None:
        self.asked.append(("submit", worker, unit))

    def wait(self, timeout: float) -> list[Event]:
        self.now += 4
        return [self.says]

    def kill(self, worker: str) -> None:
        self.asked.append(("kill", worker))

    def respawn(self, worker: str) -> str:
        self.now += 1
        return f"{worker}~1"

    def stop(self) -> None:
        self.now += 2


def test_starts_and_waits_are_told_and_the_rest_is_handed_on() -> None:
    slow = Slow()
    profile = Profile(clock=lambda: slow.now)
    profile.begin("store")
    engine = ProfiledEngine(slow, profile)
    assert engine.depth == 2
    assert engine.start() == ["cpu/0"]
    engine.submit("cpu/0", UNIT)
    assert engine.wait(1.0) == [Event("cpu/0", SignOfLife())]
    engine.kill("cpu/0")
    slow.says = Event("cpu/0", WorkerLost("silent"))
    engine.wait(1.0)
    assert engine.respawn("cpu/0") == "cpu/0~1"
    engine.stop()
    assert slow.asked == [("submit", "cpu/0", UNIT), ("kill", "cpu/0")]
    columns = profile.columns()
    assert columns["driver"] == pytest.approx({"start-up": 0, "store": 1, "idle": 11})
    assert columns["cpu"] == pytest.approx({"start-up": 0, "worker start": 5 + 3, "lost": 4, "idle": 0})
