"""The loop of a worker process, with a worker and a pipe that are scripted."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.engine import service
from testbed.engine.engine import WorkerLost
from testbed.engine.service import Line, serve_units
from testbed.engine.unit import SignOfLife

PATIENCE = 5.0  # seconds


class Ended(BaseException):
    """The process would have ended here."""


@dataclass
class FakePipe:
    """Units that come, and what was sent back."""

    units: list[Any]

    def __post_init__(self) -> None:
        self.sent: list[Any] = []

    def recv(self) -> Any:
        if not self.units:
            raise EOFError
        return self.units.pop(0)

    def send(self, message: Any) -> None:
        self.sent.append(message)


class FakeWorker:
    """Notes what is begun and finished; on a device, nothing is finished before the next unit has begun."""

    def __init__(self, *, last: Any = None) -> None:
        self.config = SimpleNamespace(name="cuda:0/0")
        self.log: list[tuple[str, Any]] = []
        self.last = last
        self.begun: dict[Any, threading.Event] = {}

    def begin(self, unit: Any, tell: Any) -> Any:
        if unit == "unusable":
            raise RuntimeError("device-side assert")
        self.log.append(("begin", unit))
        self.begun.setdefault(unit, threading.Event()).set()
        return unit

    def finish(self, begun: Any) -> Any:
        if begun == "spoilt":
            raise RuntimeError("device-side assert")
        if self.last is not None and begun < self.last:
            assert self.begun.setdefault(begun + 1, threading.Event()).wait(PATIENCE), "the device stood idle"
        self.log.append(("finish", begun))
        return f"result {begun}"

    def run(self, unit: Any, tell: Any) -> Any:
        return self.finish(self.begin(unit, tell))


def ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(code: int) -> None:
        raise Ended

    monkeypatch.setattr(os, "_exit", end)


def test_on_the_cpu_units_are_done_one_after_the_other() -> None:
    worker, pipe = FakeWorker(), FakePipe([1, 2, 3])
    serve_units(worker, Line(pipe, pipe), is_overlapped=False)  # type: ignore[arg-type]
    assert pipe.sent == [(1, "result 1"), (2, "result 2"), (3, "result 3")]
    assert worker.log == [(step, unit) for unit in (1, 2, 3) for step in ("begin", "finish")]


def test_on_a_device_the_next_unit_begins_before_the_last_is_encoded_and_at_most_one_is_behind() -> None:
    worker, pipe = FakeWorker(last=5), FakePipe([1, 2, 3, 4, 5])
    serve_units(worker, Line(pipe, pipe), is_overlapped=True)  # type: ignore[arg-type]
    assert pipe.sent == [(unit, f"result {unit}") for unit in (1, 2, 3, 4, 5)]
    position = {entry: at for at, entry in enumerate(worker.log)}
    for unit in (1, 2, 3):
        assert position["begin", unit + 1] < position["finish", unit] < position["begin", unit + 2]


def test_a_result_that_cannot_be_had_ends_the_process_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    ends(monkeypatch)
    pipe = FakePipe([])
    with pytest.raises(Ended):
        service._finish(FakeWorker(), "spoilt", "spoilt", Line(pipe, pipe))  # type: ignore[arg-type]
    assert pipe.sent == [WorkerLost("worker cuda:0/0 ended by itself: RuntimeError: device-side assert")]


def test_what_was_done_is_sent_before_an_unusable_device_ends_the_loop() -> None:
    pipe = FakePipe([1, "unusable", 2])
    with pytest.raises(RuntimeError, match="device-side assert"):
        serve_units(FakeWorker(), Line(pipe, pipe), is_overlapped=True)  # type: ignore[arg-type]
    assert pipe.sent == [(1, "result 1")]


def test_signs_of_life_are_sent_once_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(service, "monotonic", lambda: now[0])
    pipe = FakePipe([])
    line = Line(pipe, pipe)  # type: ignore[arg-type]
    for _ in range(40):
        now[0] += 0.1
        line.tell()
    assert pipe.sent == [SignOfLife()] * 3 or pipe.sent == [SignOfLife()] * 4
    pipe.sent.clear()
    line.send("a result")
    line.tell()
    assert pipe.sent == ["a result"], "a result is a sign of life"


def test_a_worker_whose_driver_has_gone_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    ends(monkeypatch)
    pipe = FakePipe([])
    monkeypatch.setattr(pipe, "send", lambda message: (_ for _ in ()).throw(BrokenPipeError))
    with pytest.raises(Ended):
        Line(pipe, pipe).send("a result")  # type: ignore[arg-type]
