"""Published files: found where people have them, downloaded where they are not, and missed in words that help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.published import write

from testbed.data.published_files import Format, PublishedFiles, load_arrays
from testbed.errors import DataError

SPLITS = {"train": ("one", "two", "three"), "test": ("last",)}


def no_download(folder: Path, split: str) -> None:
    raise AssertionError("nothing is to be downloaded here")


def published(download: Callable[[Path, str], object] = no_download) -> PublishedFiles:
    plain = Format(folders=("toy/toy-files", "toy-files", "toy"), files=SPLITS)
    binary = Format(
        folders=("toy-bin",), files={split: tuple(f"{n}.bin" for n in names) for split, names in SPLITS.items()}
    )
    return PublishedFiles(dataset="toy", formats=(plain, binary), source="https://toy.example", download=download)


@pytest.mark.parametrize(
    ("folder", "suffix"), [("toy/toy-files", ""), ("toy-files", ""), ("toy", ""), ("toy-bin", ".bin")]
)
def test_files_are_found_in_every_place_in_their_order(folder: str, suffix: str, tmp_path: Path) -> None:
    expected = tuple(write(tmp_path / folder / f"{name}{suffix}", b"") for name in SPLITS["train"])
    assert published().find("train", tmp_path) == expected


def test_a_split_needs_its_own_files_alone(tmp_path: Path) -> None:
    write(tmp_path / "toy" / "last", b"")
    assert published().find("test", tmp_path) == (tmp_path / "toy" / "last",)


def test_a_folder_that_lacks_a_file_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "toy-files" / "one", b"")
    for name in ("two", "three"):
        (tmp_path / "toy-files" / name).mkdir()  # a folder is no file
    expected = tuple(write(tmp_path / "toy-bin" / f"{name}.bin", b"") for name in SPLITS["train"])
    assert published().find("train", tmp_path) == expected


def test_what_is_missing_says_what_where_and_what_to_do(tmp_path: Path) -> None:
    write(tmp_path / "toy-files" / "two", b"")
    with pytest.raises(DataError) as caught:
        published().find("train", tmp_path)
    assert str(caught.value) == (
        f"Data set 'toy' (train) is not under {tmp_path} (--data-root), where it may be one to three in toy/toy-files, "
        f"toy-files, toy; one.bin to three.bin in toy-bin; {tmp_path}/toy-files lacks one, three. Downloads are "
        "forbidden (--no-download, TESTBED_NO_DOWNLOAD): get it from https://toy.example and put it there, or allow "
        "them."
    )


def test_what_is_missing_is_downloaded_to_the_folder_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TESTBED_NO_DOWNLOAD")
    files = published(lambda folder, split: write(folder / "toy-files" / SPLITS[split][0], b""))
    assert files.find("test", tmp_path) == (tmp_path / "toy" / "toy-files" / "last",)
    assert capsys.readouterr().err == f"Downloading https://toy.example to {tmp_path / 'toy'}\n"
    with pytest.raises(DataError, match=r"toy/toy-files lacks two, three\.$|lacks it too"):
        files.find("train", tmp_path)


def test_a_relative_data_root_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "here" / "toy" / "last", b"")
    assert published().find("test", Path("here")) == (tmp_path / "here" / "toy" / "last",)


def test_arrays_are_samples_with_the_ids_of_their_split(tmp_path: Path) -> None:
    images = np.arange(2 * 4 * 4, dtype=np.uint8).reshape(2, 4, 4)
    write(tmp_path / "toy" / "last", b"")
    samples = load_arrays("test", tmp_path, files=published(), read=lambda paths: (images, np.array([1, 0])),
                          class_names=("a", "b"))  # fmt: skip
    assert np.array_equal(samples.items, images)
    assert (samples.sample_ids, samples.targets.tolist()) == (("test/0", "test/1"), [1, 0])
    assert (samples.dataset, samples.class_names, samples.color_mode) == ("toy", ("a", "b"), "L")
