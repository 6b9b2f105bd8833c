"""The search on a device gives the bits of the search on the CPU; the same code is run on the CPU by torch here."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from testbed.errors import DefinitionError, DeviceError
from testbed.records import NORMS, Norm
from testbed.separation import device, minimal_class_separation, nearest_other_class, separation_report
from testbed.separation.points import Points, checked_sets
from testbed.separation.search import NOBODY, Found, search_all


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block and every sum of columns is one of several."""
    monkeypatch.setattr(device, "QUERIES", 100)
    monkeypatch.setattr(device, "REFERENCES", 70)
    monkeypatch.setattr(device, "_COLUMNS", 16)


def values(kind: str, rng: np.random.Generator, n: int, dimensions: int) -> np.ndarray:
    if kind == "tied images":
        return rng.integers(0, 3, (n, dimensions)).astype(np.uint8) * 50
    if kind == "images":
        return rng.integers(0, 256, (n, dimensions)).astype(np.uint8)
    if kind == "tied numbers":
        return rng.integers(0, 3, (n, dimensions)) * 0.1
    return rng.normal(size=(n, dimensions)) + (1e6 if kind == "far from 0" else 0.0)


def sets(kind: str, norm: Norm, *, n: int, m: int, dimensions: int) -> tuple[Points, Points]:
    rng = np.random.default_rng(n)
    ours, theirs = values(kind, rng, n, dimensions), values(kind, rng, m, dimensions)
    return checked_sets((ours, rng.integers(0, 4, n)), (theirs, rng.integers(0, 3, m)), norm)


def assert_same_bits(found: Found, expected: Found) -> None:
    assert found.best.dtype == expected.best.dtype
    for name in ("best", "nearest", "ties"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ["images", "tied images", "numbers", "tied numbers", "far from 0"])
@pytest.mark.parametrize(("n", "m", "dimensions"), [(230, 230, 20), (130, 411, 65), (101, 1, 3)])
def test_same_bits_as_on_the_cpu(norm: Norm, kind: str, n: int, m: int, dimensions: int) -> None:
    queries, references = sets(kind, norm, n=n, m=m, dimensions=dimensions)
    found = device.search_device(queries, references, norm, device="cpu")
    assert_same_bits(found, search_all(queries, references, norm))


@pytest.mark.parametrize("norm", NORMS)
def test_sums_of_the_largest_differences_are_exact(norm: Norm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_COLUMNS", 1 << 12)
    images = np.stack([np.full(20_001, 255), np.zeros(20_001), np.full(20_001, 254)]).astype(np.uint8)
    images[1, 0] = 1  # sums are odd, where a rounded one would be even
    queries, references = checked_sets((images[:1], [0]), (images[1:2], [1]), norm)
    expected = {"linf": 255, "l2": 20_000 * 255**2 + 254**2, "l1": 20_000 * 255 + 254}[norm]
    assert device.search_device(queries, references, norm, device="cpu").best.tolist() == [expected]


def test_a_point_without_another_class_finds_nobody() -> None:
    queries, references = checked_sets((np.zeros((2, 9), np.uint8), [0, 1]), (np.ones((3, 9), np.uint8), [0] * 3), "l1")
    found = device.search_device(queries, references, "l1", device="cpu")
    assert (found.best.tolist(), found.nearest.tolist(), found.ties.tolist()) == ([NOBODY, 9], [NOBODY, 0], [0, 3])


def test_progress_counts_queries() -> None:
    queries, references = sets("images", "linf", n=230, m=80, dimensions=12)
    steps: list[tuple[int, int]] = []
    device.search_device(queries, references, "linf", device="cpu", progress=lambda *step: steps.append(step))
    assert steps == [(100, 230), (200, 230), (230, 230)]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ["tied images", "numbers"])
def test_every_question_is_answered_alike_with_and_without_a_device(
    norm: Norm, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    points, labels, splits = values(kind, rng, 260, 20), rng.integers(0, 3, 260), np.arange(260) % 2
    on_cpu = separation_report(points, labels, norm=norm, splits=splits, device="cpu")
    monkeypatch.setattr(device, "_LONG", 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    asked: list[str] = []
    search = device.search_device

    def search_here(*points: Points | Norm, **options: object) -> Found:
        asked.append("cuda")
        return search(*points, **{**options, "device": "cpu"})  # type: ignore[arg-type]

    monkeypatch.setattr("testbed.separation.nearest.search_device", search_here)
    on_device = separation_report(points, labels, norm=norm, splits=splits)
    ids = [str(i) for i in range(260)]
    assert on_device.detail(ids) == on_cpu.detail(ids)
    assert np.array_equal(on_device.distances, on_cpu.distances)
    assert minimal_class_separation(points, labels, norm=norm) == on_cpu.separation
    assert all(map(np.array_equal, nearest_other_class(points, labels, norm=norm), (on_cpu.distances, on_cpu.nearest)))
    assert len(asked) == 4 + 1 + 1 + 1, "splits, witness, minimum, every point"


def test_a_device_is_used_for_long_searches_of_many_dimensions_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long, short = sets("images", "l1", n=300, m=300, dimensions=30), sets("images", "l1", n=20, m=20, dimensions=30)
    flat = sets("images", "l1", n=300, m=300, dimensions=8)
    monkeypatch.setattr(device, "_LONG", 300 * 300 * 8)
    for is_there in (True, False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda is_there=is_there: is_there)
        assert device.is_on_cuda("auto", *long) == is_there
        assert not device.is_on_cuda("auto", *short)
        assert not device.is_on_cuda("auto", *flat)
        assert not device.is_on_cuda("cpu", *long)
    with pytest.raises(DeviceError, match="no CUDA device"):
        nearest_other_class(np.zeros((2, 2)), [0, 1], norm="l1", device="cuda")
    with pytest.raises(DefinitionError, match="auto, cpu, cuda"):
        nearest_other_class(np.zeros((2, 2)), [0, 1], norm="l1", device="tpu")  # type: ignore[arg-type]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ["images", "tied images", "numbers", "tied numbers", "far from 0"])
def test_same_bits_on_cuda(norm: Norm, kind: str) -> None:
    queries, references = sets(kind, norm, n=530, m=411, dimensions=65)
    assert_same_bits(device.search_device(queries, references, norm), search_all(queries, references, norm))
