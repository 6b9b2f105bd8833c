"""idx files: the array that was written, compressed or not, and words about any other file."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from tests.published import idx_bytes, random_images, write

from testbed.data.idx import read_idx, read_images_and_labels
from testbed.errors import DataError

IMAGES = random_images(2, 3, 4)
GOOD = idx_bytes(IMAGES)
ZIPPED = gzip.compress(GOOD, mtime=0)


def test_the_format_is_the_published_one(tmp_path: Path) -> None:
    """The header of the training images: 0x00000803, 60,000 and twice 28, the highest byte first."""
    content = bytes.fromhex("00000803 0000ea60 0000001c 0000001c") + bytes(60_000 * 28 * 28)
    assert read_idx(write(tmp_path / "images", content), num_dimensions=3).shape == (60_000, 28, 28)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_the_array_that_was_written_is_read(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"images{suffix}", ZIPPED if suffix else GOOD)
    found = read_idx(path, num_dimensions=3)
    assert np.array_equal(found, IMAGES)
    assert found.flags.writeable


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("images", GOOD[:-1], r"has 39 bytes, but its header tells of 40 \(2 x 3 x 4 values\)"),
        ("images", GOOD + b"\0", "has 41 bytes, but its header tells of 40"),
        ("images", GOOD[:9], "has 9 bytes, but its header tells of"),
        ("images", idx_bytes(np.zeros(4, np.uint8)), "starts with 00000801, not with 00000803"),
        ("images", b"\0\0\x0d\x03" + GOOD[4:], "starts with 00000d03, not with 00000803"),
        ("images", b"", "starts with nothing"),
        ("images.gz", ZIPPED[:-9], "Cannot read .*images.gz"),
        ("images.gz", GOOD, "Cannot read .*images.gz"),
        ("images.gz", ZIPPED[:20] + b"\xff\xff" + ZIPPED[22:], "Cannot read .*images.gz"),
    ],
)
def test_a_damaged_file_says_what_is_wrong(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_idx(write(tmp_path / name, content), num_dimensions=3)


def test_as_many_labels_as_images_belong_together(tmp_path: Path) -> None:
    images = write(tmp_path / "images", GOOD)
    labels = write(tmp_path / "labels", idx_bytes(np.array([4, 2], dtype=np.uint8)))
    assert read_images_and_labels([images, labels])[1].tolist() == [4, 2]
    write(labels, idx_bytes(np.array([4], dtype=np.uint8)))
    with pytest.raises(DataError, match=r"images has 2 images, but .*labels has 1 labels"):
        read_images_and_labels([images, labels])
