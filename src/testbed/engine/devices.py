"""Which devices to work on, and how many workers: asked for, or found."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.errors import DeviceError


@dataclass(frozen=True, kw_only=True)
class Devices:
    """Devices for the workers, one each, and a sentence about the choice where the user did not make it.

    `is_inline` runs the only worker in the driver's own process.
    """

    names: tuple[str, ...]
    is_inline: bool = False
    notice: str = ""


def choose_devices(*, gpus: Sequence[int] | None, workers: int | None) -> Devices:
    """One worker per GPU asked for; without `gpus` all CUDA devices, else CPU workers.

    Args:
        gpus: CUDA device ids; None where the user did not say.
        workers: CPU workers; 0 for none beside the driver, None for one per core.
    Raises: DeviceError: a GPU that is not there, named twice, or asked for together with CPU workers.
    """
    if gpus is not None and workers is not None:
        raise DeviceError(
            f"--gpus {_listed(gpus)} and --workers {workers} exclude each other: --workers is for the CPU."
        )
    if gpus is not None:
        return Devices(names=_cuda_names(gpus))
    if workers is not None:
        return Devices(names=("cpu",) * max(1, workers), is_inline=workers == 0)
    if present := _num_cuda_devices():
        return Devices(names=_cuda_names(range(present)), notice=f"Using all {present} CUDA device(s).")
    cores = available_cores()
    return Devices(names=("cpu",) * cores, notice=f"No CUDA device found: using {cores} CPU worker(s).")


def available_cores() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cuda_names(gpus: Sequence[int]) -> tuple[str, ...]:
    if repeated := [gpu for gpu, count in Counter(gpus).items() if count > 1]:
        raise DeviceError(f"--gpus names {_listed(repeated)} more than once. Name each GPU once.")
    present = _num_cuda_devices()
    absent = [gpu for gpu in gpus if not 0 <= gpu < present]
    if absent:
        found = f"{present} present ({_listed(range(present))})" if present else "none is present"
        remedy = "Choose among these" if present else "Leave --gpus out to run on the CPU"
        raise DeviceError(f"GPU {_listed(absent)} was asked for, but {found}. {remedy}.")
    return tuple(f"cuda:{gpu}" for gpu in gpus)


def _num_cuda_devices() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
