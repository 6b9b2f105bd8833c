"""MNIST and Fashion-MNIST: the published idx files, where people keep them, or torchvision's download."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torchvision
from tests.published import md5, serving, write_idx

from registry import registry
from testbed.data.datasets import load_samples
from testbed.definitions import load_definitions

load_definitions()
CLASSES = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST"}
DEBIAN = Path("/usr/share/datasets/fashion-mnist")


@pytest.mark.parametrize("place", ["{name}", "{name}/{kind}/raw", "{kind}/raw"])
@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("name", CLASSES)
def test_the_published_files_are_read_where_they_lie(
    name: str, is_compressed: bool, place: str, tmp_path: Path
) -> None:
    folder = tmp_path / place.format(name=name, kind=CLASSES[name])
    for split, (images, targets) in write_idx(folder, is_compressed=is_compressed).items():
        samples = load_samples(registry.dataset(name), split, data_root=tmp_path)
        assert np.array_equal(samples.items, images)
        assert samples.targets.tolist() == targets
        assert (samples.sample_ids[1], samples.color_mode) == (f"{split}/1", "L")


def test_the_classes_are_the_published_ones(tmp_path: Path) -> None:
    for name, classes in (
        ("mnist", tuple("0123456789")),
        ("fashion-mnist", ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
                           "Ankle boot")),
    ):  # fmt: skip
        write_idx(tmp_path / name, is_compressed=False)
        assert load_samples(registry.dataset(name), "test", data_root=tmp_path).class_names == classes
    assert classes == tuple(torchvision.datasets.FashionMNIST.classes)


@pytest.mark.parametrize("name", CLASSES)
def test_train_is_fitted_on_and_both_splits_are_searched(name: str) -> None:
    dataset = registry.dataset(name)
    assert (dataset.splits, dataset.eval_split, dataset.fit_split) == (("train", "test"), "test", "train")
    assert (dataset.separation_splits, dataset.canonical_size, dataset.label_space) == (None, 28, name)


def test_torchvision_downloads_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = write_idx(tmp_path, is_compressed=True)
    origin = sorted(tmp_path.glob("*.gz"))
    monkeypatch.setattr(torchvision.datasets.MNIST, "resources", [(path.name, md5(path)) for path in origin])
    monkeypatch.delenv("TESTBED_NO_DOWNLOAD")
    with serving(tmp_path) as address:
        monkeypatch.setattr(torchvision.datasets.MNIST, "mirrors", [f"{address}/"])
        samples = load_samples(registry.dataset("mnist"), "train", data_root=tmp_path / "data")
    assert np.array_equal(samples.items, written["train"][0])
    assert (tmp_path / "data" / "mnist" / "MNIST" / "raw").is_dir()


@pytest.mark.skipif(not DEBIAN.is_dir(), reason="Fashion-MNIST is not there: Debian's package dataset-fashion-mnist")
def test_fashion_mnist_of_debian_is_the_published_one(tmp_path: Path) -> None:
    train, test = (
        load_samples(registry.dataset("fashion-mnist"), split, data_root=tmp_path) for split in ("train", "test")
    )
    assert (train.items.shape, test.items.shape) == ((60_000, 28, 28), (10_000, 28, 28))
    assert train.targets[:5].tolist() == [9, 0, 0, 3, 0]
    assert test.targets[:5].tolist() == [9, 2, 1, 1, 6]
    assert np.bincount(train.targets).tolist() == [6000] * 10
    assert np.bincount(test.targets).tolist() == [1000] * 10
    assert round(float(train.items.mean() / 255), 4) == 0.2860  # the mean that is commonly published
