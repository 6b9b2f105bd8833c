"""The files of an image bank: one .npy when it is whole, before that one that is filled block by block.

=============  ========================================================================================================
KEY.npy        all samples; it takes this name when every block is filled and on disk
KEY.checksums  the CRC-32 of every sample of KEY.npy, and how that file begins
KEY.partial    the same as KEY.npy before that, of full size from the start: a full disk is an error at the start
KEY.journal    the blocks that are filled, one a line: its number, and the CRC-32 of each of its samples in hex
KEY.lock       locked by the process that fills; the system frees it when that process dies
=============  ========================================================================================================

A line of the journal is written after its block, but power loss may keep the one without the other: a block counts as
filled where its samples have their checksums. All processes fill a bank with the same bytes. A bank without checksums,
or one that begins otherwise than they say, counts as none and is filled again.
"""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import dataclass
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from testbed.cache_files import read_cached, write_cached

BLOCK = 32  # samples that are decoded and written together
DTYPES = ("uint8", "float32")  # of pixels, and of other numbers
_LINE = re.compile(r"^(\d+) ((?:[0-9a-f]{8})+)$", re.MULTILINE)

Checksums = NDArray[np.uint32]  # (n,) the CRC-32 of each of n samples


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
    def sample_bytes(self) -> int:
        """What each sample takes."""
        return self.num_bytes // self.shape[0]

    @property
    def num_blocks(self) -> int:
        """The last one may be short."""
        return -(-self.shape[0] // BLOCK)

    def block(self, number: int) -> range:
        """The samples of a block."""
        return range(number * BLOCK, min((number + 1) * BLOCK, self.shape[0]))


@dataclass(frozen=True)
class WholeBank:
    """What is known of a whole bank.

    Args:
        form: of its samples.
        header: the bytes of the file before the first sample.
        checksums: of all samples.
    """

    form: Form
    header: bytes
    checksums: Checksums


@dataclass(frozen=True)
class BankFile:
    """The files of one bank, named by the whole one."""

    whole: Path

    @property
    def checksums(self) -> Path:
        """Of the whole bank."""
        return self.whole.with_suffix(".checksums")

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

    def known_whole(self) -> WholeBank | None:
        """What is known of the whole bank; None where there is none, or nothing is known of the file that is there."""
        try:
            with open(self.whole, "rb") as stream:
                known = self._kept()
                if known is None or stream.read(len(known.header)) != known.header:
                    return None
                size = os.fstat(stream.fileno()).st_size
        except OSError:
            return None
        return known if size == len(known.header) + known.form.num_bytes else None

    def whole_form(self, num_samples: int) -> Form | None:
        """What the whole bank holds; None where there is none, or a file that is damaged."""
        known = self.known_whole()
        return known.form if known is not None and known.form.shape[0] == num_samples else None

    def partial_form(self, num_samples: int) -> Form | None:
        """The same of the bank that is being filled."""
        try:
            array = np.lib.format.open_memmap(self.partial, mode="r")
            form, size = Form(array.shape, array.dtype.name), self.partial.stat().st_size
        except Exception:  # whatever NumPy makes of a damaged header
            return None
        header = _header(form)
        with open(self.partial, "rb") as stream:
            begins_so = stream.read(len(header)) == header
        is_ours = form.dtype in DTYPES and form.shape[0] == num_samples
        return form if is_ours and begins_so and size == len(header) + form.num_bytes else None

    def allocate(self, form: Form) -> None:
        """An empty bank at its full size. Raises: OSError: the disk is full, among others."""
        self.journal.unlink(missing_ok=True)
        with open(self.partial, "wb") as stream:
            stream.write(_header(form))
            _extend(stream, form.num_bytes)

    def filled_blocks(self) -> dict[int, Checksums]:
        """Checksums by number of the blocks that the journal calls filled; a line that is not whole is none."""
        try:
            lines = _LINE.findall(self.journal.read_text(encoding="ascii", errors="replace"))
        except FileNotFoundError:
            return {}
        return {int(number): _from_hex(text) for number, text in lines}

    def map_partial(self, form: Form) -> np.memmap[Any, Any]:
        """The samples of the bank that is being filled, mapped read-only. Raises: FileNotFoundError."""
        return _mapped(self.partial, form, len(_header(form)))

    def map_whole(self, known: WholeBank) -> np.memmap[Any, Any]:
        """The samples of the whole bank, mapped read-only. Raises: FileNotFoundError."""
        return _mapped(self.whole, known.form, len(known.header))

    def complete(self, form: Form, checksums: Checksums) -> None:
        """Gives the bank, all of whose blocks are on disk, its final name."""
        content = {
            "key": self.whole.stem,
            "shape": form.shape,
            "dtype": form.dtype,
            "header": _header(form).decode("latin-1"),
            "crc32": _to_hex(checksums),
        }
        write_cached(self.checksums, content)
        self.partial.replace(self.whole)
        _sync_folder(self.whole.parent)
        self.journal.unlink(missing_ok=True)
        self.lock.unlink(missing_ok=True)  # whoever waits for it finds the whole bank

    def remove_whole(self) -> None:
        """Takes a bank that is damaged off the disk."""
        for path in (self.whole, self.checksums):
            path.unlink(missing_ok=True)

    def remove_partial(self) -> None:
        """Takes a bank that was not filled off the disk."""
        for path in (self.journal, self.partial, self.lock):
            path.unlink(missing_ok=True)

    def _kept(self) -> WholeBank | None:
        """What the checksums say, where they are those of this bank and not of another."""
        content = read_cached(self.checksums, is_quiet=True)  # whoever fills the bank again says so
        if content is None or content["key"] != self.whole.stem:
            return None
        form = Form(tuple(content["shape"]), content["dtype"])
        return WholeBank(form, content["header"].encode("latin-1"), _from_hex(content["crc32"]))


class BlockFile:
    """A bank that is being filled, open to write blocks and to check them, from any number of threads.

    Not through a map of the file: a failing disk is then an error where a map would crash.
    """

    def __init__(self, file: BankFile, form: Form) -> None:
        self._form, self._start = form, len(_header(form))
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

    def write(self, number: int, samples: NDArray[Any]) -> Checksums:
        """Writes a block, then that it is there; gives its checksums."""
        data = memoryview(np.ascontiguousarray(samples).data).cast("B")
        _write_all(self._samples, data, self._place(number))
        checksums = self._checksums(data)
        os.write(self._journal, f"{number} {_to_hex(checksums)}\n".encode())
        return checksums

    def has_checksums(self, number: int, checksums: Checksums) -> bool:
        """Whether the samples of a block are those that were written."""
        num_bytes = len(self._form.block(number)) * self._form.sample_bytes
        read = os.pread(self._samples, num_bytes, self._place(number))
        return np.array_equal(self._checksums(memoryview(read)), checksums)

    def sync(self) -> None:
        """Waits until all blocks are on disk."""
        os.fsync(self._samples)

    def close(self) -> None:
        """Once no thread uses it any more."""
        os.close(self._samples)
        os.close(self._journal)

    def _place(self, number: int) -> int:
        return self._start + number * BLOCK * self._form.sample_bytes

    def _checksums(self, data: memoryview) -> Checksums:
        step = self._form.sample_bytes
        return np.array([zlib.crc32(data[at : at + step]) for at in range(0, len(data), step)], np.uint32)


def overwrite(path: Path, place: int, sample: NDArray[Any]) -> None:
    """Writes a sample into a file that is there, from the byte `place`. Raises: OSError."""
    handle = os.open(path, os.O_WRONLY)
    try:
        _write_all(handle, memoryview(sample.data).cast("B"), place)
    finally:
        os.close(handle)


def _write_all(handle: int, data: memoryview, place: int) -> None:
    done = 0
    while done < len(data):
        done += os.pwrite(handle, data[done:], place + done)


def _header(form: Form) -> bytes:
    """How the .npy file of a bank begins."""
    stream = BytesIO()
    descr = np.dtype(form.dtype).str
    np.lib.format.write_array_header_2_0(stream, {"descr": descr, "fortran_order": False, "shape": form.shape})
    return stream.getvalue()


def _mapped(path: Path, form: Form, offset: int) -> np.memmap[Any, Any]:
    return np.memmap(path, dtype=form.dtype, mode="r", offset=offset, shape=form.shape)


def _to_hex(checksums: Checksums) -> str:
    return checksums.astype(">u4").tobytes().hex()


def _from_hex(text: str) -> Checksums:
    return np.frombuffer(bytes.fromhex(text), ">u4").astype(np.uint32)


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
