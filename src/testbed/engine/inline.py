"""An engine without processes: one worker in the driver's own process, for debugging and notebooks."""

from __future__ import annotations

import time

from testbed.engine.engine import Event
from testbed.engine.unit import Unit, WorkerConfig


class InlineEngine:
    """Runs each unit while it is waited for. A crash of the model's code is a crash of the driver."""

    depth = 1

    def __init__(self, configs: list[WorkerConfig]) -> None:
        self._config = configs[0]
        self._pending: list[Unit] = []

    def start(self) -> list[str]:
        from testbed.worker.worker import Worker

        self._worker = Worker(self._config)
        return [self._config.name]

    def submit(self, worker: str, unit: Unit) -> None:
        self._pending.append(unit)

    def wait(self, timeout: float) -> list[Event]:
        if not self._pending:
            time.sleep(timeout)
            return []
        unit = self._pending.pop(0)
        return [Event(self._config.name, self._worker.run(unit), unit)]

    def kill(self, worker: str) -> None:
        """Nothing: while the driver can ask for it, no unit is being run."""

    def respawn(self, worker: str) -> str:
        return worker  # a worker that shares the driver's process cannot be lost without it

    def stop(self) -> None:
        self._pending.clear()
