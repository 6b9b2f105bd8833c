"""Arrays in .npy and .npz files: nothing is made room for that is not there, and damage is one line."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from testbed.data.array_files import holds_characters, mapped_array, opened_arrays
from testbed.data.npz import npz_class_map
from testbed.errors import DataError

IMAGES = np.arange(60, dtype=np.uint8).reshape(3, 4, 5)
TERABYTES = "{'descr': '|u1', 'fortran_order': False, 'shape': (9999999999999,), }"


def _npy(header: str, values: bytes = b"", version: int = 1) -> bytes:
    """An .npy file whose header says anything."""
    text = header.encode("latin1")
    return b"\x93NUMPY" + bytes((version, 0)) + struct.pack("<H", len(text)) + text + values


def _npz(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def _read(path: Path, name: str) -> np.ndarray:
    with opened_arrays(path, remedy="Save it again.") as archive:
        return archive.array(name)


@pytest.mark.parametrize(
    "array",
    [IMAGES, np.asfortranarray(IMAGES), IMAGES.astype(">f4"), np.array(["é", "日本"]), np.zeros((0, 3)), np.array(7)],
)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_of_numbers_and_text_are_read_as_they_were_saved(tmp_path: Path, array, save) -> None:
    save(tmp_path / "set.npz", x=array)
    found = _read(tmp_path / "set.npz", "x")
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype


HEADERS = {
    "more than there is": (_npy(TERABYTES, b"\0" * 9), "9,999,999,999,999 bytes by its header, but 9 follow"),
    "less than there is": (_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", b"\0" * 12), "12 follow"),
    "no end": (_npy("{'descr': '|u1', 'fortran_order': False, 'shape': ('''"), "as an .npz"),
    "deep": (_npy("(" * 3000), "as an .npz"),
    "another version": (_npy("{}", version=9), "version"),
    "parts": (_npy("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}", b"\0" * 4), "neither numbers"),
    "objects": (
        _npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"\0" * 8),
        "of objects",
    ),
    "no character": (_npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", b"\xff" * 4), "characters"),
    "half a character": (
        _npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", b"\x00\xd8\x00\x00"),
        "characters",
    ),
}


@pytest.mark.parametrize(("content", "message"), HEADERS.values(), ids=HEADERS)
def test_a_header_that_lies_is_told_before_room_is_made(tmp_path: Path, content: bytes, message: str) -> None:
    path = _npz(tmp_path / "set.npz", x=content)
    with pytest.raises(DataError, match=message) as refused:
        _read(path, "x")
    assert str(refused.value).endswith("Save it again.")
    assert "\n" not in str(refused.value)


def test_damage_is_noticed_by_the_checksum_of_the_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", x=IMAGES)
    content = bytearray((tmp_path / "set.npz").read_bytes())
    content[content.index(IMAGES.tobytes()) + 7] ^= 1
    (tmp_path / "set.npz").write_bytes(content)
    with pytest.raises(DataError, match="Bad CRC-32"):
        _read(tmp_path / "set.npz", "x")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_decompression_raises_is_one_line(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "set.npz", "w", method) as archive:
        stream = io.BytesIO()
        np.save(stream, IMAGES)
        archive.writestr("x.npy", stream.getvalue())
        start, size = archive.getinfo("x.npy").header_offset + 35, archive.getinfo("x.npy").compress_size
    content = bytearray((tmp_path / "set.npz").read_bytes())
    content[start + 4 : start + size] = b"\xff" * (size - 4)
    (tmp_path / "set.npz").write_bytes(content)
    with pytest.raises(DataError, match="Cannot read"):
        _read(tmp_path / "set.npz", "x")


def test_a_method_of_compression_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", x=IMAGES)
    content = bytearray((tmp_path / "set.npz").read_bytes())
    for signature, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        content[content.index(signature) + offset] = 99
    (tmp_path / "set.npz").write_bytes(content)
    with pytest.raises(DataError, match="compression"):
        _read(tmp_path / "set.npz", "x")


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>", _npy(TERABYTES), _npy("{'descr': '|u1', 'shape': ("), _npy("(" * 3000), HEADERS["parts"][0]],
)
def test_a_mapped_array_is_of_numbers_and_whole(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "fog.npy").write_bytes(content)
    with pytest.raises(DataError, match=r"Cannot read .*fog\.npy as an array"):
        mapped_array(tmp_path / "fog.npy")


def test_an_archive_is_no_mapped_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "fog.npz", x=IMAGES)
    (tmp_path / "fog.npz").replace(tmp_path / "fog.npy")
    with pytest.raises(DataError, match=r"fog\.npy as an array"):
        mapped_array(tmp_path / "fog.npy")


@pytest.mark.parametrize("order", ["<", ">"])
def test_characters_are_told_from_what_is_none_in_both_byte_orders(order: str) -> None:
    code_points = np.array([0x41, 0xD7FF, 0xE000, 0x10FFFF], f"{order}u4")
    assert holds_characters(code_points.view(f"{order}U1"))
    for wrong in (0xD800, 0xDFFF, 0x110000):
        assert not holds_characters(np.array([0x41, wrong], f"{order}u4").view(f"{order}U1"))


def test_labels_that_are_identifiers_are_not_taken_for_indices(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", x=IMAGES, y=np.array([0, 1, 2**61]))
    with pytest.raises(DataError, match=r"labels up to 2305843009213693952.*Number the classes from 0"):
        npz_class_map(tmp_path / "set.npz", order=None, label_space=None)


@pytest.mark.parametrize("names", [np.array("cat"), np.array(3), np.array([["cat", "dog"]]), np.array([0.5, 1.5])])
def test_class_names_are_a_list_of_text(tmp_path: Path, names: np.ndarray) -> None:
    np.savez(tmp_path / "set.npz", x=IMAGES, y=np.array([0, 1, 0]), class_names=names)
    with pytest.raises(DataError, match=r"Give \[n\] texts"):
        npz_class_map(tmp_path / "set.npz", order=None, label_space=None)
