"""Memory of a device and of the machine: how much there is, and which errors say that it was not enough.

Imports torch: only workers load this file.
"""

from __future__ import annotations

import ctypes
import gc
import os
from contextlib import suppress
from pathlib import Path

import torch

from testbed.errors import DeviceError

# What PyTorch's libraries say; a RuntimeError with other words is no lack of memory.
_DEVICE_SHORTAGE = (
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUDA driver error: out of memory",
    "Triton Error [CUDA]: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    "CUFFT_ALLOC_FAILED",
    "CUSOLVER_STATUS_ALLOC_FAILED",
)
_HOST_SHORTAGE = ("can't allocate memory", "Cannot allocate memory", "not enough memory")
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of malloc.h
HOST_REMEDY = "Use a smaller --batch-size, or fewer --workers."
DEVICE_REMEDY = (
    "Use fewer --workers-per-gpu, --precision bf16, a card with more memory, or end what else is running on this one."
)


class OutOfRoom(DeviceError):
    """The device's memory does not suffice for a single image."""


def is_device_shortage(error: BaseException) -> bool:
    """Whether an error says that a device, and not the machine, has too little memory."""
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _DEVICE_SHORTAGE)
    )


def is_host_shortage(error: BaseException) -> bool:
    """Whether an error says that the machine has too little memory."""
    return isinstance(error, MemoryError) or (
        isinstance(error, (RuntimeError, OSError)) and any(words in str(error) for words in _HOST_SHORTAGE)
    )


def is_broken(device: torch.device) -> bool:
    """Whether a device does nothing any more in this process, as after an illegal access in one of its kernels."""
    if device.type != "cuda":
        return False
    try:
        torch.cuda.synchronize(device)
    except RuntimeError:
        return True
    return False


def keep_freed_memory() -> None:
    """Lets the C library keep large blocks that are freed for what is asked for next, up to 2 GB.

    It would give each back to the system, whose pages are then cleared anew for every layer of every batch: up to half
    of the time of a forward pass on the CPU. Other libraries than glibc have no such setting, and are left alone.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def release_unused(device: torch.device) -> None:
    """Gives memory that PyTorch holds for later back to the device. Not from an `except` block: an error in hand
    holds the tensors of the frames that it passed through."""
    if device.type == "cuda":
        gc.collect()  # networks and errors that refer to themselves hold tensors, too
        torch.cuda.empty_cache()


def total_memory(device: torch.device) -> int:
    """Bytes of the device; on the CPU those that the machine, or the container, allows."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 8 << 30
    return min([machine, *_container_limits()])


def _container_limits() -> list[int]:
    limits = []
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # no such file, or the word 'max'
            limits.append(int(Path(path).read_text()))
    return limits


def free_memory(device: torch.device) -> int:
    """Bytes of a CUDA device that this process could still use."""
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0]) + unused
