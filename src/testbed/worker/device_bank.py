"""Samples of banks as tensors on a worker's device: read when asked for, read ahead, or kept there. Imports torch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from testbed.data.imagebank import Bank
from testbed.engine.unit import Task
from testbed.worker.memory import free_memory

MAX_OPENED = 32
RESIDENT_SHARE = 0.3  # of a device's free memory
_BLOCK_BYTES = 64 << 20  # uploaded at a time


class DeviceBanks:
    """Reads samples of banks to a device.

    On CUDA, uploads go through pinned memory and wait for nothing. A bank that is whole and small enough is kept on the
    device; from others, one thread reads the next batch while the device is at work.
    """

    def __init__(self, device: torch.device, *, sharing: int = 1) -> None:
        self._device = device
        self._share = RESIDENT_SHARE / sharing
        self._opened: OrderedDict[str, Any] = OrderedDict()
        self._unfinished: set[str] = set()  # banks that were still being filled when they were opened
        self._resident: OrderedDict[str, Tensor] = OrderedDict()
        self._may_keep = device.type == "cuda"
        self._reader = _thread_on(device) if device.type == "cuda" else None
        self._ahead: dict[tuple[str, bytes], Future[Tensor]] = {}

    def read(self, bank: Bank, indices: NDArray[np.int64], *, device: torch.device) -> Tensor:
        """Samples as the bank has them, uint8 or float32: a tensor of its own, on the CPU or on the worker's device."""
        if device.type == "cpu":
            return self._ordered(self._read, bank, indices).result()
        if bank.fingerprint in self._resident:
            return _taken(self._resident[bank.fingerprint], indices)
        pinned = self._ahead.pop(_mark(bank, indices), None) or self._ordered(self._read_pinned, bank, indices)
        return pinned.result().to(device, non_blocking=True)

    def read_ahead(self, bank: Bank, indices: NDArray[np.int64]) -> None:
        """Begins to read what will be asked for next, where that saves time."""
        if self._reader is not None and bank.fingerprint not in self._resident:
            self._ahead[_mark(bank, indices)] = self._ordered(self._read_pinned, bank, indices)

    def prepare(self, task: Task, tell: Callable[[], None]) -> None:
        """Looks at the bank of a task anew: one that has become whole is opened as such.

        On CUDA it is uploaded, where the task uses most of it and it fits; other banks make room.
        """
        self._ahead.clear()
        bank = task.bank
        if bank.fingerprint in self._unfinished and bank.is_complete():
            self._unfinished.discard(bank.fingerprint)
            self._opened.pop(bank.fingerprint, None)
        if bank.fingerprint in self._resident:
            self._resident.move_to_end(bank.fingerprint)
        elif self._may_keep and 2 * len(task.sample_indices) >= bank.shape[0] and bank.is_complete():
            while not (has_room := self._has_room(bank)) and self._resident:
                self._resident.popitem(last=False)
            if has_room:
                self._resident[bank.fingerprint] = self._uploaded(bank, tell)

    def give_up_keeping(self) -> None:
        """Frees what is kept on the device, for good: networks need the room."""
        self._resident.clear()
        self._may_keep = False

    def _has_room(self, bank: Bank) -> bool:
        num_bytes = prod(bank.shape) * np.dtype(bank.dtype).itemsize
        return num_bytes <= self._share * free_memory(self._device)

    def _uploaded(self, bank: Bank, tell: Callable[[], None]) -> Tensor:
        whole = torch.empty(bank.shape, dtype=getattr(torch, bank.dtype), device=self._device)
        step = max(1, _BLOCK_BYTES * len(whole) // whole.nbytes)
        for start in range(0, len(whole), step):
            block = np.arange(start, min(start + step, len(whole)))
            whole[start : start + step].copy_(self._ordered(self._read_pinned, bank, block).result())
            tell()
        return whole

    def _ordered(
        self, read: Callable[[Bank, NDArray[np.int64]], Tensor], bank: Bank, indices: NDArray[np.int64]
    ) -> Future[Tensor]:
        """What a read gives; where there is a thread for it, from that thread, so that there is one at a time."""
        if self._reader is not None:
            return self._reader.submit(read, bank, indices)
        done: Future[Tensor] = Future()
        done.set_result(read(bank, indices))
        return done

    def _read_pinned(self, bank: Bank, indices: NDArray[np.int64]) -> Tensor:
        return self._read(bank, indices).pin_memory()

    def _read(self, bank: Bank, indices: NDArray[np.int64]) -> Tensor:
        if bank.fingerprint not in self._opened:
            if not bank.is_complete():
                self._unfinished.add(bank.fingerprint)
            self._opened[bank.fingerprint] = bank.open()
            if len(self._opened) > MAX_OPENED:
                self._opened.popitem(last=False)
        return torch.from_numpy(np.ascontiguousarray(self._opened[bank.fingerprint][indices]))


def _thread_on(device: torch.device) -> ThreadPoolExecutor:
    """A thread that works on a CUDA device: by default a thread's is the first one, where it would take memory."""
    return ThreadPoolExecutor(max_workers=1, initializer=torch.cuda.set_device, initargs=(device,))


def uploaded(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor on the worker's device; nobody waits for its arrival."""
    return tensor if tensor.device.type == device.type else tensor.pin_memory().to(device, non_blocking=True)


def _taken(whole: Tensor, indices: NDArray[np.int64]) -> Tensor:
    """Rows of a tensor on the device, as a copy."""
    first, last = int(indices[0]), int(indices[-1])
    if last - first + 1 == len(indices) and (np.diff(indices) == 1).all():
        return whole[first : last + 1].clone()
    return whole.index_select(0, uploaded(torch.from_numpy(indices), whole.device))


def _mark(bank: Bank, indices: NDArray[np.int64]) -> tuple[str, bytes]:
    return bank.fingerprint, indices.tobytes()
