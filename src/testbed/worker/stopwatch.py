"""Where a unit's time goes, by stage: on the host's clock, or on a CUDA device's own. Imports torch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import torch

Label = tuple[str, str]  # stage, owner


class Stopwatch:
    """Adds up seconds by (stage, owner).

    Work that is queued on a CUDA device takes the host no time: events in its queue tell how long it took there. Such
    seconds pass while the host's do, so that both together can be more than the time that passed.
    """

    def __init__(self, device: torch.device) -> None:
        self._is_cuda = device.type == "cuda"
        self._seconds: defaultdict[Label, float] = defaultdict(float)
        self._events: list[tuple[Label, torch.cuda.Event, torch.cuda.Event]] = []

    @contextmanager
    def stage(self, name: str, owner: str = "", *, is_queued: bool = False) -> Iterator[None]:
        """Times what is done inside; `is_queued` where a CUDA device does it."""
        if is_queued and self._is_cuda:
            start, stop = _event(), _event()
            start.record()
            yield
            stop.record()  # not after an error: the device may be unable to
            self._events.append(((name, owner), start, stop))
            return
        begin = perf_counter()
        try:
            yield
        finally:
            self._seconds[name, owner] += perf_counter() - begin

    def seconds(self) -> defaultdict[Label, float]:
        """Seconds by (stage, owner). Only once the device has finished what was queued."""
        total = self._seconds.copy()
        for label, start, stop in self._events:
            total[label] += start.elapsed_time(stop) / 1000
        return total


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
