"""Tiny-ImageNet: the published folder, evaluated on val, with the wnids in sorted order as classes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.published import WNIDS, write, write_tiny_imagenet

from eval_settings import tiny_imagenet
from registry import registry
from testbed.data.datasets import load_samples
from testbed.errors import DataError
from testbed.fingerprint import file_sha256
from testbed.records import Samples

FOLDER = "tiny-imagenet-200"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))


def load(split: str, root: Path) -> Samples:
    return load_samples(registry.dataset("tiny-imagenet"), split, data_root=root)


@pytest.mark.parametrize("place", [f"tiny-imagenet/{FOLDER}", FOLDER, "tiny-imagenet"])
def test_the_published_folder_is_read_where_it_lies(place: str, tmp_path: Path) -> None:
    for split, targets in write_tiny_imagenet(tmp_path / place).items():
        samples = load(split, tmp_path)
        assert dict(zip(samples.sample_ids, samples.targets.tolist(), strict=True)) == targets
        assert samples.class_names == WNIDS == tuple(sorted(WNIDS))
        assert [path.relative_to(tmp_path / place).as_posix() for path in samples.items] == list(samples.sample_ids)


def test_val_is_evaluated_and_no_model_is_chosen_on_it() -> None:
    dataset = registry.dataset("tiny-imagenet")
    assert (dataset.splits, dataset.eval_split, dataset.fit_split) == (("train", "val", "clean-of-c"), "val", "train")
    assert (dataset.separation_splits, dataset.canonical_size) == (("train", "val"), 64)


def test_what_is_not_as_published_is_named(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    write_tiny_imagenet(folder)
    shutil.rmtree(folder / "train" / WNIDS[1] / "images")
    with pytest.raises(DataError, match=f"{WNIDS[1]}/images"):
        load("train", tmp_path)
    write(folder / "val" / "val_annotations.txt", f"val_0.JPEG\t{WNIDS[0]}\t0\nval_1.JPEG\n".encode())
    with pytest.raises(DataError, match=r"val_annotations\.txt, line 2: 'val_1\.JPEG' is no file name, tab and wnid"):
        load("val", tmp_path)
    write(folder / "val" / "val_annotations.txt", b"val_0.JPEG\tn00000000\t0\n")
    with pytest.raises(DataError, match=r"val_annotations\.txt names n00000000, which is not in .*wnids\.txt"):
        load("val", tmp_path)
    write(folder / "val" / "val_annotations.txt", f"gone.JPEG\t{WNIDS[0]}\t0\n".encode())
    with pytest.raises(DataError, match=r"Cannot read .*val/images/gone\.JPEG"):
        load("val", tmp_path)


@pytest.mark.parametrize("split", ["train", "clean-of-c"])
def test_a_renamed_class_folder_is_named_with_the_class_that_is_absent(split: str, tmp_path: Path) -> None:
    write_tiny_imagenet(tmp_path / FOLDER)
    clean = tmp_path / "imagenet_val_bbox_crop"
    shutil.copytree(tmp_path / FOLDER / "train", clean)
    assert load(split, tmp_path).class_names == WNIDS
    folder = clean if split == "clean-of-c" else tmp_path / FOLDER / "train"
    (folder / WNIDS[0]).rename(folder / "n09999999")
    with pytest.raises(DataError, match=f"1 too many: n09999999; 1 too few: {WNIDS[0]}"):
        load(split, tmp_path)


def test_it_is_downloaded_and_unpacked_where_it_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tiny_imagenet(tmp_path / "made" / FOLDER)
    origin = Path(shutil.make_archive(str(tmp_path / "origin"), "zip", tmp_path / "made"))
    monkeypatch.setattr(tiny_imagenet, "URL", origin.as_uri())
    monkeypatch.setattr(tiny_imagenet, "SHA256", file_sha256(origin))
    monkeypatch.delenv("TESTBED_NO_DOWNLOAD")
    assert len(load("val", tmp_path / "data")) == 3
    assert sorted(path.name for path in (tmp_path / "data" / "tiny-imagenet").iterdir()) == [FOLDER, f"{FOLDER}.zip"]
    assert capsys.readouterr().err.count("Downloading") == 1


def test_another_archive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny_imagenet, "URL", write(tmp_path / "origin", b"another").as_uri())
    monkeypatch.delenv("TESTBED_NO_DOWNLOAD")
    with pytest.raises(DataError, match=r"What file:.* sent is damaged or another file: its SHA-256 is"):
        load("val", tmp_path / "data")
    assert not list((tmp_path / "data" / "tiny-imagenet").iterdir())
