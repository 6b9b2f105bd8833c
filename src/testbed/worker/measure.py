"""What is best on a device, by trying: the batch size of a model, and where a setting perturbs.

It is tried in a short-lived process, so that the driver never holds a device. Nothing is remembered here.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, Literal

from testbed.engine.unit import Unit, WorkerConfig

_SPAWN = multiprocessing.get_context("spawn")
LONGEST_SECONDS = 600.0  # of one unit; a process that is frozen answers never


def largest_batches(config: WorkerConfig, units: Sequence[Unit]) -> Iterator[int | None]:
    """For each unit, the batch size that its first model is run at best, a power of two; None where it cannot be run.

    Args:
        config: of a worker as the plan will start it, with the tasks that the units name.
        units: of one model each; their samples are repeated as often as a batch needs.
    """
    return _tried("largest_batch", config, units)


def cheaper_places(config: WorkerConfig, units: Sequence[Unit]) -> Iterator[Literal["device", "cpu"] | None]:
    """For each unit, where its setting's perturbation takes less time; None where it cannot be run. Args: as above."""
    return _tried("cheaper_place", config, units)


def _tried(question: str, config: WorkerConfig, units: Sequence[Unit]) -> Iterator[Any]:
    """The answers of `testbed.worker.trials`, in one process as long as none of the units kills it."""
    num_tried = 0
    while num_tried < len(units):
        answers = _answers(question, config, units[num_tried:])
        if next(answers, None) is None:  # it cannot even begin, for whichever unit
            break
        for answer in answers:
            num_tried += 1
            yield answer
        if num_tried < len(units):
            num_tried += 1
            yield None  # the process died of this one
    yield from [None] * (len(units) - num_tried)


def _answers(question: str, config: WorkerConfig, units: Sequence[Unit]) -> Iterator[Any]:
    """That the process has begun, then what it answers, as long as it lives."""
    ours, theirs = _SPAWN.Pipe(duplex=False)
    process = _SPAWN.Process(target=_serve, args=(question, config, units, theirs), daemon=True)
    process.start()
    theirs.close()  # so that the child's death is an end of file here
    try:
        with suppress(EOFError):
            for _ in range(1 + len(units)):
                if not ours.poll(LONGEST_SECONDS):
                    return
                yield ours.recv()
    finally:
        ours.close()
        process.kill()
        process.join()


def _serve(question: str, config: WorkerConfig, units: Sequence[Unit], connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver, which then ends this process
    from testbed.worker import trials
    from testbed.worker.worker import Worker

    tasks = tuple(trials.invented(task) for task in config.tasks)
    # uncompiled: compiling for every size takes minutes, and a network needs no more memory for it
    worker = Worker(replace(config, tasks=tasks, arithmetic=replace(config.arithmetic, is_compiled=False)))
    connection.send(True)
    for unit in units:
        connection.send(getattr(trials, question)(worker, unit))
