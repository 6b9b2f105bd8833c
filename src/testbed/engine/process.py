"""An engine of processes on one machine: one spawned worker per device, two pipes each.

A worker can be frozen at any moment, also in the middle of a message, and whoever reads or fills its pipes then waits
with it. So two threads do that for each worker, and the driver waits for what they have read, for as long as it wants.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any

from testbed.engine.engine import Event, WorkerLost
from testbed.engine.oom_killer import OomKiller
from testbed.engine.service import serve, spared_from_signals
from testbed.engine.unit import SignOfLife, Unit, WorkerConfig

_SPAWN = multiprocessing.get_context("spawn")  # a forked CUDA context or thread pool does not work in the child
_STOP_SECONDS = 5.0
_LAST_WORDS_SECONDS = 1.0  # a worker that has died may have left messages in its pipe


@dataclass(frozen=True)
class _End:
    """Nothing more comes from a worker; why, where it is not simply gone."""

    reason: str = ""


@dataclass
class _Worker:
    process: BaseProcess
    reader: Thread
    outbox: SimpleQueue[Unit | None] = field(default_factory=SimpleQueue)
    is_up: bool = False
    num_in_hand: int = 0


class ProcessEngine:
    """Each worker has pipes of its own: a queue that is shared can be left locked by a worker that is killed."""

    depth = 2

    def __init__(self, configs: list[WorkerConfig]) -> None:
        self._configs = {config.name: config for config in configs}
        self._workers: dict[str, _Worker] = {}
        self._inbox: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._generation = 0

    def start(self) -> list[str]:
        self._oom_killer = OomKiller()
        for config in list(self._configs.values()):
            self._spawn(config)
        return list(self._workers)

    def _spawn(self, config: WorkerConfig) -> None:
        units, to_worker = _SPAWN.Pipe(duplex=False)
        from_worker, answers = _SPAWN.Pipe(duplex=False)
        process = _SPAWN.Process(target=serve, args=(config, units, answers), name=config.name, daemon=True)
        with spared_from_signals():
            process.start()
        for theirs in (units, answers):
            theirs.close()  # so that the child's ends are the only ones, and its death is an end of file here
        reader = Thread(target=_read, args=(config.name, from_worker, self._inbox), daemon=True)
        self._configs[config.name] = config
        self._workers[config.name] = worker = _Worker(process, reader)
        Thread(target=_write, args=(to_worker, worker.outbox), daemon=True).start()
        reader.start()

    def submit(self, worker: str, unit: Unit) -> None:
        self._workers[worker].num_in_hand += 1
        self._workers[worker].outbox.put(unit)

    def wait(self, timeout: float) -> list[Event]:
        messages = list(self._messages(timeout))
        # a process that a worker has started can outlive it and hold its pipe open
        for name in [name for name, worker in self._workers.items() if not worker.process.is_alive()]:
            self._workers[name].reader.join(_LAST_WORDS_SECONDS)
            messages += [*self._messages(0), (name, _End())]
        return [event for name, message in messages if name in self._workers for event in self._events(name, message)]

    def _messages(self, timeout: float) -> Iterator[tuple[str, Any]]:
        """What has been read: after the first, for which it waits, all that is there."""
        with suppress(Empty):
            yield self._inbox.get(timeout=timeout) if timeout > 0 else self._inbox.get_nowait()
            while True:
                yield self._inbox.get_nowait()

    def _events(self, name: str, message: Any) -> Iterator[Event]:
        worker = self._workers[name]
        if isinstance(message, _End):
            yield Event(name, WorkerLost(self._bury(name, message.reason)))
            return
        worker.is_up = True
        if isinstance(message, WorkerLost):
            self._bury(name)
            yield Event(name, message)
        elif isinstance(message, SignOfLife):
            yield Event(name, message)
        else:
            unit, result = message
            worker.num_in_hand -= 1
            yield Event(name, result, unit)

    def _bury(self, name: str, reason: str = "") -> str:
        """Why a worker ended, in words."""
        worker = self._workers.pop(name)
        worker.outbox.put(None)
        if reason:
            worker.process.kill()
        worker.process.join(_STOP_SECONDS)
        code = worker.process.exitcode
        if code is None:
            worker.process.kill()
        if reason or code is None:
            return f"worker {name} {reason or 'closed its connection'}"
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
            worker.outbox.put(None)  # an idle worker leaves at the end of its pipe
            if worker.num_in_hand or not worker.is_up:
                worker.process.kill()
        deadline = monotonic() + _STOP_SECONDS
        for worker in self._workers.values():
            worker.process.join(max(0.0, deadline - monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join(_STOP_SECONDS)  # one that hangs in a driver of the system cannot be waited for
        self._workers.clear()


def _read(name: str, connection: Connection, inbox: SimpleQueue[tuple[str, Any]]) -> None:
    """Passes on all that a worker says, until the end of its pipe."""
    end = _End()
    try:
        with connection:
            while True:
                inbox.put((name, connection.recv()))
    except (EOFError, OSError):
        pass
    except Exception as error:  # what it writes is no message: nearly anything can come of it
        end = _End(f"said what cannot be read ({type(error).__name__})")
    inbox.put((name, end))


def _write(connection: Connection, outbox: SimpleQueue[Unit | None]) -> None:
    """Hands on units until there are no more; a worker that has died is reported by whoever reads its answers."""
    with connection, suppress(OSError):
        while (unit := outbox.get()) is not None:
            connection.send(unit)
