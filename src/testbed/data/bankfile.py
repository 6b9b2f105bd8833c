"""The files of an image bank: one .npy when it is whole, before that one that is filled block by block.

============  =========================================================================================================
KEY.npy       all samples; it takes this name when every block is filled and on disk
KEY.partial   the same file before that, of full size from the start, so that a full disk is an error at the start
KEY.journal   the blocks that are filled, one a line: its number, and the CRC-32 of its bytes in hex
KEY.lock      locked by the process that fills; the system frees it when that process dies
============  =========================================================================================================

A line of the journal is written after its block, but power loss may keep the one without the other: a block counts as
filled where its bytes have the checksum. All processes fill a bank with the same bytes.
"""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from testbed.errors import DataError

BLOCK = 32  # samples that are decoded and written together
_LINE = re.compile(rb"^(\d+) ([0-9a-f]{8})$", re.MULTILINE)


@dataclass(frozen=True)
class Form:
    """Shape [n, ...] and dtype of a bank."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def num_bytes(self) -> int:
        """What all samples take."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def num_blocks(self) -> int:
        """The last one may be short."""
        return -(-self.shape[0] // BLOCK)

    def block(self, number: int) -> range:
        """The samples of a block."""
        return range(number * BLOCK, min((number + 1) * BLOCK, self.shape[0]))


@dataclass(frozen=True)
class BankFile:
    """The files of one bank, named by the whole one."""

    whole: Path

    @property
    def partial(self) -> Path:
        """The bank while it is being filled."""
        return self.whole.with_suffix(".partial")

    @property
    def journal(self) -> Path:
        """The blocks that are filled."""
        return self.whole.with_suffix(".journal")

    @property
    def lock(self) -> Path:
        """Whose lock the filling process holds."""
        return self.whole.with_suffix(".lock")

    def whole_form(self, num_samples: int) -> Form | None:
        """What the whole bank holds; None where there is none, or a file that is damaged."""
        return _form(self.whole, num_samples)

    def partial_form(self, num_samples: int) -> Form | None:
        """The same of the bank that is being filled."""
        return _form(self.partial, num_samples)

    def allocate(self, form: Form) -> None:
        """An empty bank at its full size. Raises: OSError: the disk is full, among others."""
        self.journal.unlink(missing_ok=True)
        header = {"descr": np.dtype(form.dtype).str, "fortran_order": False, "shape": form.shape}
        with open(self.partial, "wb") as stream:
            np.lib.format.write_array_header_2_0(stream, header)
            _extend(stream, form.num_bytes)

    def filled_blocks(self) -> dict[int, int]:
        """Checksum by number of the blocks that the journal calls filled; a line that is not whole is none."""
        try:
            lines = _LINE.findall(self.journal.read_bytes())
        except FileNotFoundError:
            return {}
        return {int(number): int(crc, 16) for number, crc in lines}

    def map_partial(self) -> np.memmap[Any, Any]:
        """The bank that is being filled, mapped read-only. Raises: FileNotFoundError."""
        return _mapped(self.partial)

    def map_whole(self) -> np.memmap[Any, Any]:
        """The whole bank, mapped read-only. Raises: FileNotFoundError. DataError: the file is damaged."""
        try:
            return _mapped(self.whole)
        except (ValueError, EOFError) as error:
            raise DataError(f"The image bank {self.whole} is damaged. Delete it and run again.") from error

    def complete(self) -> None:
        """Gives the bank, all of whose blocks are on disk, its final name."""
        self.partial.replace(self.whole)
        _sync_folder(self.whole.parent)
        self.journal.unlink(missing_ok=True)
        self.lock.unlink(missing_ok=True)  # whoever waits for it finds the whole bank

    def remove_partial(self) -> None:
        """Takes a bank that was not filled off the disk."""
        for path in (self.journal, self.partial, self.lock):
            path.unlink(missing_ok=True)


class BlockFile:
    """A bank that is being filled, open to write blocks and to check them, from any number of threads.

    Not through a map of the file: a failing disk is then an error where a map would crash.
    """

    def __init__(self, file: BankFile, form: Form) -> None:
        self._form = form
        self._sample_bytes = form.num_bytes // form.shape[0]
        self._start = file.map_partial().offset
        self._samples = os.open(file.partial, os.O_RDWR)
        self._journal = os.open(file.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._inode = os.fstat(self._samples).st_ino  # of no other file while this one is open

    def is_of(self, file: BankFile) -> bool:
        """Whether this is what the bank's name stands for, and not a file that was deleted and begun anew."""
        try:
            return file.partial.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    def begin(self) -> None:
        """Before the first block is written: ends a line that a killed process may have left unfinished."""
        os.write(self._journal, b"\n")

    def write(self, number: int, samples: NDArray[Any]) -> None:
        """Writes a block, then that it is there."""
        data = memoryview(np.ascontiguousarray(samples).data).cast("B")
        done = 0
        while done < len(data):
            done += os.pwrite(self._samples, data[done:], self._place(number) + done)
        os.write(self._journal, f"{number} {zlib.crc32(data):08x}\n".encode())

    def has_checksum(self, number: int, crc: int | None) -> bool:
        """Whether the bytes of a block are those that were written."""
        if crc is None:
            return False
        num_bytes = len(self._form.block(number)) * self._sample_bytes
        return zlib.crc32(os.pread(self._samples, num_bytes, self._place(number))) == crc

    def sync(self) -> None:
        """Waits until all blocks are on disk."""
        os.fsync(self._samples)

    def close(self) -> None:
        """Once no thread uses it any more."""
        os.close(self._samples)
        os.close(self._journal)

    def _place(self, number: int) -> int:
        return self._start + number * BLOCK * self._sample_bytes


class PartialBank:
    """The samples of a bank that is being filled. Asking for one that is not there yet is an error, never zeros."""

    def __init__(self, file: BankFile) -> None:
        self._file, self._array = file, file.map_partial()
        self._filled: set[int] = set()
        self.shape, self.dtype = self._array.shape, self._array.dtype

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, indices: Any) -> NDArray[Any]:
        places = np.arange(*indices.indices(len(self))) if isinstance(indices, slice) else np.asarray(indices)
        wanted = set((places // BLOCK).ravel().tolist())
        if not wanted <= self._filled:
            self._filled |= set(self._file.filled_blocks())
        if not wanted <= self._filled and not self._file.whole.exists():
            raise DataError(f"Samples of the image bank {self._file.partial} were asked for that are not decoded yet.")
        chosen: NDArray[Any] = self._array[indices]
        return chosen


def _form(path: Path, num_samples: int) -> Form | None:
    try:
        array = _mapped(path)
    except (OSError, ValueError, EOFError):
        return None
    return Form(array.shape, array.dtype.name) if len(array) == num_samples else None


def _mapped(path: Path) -> np.memmap[Any, Any]:
    array: np.memmap[Any, Any] = np.load(path, mmap_mode="r")
    return array


def _extend(stream: BinaryIO, num_bytes: int) -> None:
    """Adds zeros that have their place on the disk."""
    if hasattr(os, "posix_fallocate"):
        stream.flush()
        os.posix_fallocate(stream.fileno(), stream.tell(), num_bytes)
        return
    zeros = bytes(1 << 20)
    for start in range(0, num_bytes, len(zeros)):
        stream.write(zeros[: num_bytes - start])


def _sync_folder(folder: Path) -> None:
    """Waits until the names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
