"""The samples of a bank as they are asked for: each is checked at its first use, and decoded again where it is damaged.

A disk, a copy or a full one may have changed any byte since it was written, and a wrong pixel makes a wrong number.
Checked are the samples that are given away, one by one, by whoever maps the file: no other ones have to be read for it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.cache_files import tell_once
from testbed.cores import shared_threads
from testbed.data.bankfile import BankFile, Checksums, Form, overwrite
from testbed.data.blocks import damage_report, decode_block
from testbed.data.imagepipeline import Pipeline
from testbed.errors import DataError

_PIECE_BYTES = 4 << 20  # checked in one go; more are shared among threads


def open_samples(file: BankFile, form: Form, find_pipeline: Callable[[], Pipeline]) -> BankSamples:
    """The samples of a bank, mapped read-only: pages are read when touched and shared between processes.

    Args:
        file, form: of the bank.
        find_pipeline: finds what the samples were decoded by, for those that are damaged.
    Raises: DataError: the file is gone, or is not known to be this bank.
    """
    for _ in range(2):  # the bank may become whole between the two looks
        if (known := file.known_whole()) is not None and known.form == form:
            with suppress(FileNotFoundError):
                return BankSamples(file, file.whole, file.map_whole(known), find_pipeline, known.checksums)
        with suppress(FileNotFoundError):
            return BankSamples(file, file.partial, file.map_partial(form), find_pipeline)
    if file.whole.exists():
        raise DataError(f"The image bank {file.whole} is damaged. Run again: its samples are then decoded anew.")
    raise DataError(f"The image bank {file.whole} was deleted during the run. Run again.")


class BankSamples:
    """Samples by position, of a bank that is whole or being filled. One that is not there yet is an error, never zeros.

    Args:
        file: of the bank.
        path: what `array` maps.
        array: all samples.
        find_pipeline: see `open_samples`.
        checksums: of all samples; None where the journal tells those that are there.
    """

    def __init__(
        self,
        file: BankFile,
        path: Path,
        array: np.memmap[Any, Any],
        find_pipeline: Callable[[], Pipeline],
        checksums: Checksums | None = None,
    ) -> None:
        self._file, self._path, self._array, self._find_pipeline = file, path, array, find_pipeline
        self.shape, self.dtype = array.shape, array.dtype
        self._places = np.arange(len(array))
        self._is_known = np.full(len(array), checksums is not None)
        self._checksums = np.zeros(len(array), np.uint32) if checksums is None else checksums
        self._is_unchecked = np.ones(len(array), bool)

    def __getitem__(self, indices: Any) -> NDArray[Any]:
        """The samples at `indices`.

        Raises: DataError: some are not there yet, or are damaged and cannot be decoded again.
        """
        places = self._places[indices]
        if not self._is_known[places].all():
            self._learn(places)
        chosen: NDArray[Any] = self._array[indices]
        rows = chosen.reshape(-1, *self.shape[1:])
        damaged = self._damaged(places.ravel(), rows)
        if len(damaged):
            rows = np.array(rows)
            for row in damaged:
                rows[row] = self._decoded_again(int(places.flat[row]))
        return rows.reshape(chosen.shape)

    def _learn(self, places: NDArray[np.int64]) -> None:
        """Notes the checksums of what has been filled since. Raises: DataError: some of `places` has not."""
        form = Form(self.shape, self.dtype.name)
        for number, checksums in self._file.filled_blocks().items():
            block = form.block(number)
            if len(checksums) == len(block):
                self._checksums[block.start : block.stop] = checksums
                self._is_known[block.start : block.stop] = True
        if not self._is_known[places].all() and (whole := self._file.known_whole()) is not None:
            self._checksums[:], self._is_known[:] = whole.checksums, True
        if not self._is_known[places].all():
            raise DataError(f"Samples of the image bank {self._path} were asked for that are not decoded yet.")

    def _damaged(self, places: NDArray[np.int64], rows: NDArray[Any]) -> NDArray[np.int64]:
        """The rows, not checked before, that are not what was written at their places."""
        fresh = np.flatnonzero(self._is_unchecked[places])
        if not len(fresh):
            return fresh
        pieces = np.array_split(fresh, 1 + rows[0].nbytes * len(fresh) // _PIECE_BYTES)
        each = map if len(pieces) == 1 else shared_threads().map
        found = np.concatenate(list(each(lambda piece: _checksums(rows, piece), pieces)))
        is_right = found == self._checksums[places[fresh]]
        self._is_unchecked[places[fresh[is_right]]] = False
        return np.compress(~is_right, fresh)

    def _decoded_again(self, place: int) -> NDArray[Any]:
        """A sample that is damaged, as it was; on disk too, where that can be written."""
        tell_once(f"Samples of the image bank {self._file.whole} are damaged and are decoded again.")
        pipeline = self._find_pipeline()
        decoded = decode_block(pipeline, [place], Form(self.shape, self.dtype.name))
        if isinstance(decoded, list):
            raise DataError(damage_report(pipeline.samples, decoded))
        sample: NDArray[Any] = np.ascontiguousarray(decoded[0])
        if zlib.crc32(sample.data) != self._checksums[place]:
            raise DataError(
                f"Sample {place} ({pipeline.name(place)}) of the image bank {self._file.whole} is damaged, and decodes "
                "to another image than before: its file, or a transform, has changed. Delete the bank and run again."
            )
        with suppress(OSError):
            overwrite(self._path, self._array.offset + place * sample.nbytes, sample)
        return sample


def _checksums(samples: NDArray[Any], rows: NDArray[np.int64]) -> Checksums:
    return np.array([zlib.crc32(samples[row]) for row in rows], np.uint32)
