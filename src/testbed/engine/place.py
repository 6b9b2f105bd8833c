"""Where and with what evaluations are run, and what each worker has to know of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from testbed.definitions import Sources
from testbed.engine.arithmetic import Arithmetic
from testbed.engine.devices import Devices
from testbed.engine.unit import Task, WorkerConfig

DEFAULT_UNIT_TIMEOUT = 1800.0  # seconds


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where and with what evaluations are run.

    Args:
        devices: one worker each.
        threads: CPU threads per worker; results can depend on it, so it is fixed by the plan.
        sources: definitions beside the built-in ones.
        data_root: where data sets are looked for.
        cache_root: where decoded images are kept.
        arithmetic: how networks compute.
        perturbs_on: 'device', 'cpu', or 'auto' for whichever is measured to be cheaper.
        unit_timeout: seconds without a sign of life after which a worker is given up.
        uses_bank: whether decoded images are kept on disk; else they are decoded whenever they are needed.
        bank_limit: bytes that decoded images may take on disk; None for no limit but the disk's.
    """

    devices: Devices
    threads: int
    sources: Sources
    data_root: Path | None
    cache_root: Path
    arithmetic: Arithmetic = field(default_factory=Arithmetic)
    perturbs_on: Literal["auto", "device", "cpu"] = "auto"
    unit_timeout: float = DEFAULT_UNIT_TIMEOUT
    uses_bank: bool = True
    bank_limit: int | None = None

    def worker_configs(self, tasks: tuple[Task, ...]) -> list[WorkerConfig]:
        """What each worker has to know before its first unit, one worker per device. Args: tasks: of the plan."""
        return [
            WorkerConfig(
                name=f"{device}/{position}",
                device=device,
                threads=self.threads,
                sources=self.sources,
                data_root=self.data_root,
                tasks=tasks,
                arithmetic=self.arithmetic,
                sharing=self.devices.names.count(device),
            )
            for position, device in enumerate(self.devices.names)
        ]
