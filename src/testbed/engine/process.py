"""An engine of processes on one machine: one spawned worker per device, one pipe each."""

from __future__ import annotations

import multiprocessing
import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic

from testbed.engine.engine import Event, WorkerLost
from testbed.engine.oom_killer import OomKiller
from testbed.engine.service import serve, spared_from_signals
from testbed.engine.unit import SignOfLife, Unit, WorkerConfig

_SPAWN = multiprocessing.get_context("spawn")  # a forked CUDA context or thread pool does not work in the child
_STOP_SECONDS = 5.0


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    is_up: bool = False
    num_in_hand: int = 0


class ProcessEngine:
    """Each worker has a pipe of its own: a queue that is shared can be left locked by a worker that is killed."""

    depth = 2

    def __init__(self, configs: list[WorkerConfig]) -> None:
        self._configs = {config.name: config for config in configs}
        self._workers: dict[str, _Worker] = {}
        self._generation = 0

    def start(self) -> list[str]:
        self._oom_killer = OomKiller()
        for config in list(self._configs.values()):
            self._spawn(config)
        return list(self._workers)

    def _spawn(self, config: WorkerConfig) -> None:
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(target=serve, args=(config, theirs), name=config.name, daemon=True)
        with spared_from_signals():
            process.start()
        theirs.close()  # so that the child's end is the only one, and its death is an end of file here
        self._configs[config.name] = config
        self._workers[config.name] = _Worker(process, ours)

    def submit(self, worker: str, unit: Unit) -> None:
        self._workers[worker].num_in_hand += 1
        with suppress(BrokenPipeError, ConnectionResetError):  # it has died, which `wait` will find
            self._workers[worker].connection.send(unit)

    def wait(self, timeout: float) -> list[Event]:
        names = {worker.connection: name for name, worker in self._workers.items()}
        heard = {names[connection] for connection in wait(list(names), timeout)}  # type: ignore[index]
        # a process that a worker has started can outlive it and hold its pipe open
        heard |= {name for name, worker in self._workers.items() if not worker.process.is_alive()}
        return [event for name in names.values() if name in heard for event in self._events(name)]

    def _events(self, name: str) -> list[Event]:
        """All that a worker has said, and whether it is still there."""
        worker, events = self._workers[name], list[Event]()
        was_alive = worker.process.is_alive()
        try:
            while worker.connection.poll():
                message = worker.connection.recv()
                worker.is_up = True
                if isinstance(message, WorkerLost):
                    self._bury(name)
                    return [*events, Event(name, message)]
                if isinstance(message, SignOfLife):
                    events.append(Event(name, message))
                else:
                    unit, result = message
                    worker.num_in_hand -= 1
                    events.append(Event(name, result, unit))
        except (EOFError, OSError):
            was_alive = False
        return events if was_alive else [*events, Event(name, WorkerLost(self._bury(name)))]

    def _bury(self, name: str) -> str:
        """Why a worker ended, in words."""
        worker = self._workers.pop(name)
        worker.connection.close()
        worker.process.join(_STOP_SECONDS)
        code = worker.process.exitcode
        if code is None:
            worker.process.kill()
            return f"worker {name} closed its connection"
        if code >= 0:
            return f"worker {name} ended by itself with exit code {code}"
        hint = self._oom_killer.explain() if code == -signal.SIGKILL else ""
        return f"worker {name} was ended by signal {signal.Signals(-code).name}{hint}"

    def kill(self, worker: str) -> None:
        self._workers[worker].process.kill()

    def respawn(self, worker: str) -> str:
        self._generation += 1
        config = self._configs.pop(worker)
        fresh = replace(config, name=f"{worker.split('~')[0]}~{self._generation}")
        self._spawn(fresh)
        return fresh.name

    def stop(self) -> None:
        for worker in self._workers.values():
            worker.connection.close()  # an idle worker leaves at the end of its pipe
            if worker.num_in_hand or not worker.is_up:
                worker.process.kill()
        deadline = monotonic() + _STOP_SECONDS
        for worker in self._workers.values():
            worker.process.join(max(0.0, deadline - monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join(_STOP_SECONDS)  # one that hangs in a driver of the system cannot be waited for
        self._workers.clear()
