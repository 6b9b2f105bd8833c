"""Batches in pieces that stay in the processor's cache, where fresh memory costs more than the arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

_CHUNK_VALUES = 1 << 17


def chunks(images: Tensor) -> Iterator[slice]:
    """Ranges of `images` (n, ...) that together are all: of about 131,072 values each on a CPU, else all at once."""
    size = max(1, math.prod(images.shape[1:]))
    step = max(1, _CHUNK_VALUES // size) if images.device.type == "cpu" else max(1, len(images))
    for start in range(0, len(images), step):
        yield slice(start, min(start + step, len(images)))
