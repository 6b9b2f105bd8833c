"""The search behind the separation: equal to brute force for every point, whatever the order, threads or bounds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from testbed.errors import DataError, ShapeError
from testbed.records import NORMS, Norm
from testbed.separation import minimal_class_separation, nearest_other_class
from testbed.separation.bounds import make_bound
from testbed.separation.points import checked_points, exact_distances
from testbed.separation.search import Search, search_all

METRICS = {"linf": "chebyshev", "l2": "sqeuclidean", "l1": "cityblock"}
ORDERS = {"linf": np.inf, "l2": 2, "l1": 1}
SOURCE = Path(__file__).resolve().parents[2] / "src"


def brute_force(
    points: np.ndarray, labels: np.ndarray, others: np.ndarray, other_labels: np.ndarray, norm: Norm
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Smallest distance of each point (l2: its square), the first point at it, and how many are."""
    distances = cdist(points.reshape(len(points), -1).astype(float), others.reshape(len(others), -1).astype(float),
                      METRICS[norm])  # fmt: skip
    distances[labels[:, None] == other_labels[None, :]] = np.inf
    smallest = distances.min(axis=1)
    nearest = np.where(np.isfinite(smallest), distances.argmin(axis=1), -1)
    return smallest, nearest, (distances == smallest[:, None]).sum(axis=1)


def as_distance(smallest: np.ndarray, norm: Norm, unit: float) -> np.ndarray:
    return (np.sqrt(smallest) if norm == "l2" else smallest) / unit


def integers(rng: np.random.Generator, n: int, dimensions: int, levels: int) -> np.ndarray:
    return rng.integers(0, levels, (n, dimensions)).astype(np.uint8)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dimensions", [1, 2, 8, 9, 65])
def test_every_point_equals_brute_force_with_ties(norm: Norm, dimensions: int) -> None:
    rng = np.random.default_rng(dimensions)
    for levels in (2, 4, 256):
        n = int(rng.integers(130, 400))
        images, labels = integers(rng, n, dimensions, levels), rng.integers(0, 5, n)
        smallest, nearest, ties = brute_force(images, labels, images, labels, norm)
        distances, found = nearest_other_class(images, labels, norm=norm)
        assert np.array_equal(distances, as_distance(smallest, norm, 255))
        assert np.array_equal(found, nearest)
        points = checked_points(images, labels, norm)
        assert np.array_equal(search_all(points, points, norm).ties, ties)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dimensions", [2, 30])
def test_two_sets_equal_brute_force(norm: Norm, dimensions: int) -> None:
    rng = np.random.default_rng(1)
    images, labels = integers(rng, 70, dimensions, 9), rng.integers(0, 4, 70)
    others, other_labels = integers(rng, 300, dimensions, 9), rng.integers(0, 3, 300)
    smallest, nearest, _ = brute_force(images, labels, others, other_labels, norm)
    distances, found = nearest_other_class(images, labels, norm=norm, references=(others, other_labels))
    assert np.array_equal(distances, as_distance(smallest, norm, 255))
    assert np.array_equal(found, nearest)


def test_no_reference_of_another_class_is_infinitely_far() -> None:
    images = np.arange(40, dtype=np.uint8).reshape(4, 10)
    for size in (2, 10):
        distances, found = nearest_other_class(
            images[:, :size], [0, 1, 0, 1], norm="linf", references=(images[:2, :size], [0, 0])
        )
        assert np.isinf(distances[[0, 2]]).all()
        assert found.tolist() == [-1, 1, -1, 1]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e6])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_floats_equal_brute_force_for_any_scale(norm: Norm, scale: float, offset: float) -> None:
    rng = np.random.default_rng(2)
    points, labels = (rng.normal(size=(300, 20)) + offset) * scale, rng.integers(0, 3, 300)
    smallest, nearest, _ = brute_force(points, labels, points, labels, norm)
    distances, found = nearest_other_class(points, labels, norm=norm)
    np.testing.assert_allclose(distances, as_distance(smallest, norm, 1), rtol=1e-12)
    assert np.array_equal(found, nearest)


@pytest.mark.parametrize("norm", NORMS)
def test_few_and_many_dimensions_give_the_same_bits(norm: Norm) -> None:
    rng = np.random.default_rng(3)
    points, labels = rng.normal(size=(400, 3)), rng.integers(0, 4, 400)
    few = nearest_other_class(points, labels, norm=norm)
    many = nearest_other_class(np.pad(points, ((0, 0), (0, 10))), labels, norm=norm)
    assert np.array_equal(few[0], many[0])
    assert np.array_equal(few[1], many[1])


@pytest.mark.parametrize("norm", NORMS)
def test_same_bits_for_any_number_of_threads(norm: Norm) -> None:
    rng = np.random.default_rng(4)
    images, labels = integers(rng, 1500, 30, 40), rng.integers(0, 9, 1500)
    smallest = {minimal_class_separation(images, labels, norm=norm, threads=threads) for threads in (1, 2, 5)}
    assert len(smallest) == 1
    one, four = (nearest_other_class(images, labels, norm=norm, threads=threads) for threads in (1, 4))
    assert np.array_equal(one[0], four[0])
    assert np.array_equal(one[1], four[1])
    assert next(iter(smallest)).min_distance == one[0].min()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dimensions", [2, 30])
