"""Arrays in pickles and in .npz files, as CIFAR and CIFAR-10.2 are published.

A pickle may ask for any code, and a pickled array hands numpy a description of its memory that numpy does not check.
So nothing of a pickle reaches numpy: stand-ins record what the file says of an array, and the array is built from its
bytes once they are as many as its type and shape take. Numbers, text, lists and dictionaries are read beside arrays.
"""

from __future__ import annotations

import pickle
import re
import struct
from collections.abc import Callable
from io import BytesIO
from math import prod
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from testbed.data.array_files import holds_characters, opened_arrays, read_header
from testbed.data.published_files import read_bytes
from testbed.errors import reading

_PLAIN = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|[SU]\d{1,6}|O8?)")
_MAX_DIMENSIONS = 32
_REMEDY = "Get the file again."


def read_dictionary(path: Path) -> dict[str, Any]:
    """The entries of an .npz file, of the dictionary in an .npy file, or of a pickled dictionary; keys become text.

    Raises: DataError: it cannot be read, or holds something else than a dictionary of plain values.
    """
    if path.suffix == ".npz":
        with opened_arrays(path, remedy=_REMEDY) as archive:
            return {name: archive.array(name) for name in archive.names}
    with reading(path, kind="a dictionary of arrays", remedy=_REMEDY):
        stream = BytesIO(read_bytes(path))
        content = _object_in_array(stream) if path.suffix == ".npy" else _plain(_ArrayUnpickler(stream).load())
        if not isinstance(content, dict):
            raise UnpicklingError(f"it holds a {type(content).__name__}")
        return {_text(key): _plain(value) for key, value in content.items()}


def _object_in_array(stream: BinaryIO) -> Any:
    """What an .npy file without dimensions holds, for numpy pickles a dictionary into one."""
    shape, _, dtype = read_header(stream)
    if dtype != np.dtype("O") or shape:
        raise UnpicklingError(f"it holds an array of {dtype} and shape {shape}")
    array = _ArrayUnpickler(stream).load()
    if not isinstance(array, _PickledArray) or array.dtype.code not in ("O", "O8") or array.shape != ():
        raise UnpicklingError("it holds no dictionary")
    (content,) = array.data
    return content


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [item.array() if isinstance(item, _PickledArray) else item for item in value]
    return value.array() if isinstance(value, _PickledArray) else value


def _text(key: Any) -> str:
    return key.decode("latin1") if isinstance(key, bytes) else str(key)  # Python 2 wrote bytes


class _PickledType:
    """The type of an array as a pickle tells it."""

    __slots__ = ("code", "order")

    def __init__(self, code: str) -> None:
        self.code, self.order = code, "="

    def __setstate__(self, state: Any) -> None:
        """Takes (version, byte order, sub-array, names, fields, size, alignment, flags[, metadata])."""
        _, order, subarray, names, fields, size, *_ = state
        order = order.decode() if isinstance(order, bytes) else order
        if order not in ("<", ">", "|", "="):
            raise UnpicklingError(f"an array in the byte order {order!r}")
        if any(part is not None for part in (subarray, names, fields)):
            raise UnpicklingError(f"an array of {self.code!r} with parts of its own")
        if type(size) is not int or size not in (-1, self.plain().itemsize):
            raise UnpicklingError(f"an array of {self.code!r} with {size!r} bytes a value")
        self.order = order

    def plain(self) -> np.dtype[Any]:
        """The type in numpy, built from its name alone."""
        dtype = np.dtype(self.code)
        return dtype if self.order in ("|", "=") else dtype.newbyteorder(self.order)  # type: ignore[arg-type]


class _PickledArray:
    """An array as a pickle tells it."""

    __slots__ = ("data", "dtype", "is_fortran", "shape")

    data: Any
    dtype: _PickledType
    is_fortran: bool
    shape: Any

    def __setstate__(self, state: Any) -> None:
        """Takes (version, shape, type, whether the first index is the fastest, bytes or a list of objects)."""
        _, self.shape, self.dtype, self.is_fortran, self.data = state
        if not isinstance(self.dtype, _PickledType):
            raise UnpicklingError(f"an array of {type(self.dtype).__name__}")

    def array(self) -> NDArray[Any]:
        """The array, from a copy of its bytes. Raises: UnpicklingError: they are not as many as it takes."""
        dtype, shape = self.dtype.plain(), self.shape
        is_shape = type(shape) is tuple and len(shape) <= _MAX_DIMENSIONS
        if not is_shape or any(type(length) is not int or length < 0 for length in shape):
            raise UnpicklingError(f"an array of shape {shape!r}")
        if dtype.hasobject or dtype.itemsize == 0 or not isinstance(self.data, bytes | bytearray):
            raise UnpicklingError(f"an array of {dtype} in a {type(self.data).__name__}")
        if len(self.data) != prod(shape) * dtype.itemsize:
            raise UnpicklingError(f"{len(self.data):,} bytes for an array of {dtype} and shape {shape}")
        values: NDArray[Any] = np.frombuffer(bytearray(self.data), dtype)
        if not holds_characters(values):
            raise UnpicklingError("text with characters that there are not")
        return values.reshape(shape, order="F" if self.is_fortran else "C")


def _array(*_: object) -> _PickledArray:
    return _PickledArray()


def _type(code: Any, *_: object) -> _PickledType:
    text = code.decode() if isinstance(code, bytes) else code
    if not isinstance(text, str) or not _PLAIN.fullmatch(text):
        raise UnpicklingError(f"an array of {text!r}")
    return _PickledType(text)


def _from_buffer(data: Any, dtype: Any, shape: Any, order: Any = "C") -> _PickledArray:
    array = _PickledArray()
    array.__setstate__((1, shape, dtype, order == "F", data))
    return array


def _encode(text: Any, *_: object) -> bytes:
    if not isinstance(text, str):
        raise UnpicklingError(f"bytes of a {type(text).__name__}")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    return b""


class _Named:
    """What a pickle gets for a name: it can be called, and nothing in it can be set."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise UnpicklingError("it changes what it was given")


# What Python 2 and the protocols of Python 3 pickle arrays as.
_NAMES: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy.core.multiarray", "_reconstruct"): _array,
    ("numpy._core.multiarray", "_reconstruct"): _array,
    ("numpy.core.numeric", "_frombuffer"): _from_buffer,
    ("numpy._core.numeric", "_frombuffer"): _from_buffer,
    ("numpy", "ndarray"): _array,
    ("numpy", "dtype"): _type,
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): _no_bytes,  # early protocols have no bytes, and no other way to say that there are none
}


class _ArrayUnpickler(pickle._Unpickler):
    """Reads arrays, numbers, text, lists and dictionaries.

    It is Python's own unpickler that is written in Python: the one in C makes room for as many values as a damaged file
    says there are.
    """

    read: Callable[[int], bytes]
    append: Callable[[Any], None]

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(stream, encoding="bytes")

    def find_class(self, module: str, name: str) -> _Named:
        """The stand-in for a name."""
        if (module, name) not in _NAMES:
            raise UnpicklingError(f"it asks for {module}.{name}, which has no place in a data set")
        return _Named(_NAMES[module, name])

    def load_bytearray(self) -> None:
        """Reads what is there of an array's bytes, however many the file says there are."""
        (size,) = struct.unpack("<Q", self.read(8))
        self.append(bytearray(self.read(size)))

    dispatch: ClassVar[dict[int, Any]] = {**pickle._Unpickler.dispatch, pickle.BYTEARRAY8[0]: load_bytearray}
