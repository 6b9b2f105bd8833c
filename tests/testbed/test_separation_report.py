"""What is told beside the minimum: all pairs at it, the distribution, duplicates, splits, and the witness."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from testbed.errors import DataError, DefinitionError, ShapeError
from testbed.records import NORMS, Norm
from testbed.separation import check_witness, minimal_class_separation, nearest_other_class, separation_report
from testbed.separation.report import MAX_PAIRS

METRICS = {"linf": "chebyshev", "l2": "euclidean", "l1": "cityblock"}


def clusters(rng: np.random.Generator, n: int = 300, dimensions: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Images around one centre for each of three classes."""
    labels = rng.integers(0, 3, n)
    centres = rng.integers(60, 196, (3, dimensions))
    return (centres[labels] + rng.integers(-40, 41, (n, dimensions))).astype(np.uint8), labels


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dimensions", [2, 12])
def test_all_pairs_at_the_minimum_are_counted_and_listed(norm: Norm, dimensions: int) -> None:
    rng = np.random.default_rng(0)
    images = (rng.permutation(4**4)[:60, None] // 4 ** np.arange(4) % 4).repeat(dimensions // 2, axis=1)
    images, labels = images[:, :dimensions].astype(np.uint8), rng.integers(0, 3, 60)
    report = separation_report(images, labels, norm=norm)
    distances = np.triu(cdist(images.astype(float), images.astype(float), METRICS[norm]), 1)
    is_pair = np.triu(labels[:, None] != labels[None, :], 1)
    pairs = np.argwhere(is_pair & (distances == distances[is_pair].min())).tolist()
    assert report.num_pairs == len(pairs)
    assert [list(pair) for pair in report.pairs] == pairs[:MAX_PAIRS]
    assert report.separation == minimal_class_separation(images, labels, norm=norm)


def test_distribution_is_that_of_all_points() -> None:
    images, labels = clusters(np.random.default_rng(1))
    report = separation_report(images, labels, norm="linf")
    distances, nearest = nearest_other_class(images, labels, norm="linf")
    assert np.array_equal(report.distances, distances)
    assert np.array_equal(report.nearest, nearest)
    quantiles = report.quantiles()
    assert (quantiles[0], quantiles[-1]) == (distances.min(), distances.max())
    assert quantiles[100] == np.sort(distances)[149]
    assert set(quantiles) <= set(distances)
    assert report.name == "minimal class separation"


def test_duplicates_are_told_and_can_be_left_out() -> None:
    images, labels = clusters(np.random.default_rng(2))
    clean = minimal_class_separation(images, labels, norm="l2")
    labels[[10, 20, 30, 40, 50]] = [0, 1, 1, 2, 2]
    images[20] = images[30] = images[10]  # two conflicting pairs, and one of the same class
    images[50] = images[40]
    report = separation_report(images, labels, norm="l2")
    assert (report.separation.min_distance, report.separation.pair) == (0.0, (10, 20))
    assert (report.num_pairs, report.pairs) == (2, ((10, 20), (10, 30)))
    assert report.duplicates.num_duplicates == 3
    assert report.duplicates.conflicting == (10, 20, 30)
    assert report.duplicates.num_conflicting_pairs == 2
    assert report.duplicates.conflicting_pairs == ((10, 20), (10, 30))
    assert (10, 20) in report.witness.broken_pairs
    rest = separation_report(images, labels, norm="l2", exclude_conflicting=True)
    kept = np.delete(np.arange(300), [10, 20, 30])
    found = minimal_class_separation(images[kept], labels[kept], norm="l2")
    assert rest.separation.min_distance == found.min_distance > 0
    assert rest.separation.pair == tuple(kept[list(found.pair)])
    assert rest.separation.num_points == 297 < clean.num_points
    assert rest.name == "minimal class separation without conflicting duplicates"
    assert rest.excluded == (10, 20, 30)
    assert rest.witness.num_right == rest.witness.num_points


def test_many_conflicting_duplicates_are_counted_and_the_first_listed() -> None:
    images = np.zeros((600, 30), np.uint8)
    report = separation_report(images, np.arange(600) % 2, norm="linf")
    assert report.num_pairs == report.duplicates.num_conflicting_pairs == 300 * 300
    assert report.pairs == report.duplicates.conflicting_pairs == tuple((0, 2 * k + 1) for k in range(MAX_PAIRS))
    with pytest.raises(DataError, match="fewer than two classes"):
        separation_report(images, np.arange(600) % 2, norm="linf", exclude_conflicting=True)


def test_zero_and_minus_zero_are_equal() -> None:
    report = separation_report(np.array([[0.0, 1.0], [-0.0, 1.0], [5.0, 5.0]]), [0, 1, 0], norm="l1")
    assert report.duplicates.conflicting_pairs == report.pairs == ((0, 1),)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dimensions", [2, 20])
def test_splits_are_searched_apart_and_together(norm: Norm, dimensions: int) -> None:
    images, labels = clusters(np.random.default_rng(3), dimensions=dimensions)
    splits = np.where(np.arange(300) % 3 == 0, "test", "train")
    steps: list[tuple[int, int]] = []
    report = separation_report(
        images, labels, norm=norm, splits=splits, progress=lambda done, total: steps.append((done, total))
    )
    assert steps[-1] == (600, 600)
    whole = separation_report(images, labels, norm=norm)
    assert np.array_equal(report.distances, whole.distances)
    assert np.array_equal(report.nearest, whole.nearest)
    assert (report.num_pairs, report.pairs) == (whole.num_pairs, whole.pairs)
    assert set(report.between) == {("test", "test"), ("test", "train"), ("train", "train")}
    test, train = (np.flatnonzero(splits == name) for name in ("test", "train"))
    crossed, _ = nearest_other_class(images[test], labels[test], norm=norm, references=(images[train], labels[train]))
    distance, pair = report.between["test", "train"] or (0.0, (0, 0))
    assert distance == crossed.min()
    assert {splits[pair[0]], splits[pair[1]]} == {"test", "train"}
    assert labels[pair[0]] != labels[pair[1]]
    assert min(each[0] for each in report.between.values() if each) == report.separation.min_distance


@pytest.mark.parametrize("dimensions", [2, 12])
def test_pairs_across_splits_are_counted_once(dimensions: int) -> None:
    rng = np.random.default_rng(9)
    images = rng.permutation(4**4)[:90, None] // 4 ** np.arange(4) % 4
    images, labels = images.repeat(3, axis=1)[:, :dimensions].astype(np.uint8), rng.integers(0, 2, 90)
    whole = separation_report(images, labels, norm="l1")
    parts = separation_report(images, labels, norm="l1", splits=np.arange(90) % 3)
    assert (parts.num_pairs, parts.pairs) == (whole.num_pairs, whole.pairs)
    assert whole.num_pairs > 3
    assert np.array_equal(parts.nearest, whole.nearest)


def test_split_with_one_class_has_no_separation_of_its_own() -> None:
    images = np.arange(60, dtype=np.uint8).reshape(4, 15)
    report = separation_report(images, [0, 0, 1, 1], norm="linf", splits=["a", "a", "a", "b"])
    assert report.between["b", "b"] is None
    assert report.between["a", "b"] == (30 / 255, (1, 3))
    assert report.separation.pair == (1, 2)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dimensions", [3, 20])
def test_witness_is_always_right_within_half_the_separation(norm: Norm, dimensions: int) -> None:
    images, labels = clusters(np.random.default_rng(4), dimensions=dimensions)
    witness = separation_report(images, labels, norm=norm).witness
    assert witness.num_right == witness.num_points > 500
    assert witness.broken_pairs == ()


@pytest.mark.parametrize("norm", NORMS)
def test_witness_breaks_beyond_half_the_separation(norm: Norm) -> None:
    images, labels = clusters(np.random.default_rng(5))
    found = minimal_class_separation(images, labels, norm=norm)
    beyond = check_witness(images, labels, norm=norm, epsilon=found.epsilon_min * 1.01)
    assert found.pair in beyond.broken_pairs or found.pair[::-1] in beyond.broken_pairs


@pytest.mark.parametrize("norm", NORMS)
def test_witness_names_planted_and_mislabelled_points(norm: Norm) -> None:
    images, labels = clusters(np.random.default_rng(6), n=200)
    epsilon = minimal_class_separation(images, labels, norm=norm).epsilon_min
    planted = np.concatenate([images, images[7:8] + np.uint8(1)])
    wrong = np.append(labels, (labels[7] + 1) % 3)
    witness = check_witness(planted, wrong, norm=norm, epsilon=epsilon)
    assert witness.num_right < witness.num_points
    assert {(7, 200), (200, 7)} & set(witness.broken_pairs)
    mislabelled = labels.copy()
    mislabelled[11] = (labels[11] + 1) % 3
    assert any(11 in pair for pair in check_witness(images, mislabelled, norm=norm, epsilon=epsilon).broken_pairs)


def test_witness_is_the_same_every_time_and_depends_on_the_seed() -> None:
    images, labels = clusters(np.random.default_rng(7), n=2000)
    epsilon = minimal_class_separation(images, labels, norm="l1").epsilon_min * 2
    first, again, other = (check_witness(images, labels, norm="l1", epsilon=epsilon, seed=seed) for seed in (0, 0, 1))
    assert first == again != other
    with pytest.raises(DefinitionError, match="0 or a positive"):
        check_witness(images, labels, norm="l1", epsilon=-1.0)


def test_detail_can_be_stored_as_json() -> None:
    images, labels = clusters(np.random.default_rng(8))
    report = separation_report(images, labels, norm="l1", splits=["a"] * 150 + ["b"] * 150)
    names = [f"image {i}" for i in range(300)]
    detail = json.loads(json.dumps(report.detail(names), allow_nan=False))
    assert detail["pairs"][0] == [names[point] for point in report.separation.pair]
    assert detail["quantiles"]["0.0"] == report.separation.min_distance
    assert detail["witness"]["num_right"] == detail["witness"]["num_points"]
    assert [each["splits"] for each in detail["between"]] == [["a", "a"], ["a", "b"], ["b", "b"]]
    assert len(json.dumps(detail)) < 10_000


def test_detail_names_points_as_they_were_given_where_some_are_left_out() -> None:
    images = np.array([[0] * 9, [0] * 9, [5] * 9, [7] * 9, [7] * 9], np.uint8)
    report = separation_report(images, [0, 1, 0, 1, 1], norm="linf", exclude_conflicting=True)
    detail = report.detail("abcde")
    assert detail["num_excluded"] == 2
    assert detail["pairs"] == [["c", "d"], ["c", "e"]]
    assert detail["duplicates"] == {
        "num_duplicates": 2, "num_conflicting": 2, "num_conflicting_pairs": 1, "conflicting_pairs": [["a", "b"]],
    }  # fmt: skip


def test_distribution_has_a_bin_for_each_grey_level() -> None:
    images = np.array([[0] * 9, [3] * 9, [10] * 9], np.uint8)  # nearest of another class: 3, 3, 7 levels away
    bins = separation_report(images, [0, 1, 0], norm="linf").distribution()
    assert bins["counts"] == [2, 0, 0, 0, 1]
    assert bins["width"] == 1 / 255
    assert bins["start"] == pytest.approx(2.5 / 255, abs=1e-15)


@pytest.mark.parametrize(("kind", "norm"), [(np.uint8, "l1"), (np.float64, "linf")])
def test_distribution_has_a_hundred_bins_from_the_smallest_to_the_largest(kind: type, norm: Norm) -> None:
    images, labels = clusters(np.random.default_rng(10))
    report = separation_report(images.astype(kind), labels, norm=norm)
    bins, distances = report.distribution(), report.distances
    assert bins["start"] == distances.min()
    assert bins["start"] + 100 * bins["width"] == pytest.approx(distances.max())
    edges = bins["start"] + bins["width"] * np.arange(1, 100)
    assert np.cumsum(bins["counts"])[:-1].tolist() == [(distances < edge).sum() for edge in edges]
    assert sum(bins["counts"]) == 300


def test_distribution_of_equal_distances_is_one_bin() -> None:
    bins = separation_report(np.array([[0.0, 0.0], [3.0, 4.0]]), [0, 1], norm="l2").distribution()
    assert bins == {"start": 5.0, "width": 5.0, "counts": [2]}
    assert separation_report(np.zeros((2, 9)), [0, 1], norm="l2").distribution()["counts"] == [2]


def test_one_split_name_for_each_image() -> None:
    with pytest.raises(ShapeError, match="split names"):
        separation_report(np.zeros((3, 4)), [0, 1, 1], norm="l1", splits=["a", "b"])


@pytest.mark.parametrize("norm", NORMS)
def test_witness_is_the_same_by_either_comparison(norm: Norm, monkeypatch: pytest.MonkeyPatch) -> None:
    images, labels = clusters(np.random.default_rng(11), n=400)
    images[:40] = images[40:80]  # equal points, of the same class or not
    epsilon = minimal_class_separation(images[40:], labels[40:], norm=norm).epsilon_min * 1.5
    in_numpy = check_witness(images, labels, norm=norm, epsilon=epsilon)
    monkeypatch.setattr("testbed.separation.witness._SHORT", 0)
    assert check_witness(images, labels, norm=norm, epsilon=epsilon) == in_numpy
    assert 0 < in_numpy.num_right < in_numpy.num_points
