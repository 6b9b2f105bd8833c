"""Arrays in .npy and .npz files: of numbers or text, checked against their headers before room is made for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from testbed.errors import reading

_MEMBER = ".npy"
_SURROGATES = (0xD800, 0xDFFF)  # code points that are no characters
_LAST_CHARACTER = 0x10FFFF


class Header(NamedTuple):
    """What a file says of its array."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]

    @property
    def num_bytes(self) -> int:
        """That the values take."""
        return prod(self.shape) * self.dtype.itemsize


class ArrayArchive:
    """The arrays of an .npz file that is open. Whatever is wrong with it is raised as it comes."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self.names = tuple(name.removesuffix(_MEMBER) for name in archive.namelist() if name.endswith(_MEMBER))

    @contextmanager
    def values(self, name: str) -> Iterator[tuple[Header, IO[bytes]]]:
        """The header of an array, and a stream of its values alone."""
        with self._archive.open(name + _MEMBER) as member:
            yield read_header(member), member

    def num_bytes(self, name: str) -> int:
        """How many bytes there are of an array's values."""
        with self.values(name) as (_, member):
            return self._archive.getinfo(name + _MEMBER).file_size - member.tell()

    def array(self, name: str) -> NDArray[Any]:
        """An array of numbers or text. Raises: ValueError: it is something else, or its header tells another size."""
        with self.values(name) as (header, _):
            _check_plain(header.dtype, name)
        if (found := self.num_bytes(name)) != header.num_bytes:
            raise ValueError(f"'{name}' is to take {header.num_bytes:,} bytes by its header, but {found:,} follow")
        with self._archive.open(name + _MEMBER) as member:
            array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
            member.read(1)  # the checksum is compared where the file ends
        if not holds_characters(array):
            raise ValueError(f"'{name}' has text with characters that there are not")
        return array


@contextmanager
def opened_arrays(path: Path, *, remedy: str) -> Iterator[ArrayArchive]:
    """The arrays of an .npz file. Raises: DataError: it is damaged, or of another kind; `remedy` ends the message."""
    with reading(path, kind="an .npz of plain arrays", remedy=remedy):
        with ZipFile(path) as archive:
            yield ArrayArchive(archive)


def mapped_array(path: Path) -> NDArray[Any]:
    """The array of an .npy file, mapped: a part of it is all that is ever read. Raises: DataError: it is damaged."""
    with reading(path, kind="an array", remedy="Get the file again."):
        array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
        _check_plain(array.dtype, path.name)
        return array


def read_header(stream: IO[bytes]) -> Header:
    """What is before the values. Raises: ValueError, or another error of what is damaged."""
    version = np.lib.format.read_magic(stream)
    of_version = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in of_version:
        raise ValueError(f"its format has the version {version}")
    return Header(*of_version[version](stream))


def holds_characters(array: NDArray[Any]) -> bool:
    """Whether an array is of something else than text, or of text with characters that there are."""
    if array.dtype.kind != "U" or array.dtype.itemsize == 0:
        return True
    codes = np.frombuffer(np.ascontiguousarray(array), np.dtype("u4").newbyteorder(array.dtype.byteorder))
    is_surrogate = (codes >= _SURROGATES[0]) & (codes <= _SURROGATES[1])
    return not (is_surrogate | (codes > _LAST_CHARACTER)).any()


def _check_plain(dtype: np.dtype[Any], name: str) -> None:
    if dtype.hasobject:
        raise ValueError(f"'{name}' is of objects, which are refused: save plain numbers or text")
    if dtype.kind not in "biufcSU":
        raise ValueError(f"'{name}' is of {dtype}, which is neither numbers nor text")
