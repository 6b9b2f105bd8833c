"""Pickled arrays: read whatever wrote them, and nothing of what a file says reaches numpy unchecked."""

from __future__ import annotations

import pickle
import pickletools
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from testbed.data.object_arrays import read_dictionary
from testbed.errors import DataError

RECONSTRUCT = np.empty(0).__reduce__()[0]
ARRAYS = [
    np.arange(6, dtype="u1").reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype="<i4").reshape(2, 3)),
    np.arange(6, dtype=">f8")[::-1],
    np.array([True, False]),
    np.array(["é", "long"]),
    np.array([b"a", b"bc"]),
    np.zeros((0, 3), "f4"),
    np.array(7, dtype="i8"),
    np.float16([0.5, -2]),
]


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype} {array.shape}")
def test_an_array_is_read_as_it_was_written(array: NDArray[Any], protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "batch"
    path.write_bytes(pickle.dumps({"x": array, b"n": 3, "names": ["a"]}, protocol))
    content = read_dictionary(path)
    assert content.keys() == {"x", "n", "names"}
    assert content["x"].dtype == array.dtype
    assert np.array_equal(content["x"], array)
    assert (content["n"], content["names"]) == (3, ["a"])


def test_a_dictionary_in_an_npy_file_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array({"images": ARRAYS[0], "labels": [1, 2]}, dtype=object))
    content = read_dictionary(tmp_path / "a.npy")
    assert np.array_equal(content["images"], ARRAYS[0])
    assert content["labels"] == [1, 2]


class Described:
    """A type of an array with any state."""

    def __init__(self, code: Any, state: Any) -> None:
        self.code, self.state = code, state

    def __reduce__(self) -> Any:
        return np.dtype, (self.code, False, True), self.state


class Array:
    """An array with any state."""

    def __init__(self, shape: Any, dtype: Any, data: Any, *, is_fortran: Any = False) -> None:
        self.state = (1, shape, dtype, is_fortran, data)

    def __reduce__(self) -> Any:
        return RECONSTRUCT, (np.ndarray, (0,), b"b"), self.state


class Called:
    """What a function gives for these arguments, with a state that is set on it."""

    def __init__(self, function: Any, *arguments: Any, state: Any = None) -> None:
        self.made = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self) -> Any:
        return self.made


def u1(code: Any = "u1", order: Any = "|", size: Any = -1) -> Described:
    return Described(code, (3, order, None, None, None, size, -1, 0))


HOSTILE = {
    "a sub-array": Array((2,), Described("u1", (3, "|", (u1(), (10**6,)), None, None, 10**6, 1, 0)), b"ab"),
    "fields": Array((2,), Described("u1", (3, "|", None, ("a",), {"a": (u1(), 10**6)}, 1, 1, 16)), b"ab"),
    "a larger value": Array((2,), u1(size=8), b"ab"),
    "no size": Array((2,), u1(size=0), b"ab"),
    "a size that is no number": Array((2,), u1(size="8"), b"ab"),
    "another byte order": Array((2,), u1(order="x"), b"ab"),
    "a short state": Array((2,), Described("u1", (3, "|")), b"ab"),
    "negative lengths": Array((-1, -2), u1(), b"ab"),
    "huge lengths": Array((2**40, 2**24 + 1), u1(), b""),
    "a length that is no number": Array((2.0,), u1(), b"ab"),
    "a shape that is no tuple": Array([2], u1(), b"ab"),
    "too many dimensions": Array((1,) * 65, u1(), b"a"),
    "too few bytes": Array((3,), u1(), b"ab"),
    "too many bytes": Array((1,), u1(), b"ab"),
    "text instead of bytes": Array((2,), u1(), "ab"),
    "a list instead of bytes": Array((2,), u1(), [1, 2]),
    "objects": Array((1,), u1("O8"), [1]),
    "a type that is none": Array((2,), None, b"ab"),
    "dates": Array((1,), u1("M8"), b"12345678"),
    "fields by name": Array((1,), u1("u1,u1"), b"ab"),
    "no characters": Array((2,), u1("S0"), b""),
    "characters that there are not": Array((1,), u1("U1", "<"), struct.pack("<I", 0xFFFFFFFF)),
    "an array by its own constructor": Called(np.ndarray, (10**12,)),
    "a function's attributes": Called(np.dtype, "u1", state=({}, {"__setstate__": len})),
    "bytes by their constructor": Array((2,), u1(), Called(bytes, 10**12)),
    "an array of an array": Array((1,), Array((1,), u1(), b"a"), b"a"),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("protocol", [2, 4])
def test_an_array_that_is_not_what_its_bytes_make_is_refused(kind: str, protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "batch"
    path.write_bytes(pickle.dumps({b"x": HOSTILE[kind]}, protocol))
    with pytest.raises(DataError, match=r"Cannot read .*batch as a dictionary of arrays"):
        read_dictionary(path)


@pytest.mark.parametrize(
    "opcodes",
    [
        b"\x80\x02}(U\x01xcnumpy\ndtype\n}U\x01ab.",  # sets what a name stands for
        b"\x80\x05\x96" + struct.pack("<Q", 2**62) + b"ab.",  # bytes that are not there
        b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"ab.",
        b"\x80\x02}r\xff\xff\xff\x7f0.",  # a place among two thousand million
        b"(" * 100_000 + b"t" * 100_000 + b".",  # deep
        b"I" + b"9" * 10_000 + b"\n.",
        b"\x80\x04\x82\x01.",  # a registered extension
        b"\x80\x02cos\nsystem\n(U\x02lstR.",
        b"Pname\n.",
    ],
)
def test_a_pickle_that_is_no_dictionary_of_arrays_is_refused(opcodes: bytes, tmp_path: Path) -> None:
    path = tmp_path / "batch"
    path.write_bytes(opcodes)
    with pytest.raises(DataError, match="Get the file again"):
        read_dictionary(path)


def test_no_flipped_byte_makes_anything_but_a_dictionary_or_the_error(tmp_path: Path) -> None:
    good = pickle.dumps({b"data": ARRAYS[0], b"labels": [1, 2]}, 2)
    assert any(opcode.name == "BUILD" for opcode, *_ in pickletools.genops(good))
    path, random, refused = tmp_path / "batch", np.random.default_rng(0), 0
    for _ in range(400):
        content = bytearray(good)
        content[random.integers(len(content))] ^= 1 << random.integers(8)
        path.write_bytes(content)
        try:
            read_dictionary(path)
        except DataError:
            refused += 1
    assert refused > 100
