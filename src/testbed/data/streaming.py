"""Samples that are decoded whenever they are needed, in place of a bank on disk: the same bytes, nothing kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.cores import shared_threads
from testbed.data.bankfile import Form
from testbed.data.blocks import decode_block
from testbed.data.imagebank import Bank, SampleArray
from testbed.data.imagepipeline import Pipeline
from testbed.errors import DataError


@dataclass(frozen=True, kw_only=True)
class StreamedBank(Bank):
    """A bank without a file."""

    def open(self) -> SampleArray:
        """The samples, decoded as they are asked for. Raises: DataError: they have changed, or are gone."""
        return StreamedArray(self.pipeline(), Form(self.shape, self.dtype))

    def is_complete(self) -> bool:
        """Never: nothing is on disk."""
        return False


class StreamedArray:
    """Samples by position, decoded when asked for."""

    def __init__(self, pipeline: Pipeline, form: Form) -> None:
        self._pipeline, self._form = pipeline, form
        self.shape, self.dtype = form.shape, np.dtype(form.dtype)

    def __getitem__(self, indices: Any) -> NDArray[Any]:
        """The samples at `indices`. Raises: DataError: a damaged file, named with its index."""
        places = np.arange(self.shape[0])[indices]
        chosen = np.empty((*places.shape, *self.shape[1:]), self.dtype)
        flat = chosen.reshape(-1, *self.shape[1:])
        for row, sample in enumerate(shared_threads().map(self._sample, places.ravel().tolist())):
            flat[row] = sample
        return chosen

    def _sample(self, index: int) -> NDArray[Any]:
        decoded = decode_block(self._pipeline, [index], self._form)
        if isinstance(decoded, list):
            raise DataError(f"Index {index} of data set '{self._pipeline.samples.dataset}': {decoded[0].reason}")
        sample: NDArray[Any] = decoded[0]
        return sample
