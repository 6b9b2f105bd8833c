"""Which devices to work on, and how many workers: asked for, or found."""

from __future__ import annotations

import ctypes
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.cores import available_cores
from testbed.engine.arithmetic import Arithmetic
from testbed.engine.cards import card, described
from testbed.errors import DeviceError


@dataclass(frozen=True, kw_only=True)
class Devices:
    """Devices for the workers, one each, and a sentence about the choice where there is something to tell.

    `is_inline` runs the only worker in the driver's own process.
    """

    names: tuple[str, ...]
    is_inline: bool = False
    notice: str = ""

    @property
    def described(self) -> tuple[str, ...]:
        """The devices, one for each worker, with what is known of the cards."""
        return tuple(map(described, self.names))

    @property
    def distinct(self) -> tuple[str, ...]:
        """The devices, each once."""
        return tuple(dict.fromkeys(self.names))

    def at_most(self, num_workers: int) -> Devices:
        """The first of them, for so many workers and at least one."""
        return replace(self, names=self.names[: max(1, num_workers)])


def choose_devices(*, gpus: Sequence[int] | None, workers: int | None, workers_per_gpu: int = 1) -> Devices:
    """So many workers per GPU that is asked for; without `gpus` all CUDA devices, else CPU workers.

    CUDA itself is not touched: a driver that holds a context takes memory from the workers.

    Args:
        gpus: CUDA device ids, counted among those that CUDA_VISIBLE_DEVICES leaves; None where the user did not say.
        workers: CPU workers; 0 for none beside the driver, None for one per core.
        workers_per_gpu: that share each GPU.
    Raises: DeviceError: a GPU that is not there, named twice, or asked for together with CPU workers.
    """
    if workers is not None and (gpus is not None or workers_per_gpu > 1):
        asked = f"--workers-per-gpu {workers_per_gpu}" if gpus is None else f"--gpus {_listed(gpus)}"
        raise DeviceError(f"{asked} and --workers {workers} exclude each other: --workers is for the CPU.")
    if workers is not None:
        notice = f"{workers} workers share {available_cores()} core(s)." if workers > available_cores() else ""
        return Devices(names=("cpu",) * max(1, workers), is_inline=workers == 0, notice=notice)
    present = _num_cuda_devices()
    if gpus is not None:
        names = _cuda_names(gpus, present)
        return Devices(names=names * workers_per_gpu, notice=f"Using {_told(names)}.")
    if present:
        names = _cuda_names(range(present), present)
        return Devices(names=names * workers_per_gpu, notice=f"Using all {present} CUDA device(s): {_told(names)}.")
    if workers_per_gpu > 1:
        raise DeviceError(
            f"--workers-per-gpu {workers_per_gpu} was asked for, but no CUDA device is present{_hidden()}. "
            "Leave it out to run on the CPU, with as many --workers as there are cores."
        )
    cores = available_cores()
    return Devices(names=("cpu",) * cores, notice=f"No CUDA device found{_hidden()}: using {cores} CPU worker(s).")


def check_arithmetic(arithmetic: Arithmetic, devices: Devices) -> None:
    """Raises: DeviceError: a device cannot compute in the precision that is asked for."""
    precision = arithmetic.precision
    if precision == "tf32" and "cpu" in devices.names:
        raise DeviceError(
            "--precision tf32 is a format of CUDA devices, and this plan runs on the CPU. Leave it out, or ask for "
            "bf16."
        )
    needed = _CAPABILITIES.get(precision or "")
    for name in devices.distinct:
        found = None if name == "cpu" or needed is None else card(name).capability
        if needed is not None and found is not None and found < needed:
            raise DeviceError(
                f"--precision {precision} needs a card of compute capability {needed[0]}.{needed[1]} or newer, and "
                f"{card(name)} has {found[0]}.{found[1]}. Ask for fp32, or choose another card with --gpus."
            )


_CAPABILITIES = {"tf32": (8, 0), "bf16": (8, 0), "fp16": (5, 3)}  # of cards whose arithmetic units know the format


def _cuda_names(gpus: Sequence[int], present: int) -> tuple[str, ...]:
    if repeated := [gpu for gpu, count in Counter(gpus).items() if count > 1]:
        raise DeviceError(f"--gpus names {_listed(repeated)} more than once. Name each GPU once.")
    absent = [gpu for gpu in gpus if not 0 <= gpu < present]
    if absent:
        cards = [card(f"cuda:{number}") for number in range(present)]
        told = "; ".join(str(one) for one in cards) if any(one.name for one in cards) else _listed(range(present))
        found = f"{present} present ({told})" if present else "none is present"
        remedy = "Choose among these" if present else "Leave --gpus out to run on the CPU"
        asked = f"GPU {absent[0]} was" if len(absent) == 1 else f"GPUs {_listed(absent)} were"
        raise DeviceError(f"{asked} asked for, but {found}{_hidden()}. {remedy}.")
    return tuple(f"cuda:{gpu}" for gpu in gpus)


def _told(names: Sequence[str]) -> str:
    return ", ".join(map(described, names))


def _hidden() -> str:
    """That the user's own choice of visible cards may be why one is missing."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "" if visible is None else f" under CUDA_VISIBLE_DEVICES={visible or repr('')}"


def _num_cuda_devices() -> int:
    """Visible CUDA devices, counted without a context on any."""
    if not _has_driver():
        return 0
    import torch

    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # numbers are then nvidia-smi's, in the workers too
    return torch.cuda.device_count()


def _has_driver() -> bool:
    """Whether there is a driver that PyTorch could use: importing it, to be told of none, takes over a second."""
    if sys.platform != "linux" or Path("/dev/kfd").exists():
        return True
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
