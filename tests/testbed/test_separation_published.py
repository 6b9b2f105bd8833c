"""Separations of Fashion-MNIST, in whole grey levels, and of a set of CIFAR-10's size against brute force."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from testbed.records import NORMS, Norm
from testbed.separation import minimal_class_separation, nearest_other_class

FOLDER = Path("/usr/share/datasets/fashion-mnist")
needs_fashion_mnist = pytest.mark.skipif(
    not FOLDER.exists(), reason="Fashion-MNIST is not there: install the Debian package dataset-fashion-mnist"
)


@cache
def fashion_mnist(part: str) -> tuple[np.ndarray, np.ndarray]:
    labels = gzip.decompress((FOLDER / f"{part}-labels-idx1-ubyte.gz").read_bytes())[8:]
    images = gzip.decompress((FOLDER / f"{part}-images-idx3-ubyte.gz").read_bytes())[16:]
    return np.frombuffer(images, np.uint8).reshape(len(labels), 28, 28), np.frombuffer(labels, np.uint8)


@needs_fashion_mnist
def test_training_images_in_linf() -> None:
    images, labels = fashion_mnist("train")
    found = minimal_class_separation(images, labels, norm="linf")
    assert (found.min_distance, found.pair) == (81 / 255, (28680, 37753))
    assert [int(labels[i]) for i in found.pair] == [2, 4]


@needs_fashion_mnist
def test_training_images_in_l2() -> None:
    found = minimal_class_separation(*fashion_mnist("train"), norm="l2")
    assert found.min_distance == np.sqrt(166205) / 255


@needs_fashion_mnist
def test_training_images_in_l1() -> None:
    found = minimal_class_separation(*fashion_mnist("train"), norm="l1")
    assert found.min_distance == 4050 / 255
    assert found.min_distance == pytest.approx(15.882353, abs=5e-7)


@needs_fashion_mnist
def test_test_images_in_the_training_images() -> None:
    images, labels = fashion_mnist("t10k")
    distances, nearest = nearest_other_class(images, labels, norm="linf", references=fashion_mnist("train"))
    assert (distances.min(), int(distances.argmin()), int(nearest[distances.argmin()])) == (82 / 255, 4469, 14286)
    assert distances.mean() == pytest.approx(0.65640, abs=5e-6)


@needs_fashion_mnist
@pytest.mark.parametrize(
    ("norm", "distance", "mean"),
    [("linf", 91 / 255, 0.69758), ("l2", 1.997149, 5.07584), ("l1", 24.874510, None)],
)
def test_test_images(norm: Norm, distance: float, mean: float | None) -> None:
    distances, _ = nearest_other_class(*fashion_mnist("t10k"), norm=norm)
    assert distances.min() == pytest.approx(distance, abs=5e-7)
    if mean is not None:
        assert distances.mean() == pytest.approx(mean, abs=5e-6)


@cache
def cifar_sized() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 200, (50_000, 48), dtype=np.uint8).repeat(64, axis=1)  # smooth, as photographs are
    images[:, ::7] += rng.integers(0, 56, (50_000, 1), dtype=np.uint8)
    return images, rng.integers(0, 10, 50_000)


@pytest.mark.parametrize("norm", NORMS)
def test_sample_of_a_set_of_cifar_size_equals_brute_force(norm: Norm) -> None:
    images, labels = cifar_sized()
    sample = np.array([123, 45_678])
    distances, nearest = nearest_other_class(images[sample], labels[sample], norm=norm, references=(images, labels))
    for row, found, other in zip(sample, distances, nearest, strict=True):
        gaps = np.maximum(images, images[row]) - np.minimum(images, images[row])
        expected = gaps.max(axis=1) if norm == "linf" else sum_of(gaps, 2 if norm == "l2" else 1)
        expected = np.where(labels == labels[row], np.inf, expected.astype(float))
        smallest = expected.min()
        assert found == (np.sqrt(smallest) if norm == "l2" else smallest) / 255
        assert other == expected.argmin()


def sum_of(gaps: np.ndarray, power: int) -> np.ndarray:
    return gaps.sum(axis=1, dtype=np.int64) if power == 1 else np.einsum("ij,ij->i", gaps, gaps, dtype=np.int64)
