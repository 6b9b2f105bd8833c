"""The published formats of CIFAR: the same images and targets from both, and no code from a pickle."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from tests.published import binary_batch, python2_batch, random_images, write

from testbed.data.cifar import read_cifar
from testbed.errors import DataError

IMAGES = random_images(3, 32, 32, 3)


@pytest.mark.parametrize(("labels", "targets"), [("labels", [9, 0, 4]), ("fine_labels", [99, 0, 42])])
@pytest.mark.parametrize("suffix", ["", ".bin"])
def test_both_formats_hold_the_same_images_and_targets(
    labels: str, targets: list[int], suffix: str, tmp_path: Path
) -> None:
    pack = binary_batch if suffix else python2_batch
    files = [write(tmp_path / f"{start}{suffix}", pack(IMAGES[start:][:2], targets[start:][:2], labels=labels))
             for start in (0, 2)]  # fmt: skip
    images, found = read_cifar(files, labels=labels)
    assert np.array_equal(images, IMAGES)
    assert found.tolist() == targets
    assert images.flags.c_contiguous


def test_the_first_pixels_of_a_record_are_red_then_green_then_blue(tmp_path: Path) -> None:
    record = bytes([7]) + bytes([1]) * 1024 + bytes([2]) * 1024 + bytes([3]) * 1024
    images, targets = read_cifar([write(tmp_path / "test_batch.bin", record)], labels="labels")
    assert np.array_equal(images, np.broadcast_to(np.array([1, 2, 3], dtype=np.uint8), (1, 32, 32, 3)))
    assert targets.tolist() == [7]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_batches_pickled_by_python_3_are_read_too(protocol: int, tmp_path: Path) -> None:
    data = {"data": IMAGES.transpose(0, 3, 1, 2).reshape(3, -1), "labels": [1, 2, 3]}
    path = write(tmp_path / "test_batch", pickle.dumps(data, protocol=protocol))
    assert np.array_equal(read_cifar([path], labels="labels")[0], IMAGES)


class Code:
    """What a pickle that runs code holds."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("open('ran', 'w')",)


@pytest.mark.parametrize("labels", [Code(), [Code()], np.float64(3), Path("a")])
def test_a_pickle_with_anything_but_arrays_of_bytes_is_refused(
    labels: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "test_batch", pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "labels": labels}))
    with pytest.raises(DataError, match=r"Cannot read .*test_batch as .* \((it asks for|an array of)"):
        read_cifar([path], labels="labels")
    assert not (tmp_path / "ran").exists()


def test_an_array_of_other_values_is_refused(tmp_path: Path) -> None:
    for data in (np.zeros((1, 3072)), np.array([object()]), np.zeros(1, dtype="u1,u1")):
        path = write(tmp_path / "test_batch", pickle.dumps({"data": data, "labels": [1]}))
        with pytest.raises(DataError, match="Get the file again"):
            read_cifar([path], labels="labels")


GOOD = python2_batch(IMAGES, [1, 2, 3])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD[:5000], "Cannot read .* as a dictionary of arrays"),
        (b"", "Cannot read .* as a dictionary of arrays"),
        (b"<html>", "Cannot read .* as a dictionary of arrays"),
        (pickle.dumps([1, 2]), "Cannot read .* as a dictionary of arrays"),
        (pickle.dumps({"labels": [1]}), r"has no array `data` of uint8 \[n, 3072\]"),
        (
            pickle.dumps({"data": np.zeros((1, 5), np.uint8), "labels": [1]}),
            r"has no array `data` of uint8 \[n, 3072\]",
        ),
        (python2_batch(IMAGES, [1, 2]), "has 3 images, but not as many numbers in `labels`"),
        (python2_batch(IMAGES, [1, 2, 3], labels="fine_labels"), "has 3 images, but not as many numbers in `labels`"),
        (pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "labels": ["1"]}), "1 images, but not as many numbers"),
    ],
)
def test_a_damaged_batch_says_what_is_wrong(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_cifar([write(tmp_path / "test_batch", content)], labels="labels")


def test_a_truncated_binary_file_says_what_is_wrong(tmp_path: Path) -> None:
    path = write(tmp_path / "test.bin", binary_batch(IMAGES, [1, 2, 3])[:-1])
    with pytest.raises(DataError, match=r"has 9,218 bytes, not a multiple of 3,073 \(1 for labels, 3,072 for pixels\)"):
        read_cifar([path], labels="labels")
    write(path, binary_batch(IMAGES, [1, 2, 3]))
    with pytest.raises(DataError, match=r"has 9,219 bytes, not a multiple of 3,074 \(2 for labels"):
        read_cifar([path], labels="fine_labels")
