"""Images that lie several in a file, such as the frames of a video: a file is opened when one of them is asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import accumulate
from threading import Lock
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Container = TypeVar("Container")
Content = TypeVar("Content")


class ContainedImages(Sequence[Pixels], Generic[Container, Content]):
    """The images of all containers, one container after the other; any number of threads may ask for them.

    Args:
        containers: what the images lie in, such as files.
        counts: images in each.
        read: a container -> its content, from which several images are taken.
        image: (content, position in it) -> pixels [H, W, 3].
        num_kept: contents that are kept for the images that are asked for next.
    """

    def __init__(
        self,
        containers: Sequence[Container],
        counts: Sequence[int],
        *,
        read: Callable[[Container], Content],
        image: Callable[[Content, int], Pixels],
        num_kept: int,
    ) -> None:
        self._containers, self._read, self._image, self._num_kept = containers, read, image, num_kept
        self._starts = [0, *accumulate(counts)]
        self._kept: OrderedDict[int, Content] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, index: int) -> Pixels: ...

    @overload
    def __getitem__(self, index: slice) -> list[Pixels]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        number = bisect_right(self._starts, index) - 1
        return self._image(self._content(number), index - self._starts[number])

    def _content(self, number: int) -> Content:
        with self._lock:
            if number in self._kept:
                self._kept.move_to_end(number)
                return self._kept[number]
        content = self._read(self._containers[number])
        with self._lock:
            self._kept[number] = content
            while len(self._kept) > self._num_kept:
                self._kept.popitem(last=False)
        return content
