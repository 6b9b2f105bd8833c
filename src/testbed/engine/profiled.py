"""An engine that tells a profile when its workers start and how long they are waited for."""

from __future__ import annotations

from testbed.engine.engine import Engine, Event, WorkerLost
from testbed.engine.unit import Unit
from testbed.profile import Profile


class ProfiledEngine:
    """Does what the engine does that it stands before."""

    def __init__(self, engine: Engine, profile: Profile) -> None:
        self._engine, self._profile = engine, profile
        self.depth = engine.depth

    def start(self) -> list[str]:
        begin = self._profile.clock()
        names = self._engine.start()
        seconds = self._profile.clock() - begin
        self._profile.waited(seconds)
        for name in names:
            self._profile.started(name, seconds)
        return names

    def submit(self, worker: str, unit: Unit) -> None:
        self._engine.submit(worker, unit)

    def wait(self, timeout: float) -> list[Event]:
        begin = self._profile.clock()
        events = self._engine.wait(timeout)
        self._profile.waited(self._profile.clock() - begin)
        for event in events:
            is_lost = isinstance(event.outcome, WorkerLost)
            (self._profile.lost if is_lost else self._profile.heard)(event.worker)
        return events

    def kill(self, worker: str) -> None:
        self._engine.kill(worker)

    def respawn(self, worker: str) -> str:
        begin = self._profile.clock()
        name = self._engine.respawn(worker)
        self._profile.started(name, self._profile.clock() - begin)
        return name

    def stop(self) -> None:
        begin = self._profile.clock()
        self._engine.stop()
        self._profile.waited(self._profile.clock() - begin)
