"""CIFAR-10 and CIFAR-100: the published files of either format, where people keep them, or torchvision's archive."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torchvision
from tests.published import PUBLISHED_LABELS, md5, serving, write_cifar

from registry import registry
from testbed.data.datasets import load_samples
from testbed.definitions import load_definitions
from testbed.errors import DataError

load_definitions()
FOLDERS = {
    "cifar10": ("cifar-10-batches-py", "cifar-10-batches-bin"), "cifar100": ("cifar-100-python", "cifar-100-binary"),
}  # fmt: skip
NAMES = tuple(FOLDERS)


@pytest.mark.parametrize("place", ["{name}/{folder}", "{folder}", "{name}"])
@pytest.mark.parametrize("is_binary", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_published_files_are_read_where_they_lie(name: str, is_binary: bool, place: str, tmp_path: Path) -> None:
    folder = tmp_path / place.format(name=name, folder=FOLDERS[name][is_binary])
    for split, (images, targets) in write_cifar(folder, dataset=name, is_binary=is_binary).items():
        samples = load_samples(registry.dataset(name), split, data_root=tmp_path)
        assert np.array_equal(samples.items, images)
        assert samples.targets.tolist() == targets
        assert (samples.sample_ids[1], samples.color_mode) == (f"{split}/1", "RGB")


@pytest.mark.parametrize("name", NAMES)
def test_both_formats_are_one_data_set(name: str, tmp_path: Path) -> None:
    for is_binary in (False, True):
        write_cifar(tmp_path / str(is_binary) / FOLDERS[name][is_binary], dataset=name, is_binary=is_binary)
    first, second = (load_samples(registry.dataset(name), "train", data_root=tmp_path / str(b)) for b in (False, True))
    assert first.fingerprint == second.fingerprint


@pytest.mark.parametrize("name", NAMES)
def test_the_classes_are_the_published_ones(name: str, tmp_path: Path) -> None:
    write_cifar(tmp_path / name, dataset=name, is_binary=True)
    names = load_samples(registry.dataset(name), "test", data_root=tmp_path).class_names
    expected = {"cifar10": (10, "airplane", "automobile", "truck"), "cifar100": (100, "apple", "aquarium_fish", "worm")}
    assert (len(names), *names[:2], names[-1]) == expected[name]


@pytest.mark.parametrize("name", NAMES)
def test_train_is_fitted_on_and_both_splits_are_searched(name: str) -> None:
    dataset = registry.dataset(name)
    assert (dataset.splits, dataset.eval_split, dataset.fit_split) == (("train", "test"), "test", "train")
    assert (dataset.separation_splits, dataset.canonical_size, dataset.label_space) == (None, 32, name)


@contextmanager
def small_archive(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Puts a small archive in the place of the one that torchvision downloads."""
    write_cifar(folder / FOLDERS[name][0], dataset=name, is_binary=False)
    with tarfile.open(folder / "origin.tar.gz", "w:gz") as packed:
        packed.add(folder / FOLDERS[name][0], arcname=FOLDERS[name][0])
    published = getattr(torchvision.datasets, name.upper())
    monkeypatch.setattr(published, "tgz_md5", md5(folder / "origin.tar.gz"))
    monkeypatch.delenv("TESTBED_NO_DOWNLOAD")
    with serving(folder) as address:
        monkeypatch.setattr(published, "url", f"{address}/origin.tar.gz")
        yield


@pytest.mark.filterwarnings("ignore:Python 3.14:DeprecationWarning")  # torchvision unpacks without a filter
@pytest.mark.parametrize("name", NAMES)
def test_torchvision_downloads_what_is_not_there(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_archive(tmp_path, name, monkeypatch):
        samples = load_samples(registry.dataset(name), "test", data_root=tmp_path / "data")
    assert len(samples) == 2
    assert (tmp_path / "data" / name / FOLDERS[name][0]).is_dir()
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(
        f"Downloading https://www.cs.toronto.edu/~kriz/cifar.html to {tmp_path / 'data' / name}\n"
    )


def test_an_archive_with_another_checksum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_archive(tmp_path, "cifar10", monkeypatch):
        monkeypatch.setattr(torchvision.datasets.CIFAR10, "tgz_md5", "0" * 32)
        with pytest.raises(DataError, match=r"\(test\) is not under .* Downloading it failed \(File not found or corr"):
            load_samples(registry.dataset("cifar10"), "test", data_root=tmp_path / "data")
    assert not (tmp_path / "data" / "cifar10" / "cifar-10-batches-py").exists()


def test_torchvision_calls_the_labels_and_folders_the_same() -> None:
    for name in NAMES:
        published = getattr(torchvision.datasets, name.upper())
        assert published.base_folder == FOLDERS[name][0]
        assert published.meta["key"].startswith(PUBLISHED_LABELS[name].removesuffix("s").removesuffix("_label"))
