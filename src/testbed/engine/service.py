"""The life of a worker process: units in, results and signs of life out, until the driver is gone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

from testbed.engine.engine import WorkerLost
from testbed.engine.unit import SignOfLife, Unit, WorkerConfig
from testbed.errors import TestbedError

if TYPE_CHECKING:
    from testbed.worker.worker import Begun, Worker

SIGN_SECONDS = 1.0  # at most so often does a worker say that it is at work
_ENDS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def spared_from_signals() -> Iterator[None]:
    """Processes started in here never see Ctrl-C or SIGTERM before `serve` ignores them.

    Both reach the whole group of processes, and what they mean is for the driver to decide.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # its start, which the first process would cause, lets the signals through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve(config: WorkerConfig, units: Connection, answers: Connection) -> None:
    """Runs a worker in this process until the driver closes the pipe of units or is gone."""
    for number in _ENDS:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
    threading.Thread(target=_leave_with_driver, name="leave with driver", daemon=True).start()
    line = Line(units, answers)
    try:
        from testbed.worker.worker import Worker

        worker = Worker(config)
    except Exception as error:
        line.give_up(f"worker {config.name} could not start: {_reason(error)}")
    line.send(SignOfLife())
    try:
        serve_units(worker, line, is_overlapped=config.device.startswith("cuda"))
    except Exception as error:  # no fault of a model alone: those are answers
        line.give_up(f"worker {config.name} ended by itself: {_reason(error)}")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # PyTorch takes up to a second to be torn down in order, for which the driver would wait


class Line:
    """The worker's ends of its two pipes, for several threads."""

    def __init__(self, units: Connection, answers: Connection) -> None:
        self._units, self._answers = units, answers
        self._lock = threading.Lock()
        self._last = monotonic()

    def receive(self) -> Unit | None:
        """The next unit; None when the driver has closed the pipe."""
        try:
            unit: Unit = self._units.recv()
        except (EOFError, ConnectionResetError):
            return None
        return unit

    def send(self, message: Any) -> None:
        """Tells the driver; where it has gone, the process ends."""
        with self._lock:
            self._last = monotonic()
            try:
                self._answers.send(message)
            except (BrokenPipeError, ConnectionResetError):
                os._exit(1)

    def give_up(self, reason: str) -> NoReturn:
        """Ends the process, and says why."""
        self.send(WorkerLost(reason))
        os._exit(1)

    def tell(self) -> None:
        """Says that the worker is at work, unless something has just been said."""
        if monotonic() - self._last >= SIGN_SECONDS:
            self.send(SignOfLife())


def serve_units(worker: Worker, line: Line, *, is_overlapped: bool) -> None:
    """Runs units until there are no more.

    Args:
        worker: to run them.
        line: where they come from.
        is_overlapped: whether results are encoded and sent in a second thread, while the device is at the next unit; at
            most one unit is behind.
    """
    if not is_overlapped:
        while (unit := line.receive()) is not None:
            line.send((unit, worker.run(unit, line.tell)))
        return
    behind: Future[None] | None = None
    with ThreadPoolExecutor(max_workers=1) as pool:
        while (unit := line.receive()) is not None:
            begun = worker.begin(unit, line.tell)
            if behind is not None:
                behind.result()
            behind = pool.submit(_finish, worker, unit, begun, line)


def _finish(worker: Worker, unit: Unit, begun: Begun, line: Line) -> None:
    try:
        result = worker.finish(begun)
    except Exception as error:  # the thread that takes units may wait for the next one for ever
        line.give_up(f"worker {worker.config.name} ended by itself: {_reason(error)}")
    line.send((unit, result))


def _leave_with_driver() -> None:
    """Ends this process when the driver's ends, also in the middle of a unit that never ends."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _reason(error: Exception) -> str:
    if isinstance(error, TestbedError):
        return str(error)
    return traceback.format_exception_only(error)[-1].strip()
