"""Minimal class separation against brute force, published values, and its edge cases."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

from testbed.errors import DataError, DefinitionError, ShapeError
from testbed.records import NORMS, Norm
from testbed.separation import minimal_class_separation

METRICS = {"linf": "chebyshev", "l2": "sqeuclidean", "l1": "cityblock"}
DATA_2D = Path(__file__).resolve().parents[3] / "shared/data/mscr-2d"


def brute_force(points: np.ndarray, labels: np.ndarray, norm: Norm) -> tuple[float, tuple[int, int]]:
    """Smallest distance (L2: its square) and the first pair at it, from the whole matrix."""
    rows = points.reshape(len(points), -1).astype(float)
    distances = cdist(rows, rows, METRICS[norm])
    distances[labels[:, None] == labels[None, :]] = np.inf
    first = int(distances.argmin())
    return float(distances.min()), (first // len(points), first % len(points))


def small_set(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Few grey levels, so that many pairs tie."""
    n = int(rng.integers(2, 60))
    labels = rng.integers(0, int(rng.integers(2, 6)), n)
    labels[:2] = 0, 1
    return rng.integers(0, 4, (n, *shape)).astype(np.uint8) * 50, labels


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("shape", [(), (2,), (8,), (9,), (5, 5), (6, 6, 3)])
def test_equals_brute_force_with_the_first_pair_of_ties(norm: Norm, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        images, labels = small_set(rng, shape)
        smallest, pair = brute_force(images, labels, norm)
        found = minimal_class_separation(images, labels, norm=norm)
        assert found.min_distance == (np.sqrt(smallest) if norm == "l2" else smallest) / 255
        assert (found.pair, found.norm, found.num_points) == (pair, norm, len(images))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dimensions", [3, 40])
def test_floats_equal_brute_force_and_are_not_scaled(norm: Norm, dimensions: int) -> None:
    rng = np.random.default_rng(1)
    points, labels = rng.normal(size=(80, dimensions)), rng.integers(0, 3, 80)
    smallest, pair = brute_force(points, labels, norm)
    found = minimal_class_separation(points, labels, norm=norm)
    assert found.min_distance == pytest.approx(np.sqrt(smallest) if norm == "l2" else smallest, rel=1e-14)
    assert found.pair == pair


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dimensions", [4, 30])
def test_order_of_the_points_does_not_matter(norm: Norm, dimensions: int) -> None:
    rng = np.random.default_rng(2)
    points, labels = rng.random((300, dimensions)), rng.integers(0, 7, 300)
    found = minimal_class_separation(points, labels, norm=norm)
    order = rng.permutation(300)
    shuffled = minimal_class_separation(points[order], labels[order], norm=norm)
    assert shuffled.min_distance == found.min_distance
    assert {int(order[i]) for i in shuffled.pair} == set(found.pair)


@pytest.mark.parametrize("norm", NORMS)
def test_digits_equal_scipy(norm: Norm) -> None:
    values, labels = load_digits(return_X_y=True)
    images = np.rint(values * 255 / 16).astype(np.uint8).reshape(-1, 8, 8)
    smallest, pair = brute_force(images, labels, norm)
    found = minimal_class_separation(images, labels, norm=norm)
    assert found.pair == pair
    assert found.min_distance == (np.sqrt(smallest) if norm == "l2" else smallest) / 255
    if norm == "linf":
        assert found.min_distance == float(Fraction(111, 255))
        assert found.epsilon_min == float(Fraction(111, 510))


@pytest.mark.parametrize(
    ("name", "norm", "distance"),
    [
        ("A", "linf", 0.008784227306022963),
        ("A", "l2", 0.009659553725820844),
        ("A", "l1", 2 * 0.006210110965184812),
        ("B", "linf", 0.008025590518030978),
        ("B", "l2", 0.008470367677680005),
        ("C", "linf", 0.004060680000000039),
        ("C", "l2", 0.004343455089315399),
    ],
)
def test_published_two_dimensional_sets(name: str, norm: Norm, distance: float) -> None:
    path = DATA_2D / f"{name}_sep.npz"
    if not path.exists():
        pytest.skip(f"the two-dimensional data sets are not there ({path.name})")
    with np.load(path) as data:
        assert minimal_class_separation(data["x"], data["y"], norm=norm).min_distance == distance


@pytest.mark.parametrize("norm", NORMS)
def test_large_differences_do_not_overflow(norm: Norm) -> None:
    images = np.stack([np.zeros(150_528, np.uint8), np.full(150_528, 255, np.uint8)])
    expected = {"linf": 1.0, "l2": np.sqrt(150_528), "l1": 150_528.0}[norm]
    assert minimal_class_separation(images, [0, 1], norm=norm).min_distance == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("dimensions", [2, 20])
def test_conflicting_duplicates_give_zero_and_the_pair(dimensions: int) -> None:
    images = np.random.default_rng(3).integers(0, 256, (50, dimensions)).astype(np.uint8)
    images[31] = images[17]
    labels = np.arange(50) % 10
    found = minimal_class_separation(images, labels, norm="l2")
    assert (found.min_distance, found.pair) == (0.0, (17, 31))


def test_duplicates_of_one_class_do_not_count() -> None:
    images = np.array([[0] * 9, [0] * 9, [7] * 9], np.uint8)
    assert minimal_class_separation(images, [1, 1, 2], norm="linf").min_distance == 7 / 255


def test_labels_may_be_text() -> None:
    points = np.array([[0.0], [1.0], [1.5], [9.0]])
    found = minimal_class_separation(points, ["cat", "cat", "dog", "eel"], norm="l1")
    assert (found.min_distance, found.pair) == (0.5, (1, 2))


@pytest.mark.parametrize(
    ("images", "labels", "error", "message"),
    [
        (np.zeros((3, 2)), [4, 4, 4], DataError, "All 3 points are of class .*4"),
        (np.zeros((1, 2)), [0], DataError, "at least two points"),
        (np.zeros((0, 2)), [], DataError, "at least two points"),
        (np.array([[0.0], [np.nan]]), [0, 1], DataError, "Point 1"),
        (np.array([[np.inf], [0.0]]), [0, 1], DataError, "Point 0"),
        (np.zeros((3, 2)), [0, 1], ShapeError, "one label for each"),
        (np.zeros((2, 0)), [0, 1], ShapeError, "nothing to compare"),
    ],
)
def test_data_without_a_separation_is_refused(
    images: np.ndarray, labels: list[int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        minimal_class_separation(images, labels, norm="linf")


def test_unknown_norm_is_refused() -> None:
    with pytest.raises(DefinitionError, match="l3"):
        minimal_class_separation(np.zeros((2, 2)), [0, 1], norm="l3")  # type: ignore[arg-type]


def test_inputs_are_not_changed() -> None:
    images, labels = small_set(np.random.default_rng(4), (4, 4))
    before = images.copy()
    images.flags.writeable = False
    minimal_class_separation(images, labels, norm="l2")
    assert np.array_equal(images, before)
