"""An engine of processes on one machine: one spawned worker per device, one pipe each."""

from __future__ import annotations

import multiprocessing
import signal
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from testbed.engine.engine import Event, WorkerLost
from testbed.engine.unit import Unit, UnitFailure, UnitResult, WorkerConfig

_SPAWN = multiprocessing.get_context("spawn")  # a forked CUDA context or thread pool does not work in the child
_STOP_SECONDS = 5.0


class ProcessEngine:
    """Each worker has a pipe of its own: a queue that is shared can be left locked by a worker that is killed."""

    def __init__(self, configs: list[WorkerConfig]) -> None:
        self._configs = {config.name: config for config in configs}
        self._workers: dict[str, tuple[BaseProcess, Connection]] = {}
        self._busy: set[str] = set()
        self._generation = 0

    def start(self) -> list[str]:
        for config in self._configs.values():
            self._spawn(config)
        return list(self._workers)

    def _spawn(self, config: WorkerConfig) -> None:
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(target=_serve, args=(config, theirs), name=config.name, daemon=True)
        process.start()
        theirs.close()  # so that the child's end is the only one, and its death is an end of file here
        self._configs[config.name] = config
        self._workers[config.name] = (process, ours)

    def submit(self, worker: str, unit: Unit) -> None:
        if not self._workers[worker][0].is_alive():  # it died while idle: no fault of this unit
            self._bury(worker)
            self._spawn(self._configs[worker])
        self._busy.add(worker)
        with suppress(BrokenPipeError, ConnectionResetError):  # it died while idle, which `wait` will find
            self._workers[worker][1].send(unit)

    def wait(self, timeout: float) -> list[Event]:
        by_connection = {self._workers[name][1]: name for name in self._busy}
        events = []
        for connection in wait(list(by_connection), timeout):
            name = by_connection[connection]  # type: ignore[index]
            self._busy.discard(name)
            try:
                events.append(Event(name, self._workers[name][1].recv()))
            except (EOFError, ConnectionResetError):
                events.append(Event(name, WorkerLost(self._bury(name))))
        return events

    def _bury(self, worker: str) -> str:
        """Why a worker ended, in words."""
        process, connection = self._workers.pop(worker)
        connection.close()
        process.join(_STOP_SECONDS)
        code = process.exitcode
        if code is None or code >= 0:
            return f"worker {worker} ended by itself with exit code {code}"
        hint = ", probably out of memory" if code == -signal.SIGKILL else ""
        return f"worker {worker} was ended by signal {signal.Signals(-code).name}{hint}"

    def respawn(self, worker: str) -> str:
        self._generation += 1
        config = self._configs.pop(worker)
        fresh = replace(config, name=f"{worker.split('~')[0]}~{self._generation}")
        self._spawn(fresh)
        return fresh.name

    def stop(self) -> None:
        for process, connection in self._workers.values():
            connection.close()
            process.terminate()
        for process, _ in self._workers.values():
            process.join(_STOP_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
        self._workers.clear()
        self._busy.clear()


def _serve(config: WorkerConfig, connection: Connection) -> None:
    """The life of a worker process: units in, results out, until the driver is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the driver decides what it means
    from testbed.engine.worker import Worker

    try:
        worker: Worker | None = Worker(config)
    except Exception as error:  # every unit then fails with this reason, instead of killing worker after worker
        worker, start_failure = None, UnitFailure(reason=f"no worker could start: {error}")
    while True:
        try:
            unit = connection.recv()
        except EOFError:
            return
        result = (
            UnitResult(outcomes=dict.fromkeys(unit.models, start_failure), facts={})
            if worker is None
            else worker.run(unit)
        )
        try:
            connection.send(result)
        except BrokenPipeError:
            return
