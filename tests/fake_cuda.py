"""A CUDA device played by the CPU, to test what is done with one: which calls are made, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


class FakeEvent:
    """An event that is reached when it is recorded."""

    def __init__(self, **_: Any) -> None:
        self.at = 0.0

    def record(self) -> None:
        self.at = perf_counter()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, later: FakeEvent) -> float:
        return (later.at - self.at) * 1000


class OnCpu(TorchFunctionMode):
    """Whatever is asked for on CUDA is made on the CPU; tells how many bytes went each way."""

    def __init__(self) -> None:
        super().__init__()
        self.uploads: list[tuple[str, tuple[int, ...]]] = []  # types and shapes of the tensors
        self.waits = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.device:
            return func(*args, **kwargs)
        is_upload = func is Tensor.to and any(_is_cuda(value) for value in (*args[1:], *kwargs.values()))
        if is_upload and not isinstance(args[0], torch.nn.Parameter):
            self.uploads.append((str(args[0].dtype), tuple(args[0].shape)))
            self.waits += not kwargs.get("non_blocking", False)
        args = tuple(torch.device("cpu") if _is_cuda(value) else value for value in args)
        kwargs = {name: torch.device("cpu") if _is_cuda(value) else value for name, value in kwargs.items()}
        return func(*args, **kwargs)


def _is_cuda(value: Any) -> bool:
    return (isinstance(value, torch.device) and value.type == "cuda") or (
        isinstance(value, str) and value.startswith("cuda")
    )


@contextmanager
def fake_cuda(monkeypatch: pytest.MonkeyPatch, *, num_bytes: int = 1 << 30) -> Iterator[OnCpu]:
    """`cuda:0` with so many bytes, all of them free."""
    cuda = torch.cuda
    for name, value in {
        "set_device": lambda device: None,
        "set_per_process_memory_fraction": lambda fraction, device: None,
        "Event": FakeEvent,
        "get_device_properties": lambda device: SimpleNamespace(total_memory=num_bytes),
        "mem_get_info": lambda device: (num_bytes, num_bytes),
        "memory_reserved": lambda device: 0,
        "memory_allocated": lambda device: 0,
        "empty_cache": lambda: None,
        "synchronize": lambda device: None,
    }.items():
        monkeypatch.setattr(cuda, name, value)
    monkeypatch.setattr(Tensor, "pin_memory", Tensor.clone)
    with OnCpu() as mode:
        yield mode
