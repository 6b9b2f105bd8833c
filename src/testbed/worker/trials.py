"""Trials on a device, in whose process they run: how many images at once, and where to perturb. Imports torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from testbed.data.imagebank import Bank
from testbed.engine.unit import Task, Unit
from testbed.records import Shard
from testbed.worker.batch import Batch
from testbed.worker.worker import Worker

MAX_BATCH = 1024
WORTH_MORE = 1.05  # times as fast, or a larger batch is not worth its memory
REPEATS = 3
LEAST_SECONDS = 0.3  # of repeats: what takes a millisecond is easily disturbed
PERTURBED_IMAGES = 32


def largest_batch(worker: Worker, unit: Unit) -> int | None:
    """The batch size, a power of two, up to which more images at once are faster and fit into memory.

    One step that brings nothing is passed over: two small images can take twice as long as one, and four far less than
    four times. None where not even one image can be run.
    """
    best, best_rate, in_vain = None, 0.0, 0
    limit = min(MAX_BATCH, len(worker.config.tasks[unit.task].sample_indices))
    size = 1
    while size <= limit and in_vain < 2:
        rate = _rate(worker, replace(unit, start=0, stop=size, batch_size=size))
        if rate is None:
            break
        if rate >= WORTH_MORE * best_rate:
            best, best_rate, in_vain = size, rate, 0
        else:
            in_vain += 1
        size *= 2
    return best


def _rate(worker: Worker, unit: Unit) -> float | None:
    """Images per second at best, after a run to warm up; None where they cannot be run at once."""
    fastest, repeat, end = float("inf"), 0, perf_counter() + LEAST_SECONDS
    while repeat <= REPEATS or perf_counter() < end:
        result = worker.run(unit)
        if worker.forget_limits() or not all(isinstance(one, Shard) for one in result.outcomes.values()):
            return None
        if repeat:
            fastest = min(fastest, sum(result.seconds.get(stage, 0.0) for stage in ("perturb", "forward")))
        repeat += 1
    return unit.num_samples / fastest


def cheaper_place(worker: Worker, unit: Unit) -> Literal["device", "cpu"] | None:
    """Where the perturbation of a unit's setting takes less time, with the way to the device; None where it fails."""
    if worker.device.type == "cpu":
        return "device"
    unit = replace(unit, start=0, stop=min(PERTURBED_IMAGES, len(worker.config.tasks[unit.task].sample_indices)))
    try:
        on_device = _perturb_seconds(worker, unit, "device")
        return "cpu" if _perturb_seconds(worker, unit, "cpu") < on_device else "device"
    except Exception:  # it will fail in the evaluation as well, which says why
        return None


def _perturb_seconds(worker: Worker, unit: Unit, place: Literal["device", "cpu"]) -> float:
    fastest = float("inf")
    for repeat in range(1 + REPEATS):
        batch = Batch(worker.scene(unit, perturbs_on=place), unit.start, unit.stop)
        begin = perf_counter()
        batch.perturbed(None)
        torch.cuda.synchronize(worker.device)
        if repeat:
            fastest = min(fastest, perf_counter() - begin)
    return fastest


@dataclass(frozen=True, kw_only=True)
class InventedBank(Bank):
    """Random samples in the place of a bank that may not have been filled yet."""

    def open(self) -> Any:
        """Samples that are drawn when they are asked for."""
        return _Invented(self.shape, self.dtype)

    def is_complete(self) -> bool:
        """Never: there is nothing to keep."""
        return False


@dataclass(frozen=True)
class _Invented:
    shape: tuple[int, ...]
    dtype: str

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        shape, generator = (len(indices), *self.shape[1:]), np.random.default_rng(0)
        if self.dtype == "uint8":
            return generator.integers(0, 256, shape, dtype=np.uint8)
        return generator.random(shape, dtype=np.float32)


def invented(task: Task) -> Task:
    """The task on random samples."""
    bank = task.bank
    return replace(
        task,
        bank=InventedBank(
            path=bank.path, shape=bank.shape, dtype=bank.dtype, fingerprint=f"invented {bank.fingerprint}"
        ),
    )
