"""Batches that do not fit into a device's memory: halved until they do, which is remembered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

import torch
from torch import Tensor

from testbed.engine.cards import described
from testbed.worker.memory import DEVICE_REMEDY, OutOfRoom, is_device_shortage, release_unused


class BatchLimits:
    """For whatever is run on one device, the largest batch that is tried: the whole, until that was too large."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._limits: dict[Hashable, int] = {}

    def pieces(self, what: Hashable, count: int, run: Callable[[int, int], Tensor]) -> Iterator[tuple[int, Tensor]]:
        """Runs all of a batch in order, a piece at a time, and yields each piece's size and its result.

        Args:
            what: is run: a model, or a perturbation.
            count: images of the batch.
            run: `run(start, stop)` on those of these positions. It is called again for a part of them where memory is
                short, so it must not change what it reads.
        Raises: OutOfRoom: not even one image fits.
        """
        start = 0
        while start < count:
            size = self.largest(what, count - start)
            result = self._result(run, start, start + size)
            if result is not None:
                yield size, result
                start += size
                continue
            release_unused(self._device)
            if size == 1:
                where = described(str(self._device))
                raise OutOfRoom(f"{where} has too little memory for a single image. {DEVICE_REMEDY}")
            self._limits[what] = size // 2

    @staticmethod
    def _result(run: Callable[[int, int], Tensor], start: int, stop: int) -> Tensor | None:
        """None where memory did not suffice; the error, and all that it holds, is gone by then."""
        try:
            return run(start, stop)
        except RuntimeError as error:
            if not is_device_shortage(error):
                raise
        return None

    def largest(self, what: Hashable, count: int) -> int:
        """How many of `count` images are run at once."""
        return min(self._limits.get(what, count), count)

    def clear(self) -> bool:
        """Forgets all limits; whether there was one."""
        had_one = bool(self._limits)
        self._limits.clear()
        return had_one

    def forget(self, what: Hashable) -> None:
        """Tries whole batches again, now that there is more room."""
        self._limits.pop(what, None)