def test_order_of_points_and_labels_does_not_matter(norm: Norm, dimensions: int) -> None:
    rng = np.random.default_rng(5)
    images, labels = integers(rng, 500, dimensions, 256), rng.integers(0, 6, 500)
    distances, _ = nearest_other_class(images, labels, norm=norm)
    order, names = rng.permutation(500), rng.permutation(6)
    shuffled, nearest = nearest_other_class(images[order], names[labels[order]], norm=norm)
    assert np.array_equal(shuffled, distances[order])
    assert (labels[order][nearest] != labels[order]).all()


@pytest.mark.parametrize("norm", NORMS)
def test_every_point_a_class_of_its_own(norm: Norm) -> None:
    rng = np.random.default_rng(6)
    images = integers(rng, 200, 12, 256)
    smallest, nearest, _ = brute_force(images, np.arange(200), images, np.arange(200), norm)
    distances, found = nearest_other_class(images, [f"class {i:03}" for i in range(200)], norm=norm)
    assert np.array_equal(distances, as_distance(smallest, norm, 255))
    assert np.array_equal(found, nearest)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", [np.uint8, np.float64])
def test_points_that_are_all_equal_have_distance_0(norm: Norm, kind: type) -> None:
    distances, nearest = nearest_other_class(np.full((300, 20), 7, kind), np.arange(300) % 2, norm=norm)
    assert (distances == 0).all()
    assert nearest.tolist() == [1, 0] * 150


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", [np.uint8, np.float64])
def test_bounds_never_exceed_the_distance(norm: Norm, kind: type) -> None:
    rng = np.random.default_rng(7)
    rows = rng.integers(0, 256, (300, 90)).astype(kind)
    rows[:, :40] = rows[:, :1] // 3  # values that vary together
    bound = make_bound(rows, norm, other_rows=rows, typical=100.0, rng=rng)
    features = bound.features(rows, np.arange(300))
    first, second = rng.integers(0, 300, (2, 2000))
    exact = exact_distances(rows[first], rows[second], norm).astype(float)
    exact = (np.sqrt(exact) if norm == "l2" else exact) / bound.scale
    gaps = features[first].astype(float) - features[second].astype(float)
    bounds = np.linalg.norm(gaps, ord=ORDERS[norm], axis=1)
    assert (bounds <= exact + bound.margin(features)).all()
    assert (bounds > 0.2 * exact).mean() > 0.9, "the bounds are of no use"


def test_progress_reaches_the_end() -> None:
    rng = np.random.default_rng(8)
    images, labels = integers(rng, 2000, 20, 256), rng.integers(0, 3, 2000)
    steps: list[tuple[int, int]] = []
    nearest_other_class(images, labels, norm="linf", progress=lambda done, total: steps.append((done, total)))
    assert steps == sorted(steps)
    assert steps[-1] == (2000, 2000)
    assert len(steps) > 1


def test_an_interrupt_drops_the_rest_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    images, labels = integers(rng, 20_000, 20, 256), rng.integers(0, 3, 20_000)
    begun: list[int] = []
    run = Search._run

    def slow(self: Search, rows: np.ndarray, *arguments: Any, **keywords: Any) -> None:
        begun.append(len(rows))
        sleep(0.01)
        run(self, rows, *arguments, **keywords)

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Search, "_run", slow)
    with pytest.raises(KeyboardInterrupt):
        nearest_other_class(images, labels, norm="linf", threads=2, progress=interrupt)
    assert sum(begun) < 20_000


def test_sets_that_cannot_be_compared_are_refused() -> None:
    images = np.zeros((3, 4), np.uint8)
    with pytest.raises(ShapeError, match="same shape and type"):
        nearest_other_class(images, [0, 1, 2], norm="l2", references=(np.zeros((2, 5), np.uint8), [0, 1]))
    with pytest.raises(ShapeError, match="same shape and type"):
        nearest_other_class(images, [0, 1, 2], norm="l2", references=(np.zeros((2, 4)), [0, 1]))
    with pytest.raises(DataError, match="All 5 points"):
        nearest_other_class(images, [1, 1, 1], norm="l2", references=(images[:2], [1, 1]))
    with pytest.raises(DataError, match="Rescale"):
        nearest_other_class(np.array([[1e200], [0.0]]), [0, 1], norm="l2")


def test_works_where_nothing_can_be_kept_on_disk(tmp_path: Path) -> None:
    code = """
import numpy as np
from testbed.separation import minimal_class_separation
print(minimal_class_separation(np.arange(30, dtype=np.uint8).reshape(3, 10), [0, 0, 1], norm='linf').pair)
"""
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "NUMBA_CACHE_DIR": "/proc/nowhere"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.strip() == "(1, 2)", done.stderr
