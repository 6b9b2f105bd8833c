"""Which samples a data set's separation is searched over, what is stored of it, and what follows for noise levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval_settings.dataset_base import Dataset
from registry import registry
from testbed.data.arrays import array_samples
from testbed.data.npz import npz_samples
from testbed.definitions import load_definitions
from testbed.engine import separations
from testbed.engine.data import Data
from testbed.engine.preflight import located
from testbed.engine.separations import find_separation, searched_samples
from testbed.errors import DataError
from testbed.progress import SearchProgress
from testbed.records import Norm, Samples, Separation
from testbed.store.store import Store

DATA_2D = Path(__file__).resolve().parents[4] / "shared/data/mscr-2d"
Arrays = Mapping[str, tuple[np.ndarray, list[int]]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    load_definitions()
    with Store.open(tmp_path / "store.sqlite") as opened:
        yield opened


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def data(store: Store, cache_home: Path, told: list[str]) -> Data:
    return Data(store=store, data_root=None, cache_root=cache_home, threads=1, warn=told.append)


def load(split: str, *, arrays: Arrays) -> Samples:
    x, y = arrays[split]
    return array_samples(x, np.array(y), dataset="made", split=split, class_names=("cat", "dog"))


def made(arrays: Arrays, *, name: str = "made", **changes: Any) -> Dataset:
    """A data set of the given arrays."""
    loader = partial(load, arrays=arrays)
    return Dataset(name=name, loader=loader, splits=tuple(arrays), eval_split=list(arrays)[-1], **changes)


def images(*levels: int, side: int = 3) -> np.ndarray:
    """Images of one grey level each."""
    return np.repeat(np.array(levels, np.uint8), side * side).reshape(-1, side, side)


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Callable[[Dataset], None]:
    """Registers a data set for one test."""

    def register(dataset: Dataset) -> None:
        registry.add_dataset(dataset)
        monkeypatch.setattr(registry, "_derived", {})

    before = dict(registry._datasets.values)
    monkeypatch.setattr(registry._datasets, "values", before)
    return register


def test_what_is_behind_a_separation_is_stored_with_it(store: Store, data: Data) -> None:
    dataset = made({"train": (images(0, 100), [0, 1]), "test": (images(30, 90), [0, 0])})
    found = data.separation(dataset, "linf")
    assert (found.min_distance, found.pair, found.pair_ids) == (10 / 255, (1, 3), ("train/1", "test/1"))
    searched = searched_samples(data, dataset)
    stored = store.get_separation(**searched.key("linf", exclude_conflicting=False))
    assert stored == found
    assert stored.detail["pairs"] == [["train/1", "test/1"]]
    assert stored.detail["witness"]["num_right"] == stored.detail["witness"]["num_points"] > 0
    between = {"-".join(each["splits"]): each["min_distance"] for each in stored.detail["between"]}
    assert between == {"train-train": 100 / 255, "train-test": 10 / 255, "test-test": None}


def test_a_separation_stored_without_its_detail_gains_it_when_that_is_asked_for(store: Store, data: Data) -> None:
    dataset = made({"test": (images(0, 100, 108), [0, 1, 0])})
    searched = searched_samples(data, dataset)
    key = searched.key("l1", exclude_conflicting=False)
    found = find_separation(replace(data, is_kept=False), searched, "l1")
    assert store.get_separation(**key) is None
    bare = Separation(norm="l1", min_distance=72 / 255, pair=(1, 2), num_points=3)
    store.put_separation(bare, **key, pair_ids=("test/1", "test/2"))
    assert data.separation(dataset, "l1").detail == {}, "a noise level needs no more"
    assert find_separation(data, searched, "l1", with_detail=True) == found
    assert store.get_separation(**key) == found


def test_an_interrupted_search_stores_nothing(store: Store, data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: SearchProgress, done: int, total: int) -> None:
        raise KeyboardInterrupt

    dataset = made({"test": (images(0, 100, 108), [0, 1, 0])})
    searched = searched_samples(data, dataset)
    monkeypatch.setattr(SearchProgress, "__call__", interrupt)
    with pytest.raises(KeyboardInterrupt):
        find_separation(data, searched, "linf")
    assert store.get_separation(**searched.key("linf", exclude_conflicting=False)) is None


@pytest.mark.parametrize(
    ("name", "norm", "distance"),
    [
        ("A", "linf", 0.008784227306022963),
        ("B", "linf", 0.008025590518030978),
        ("B", "l2", 0.008470367677680005),
        ("C", "linf", 0.004060680000000039),
    ],
)
def test_published_numbers_come_from_all_digits_of_rows(data: Data, name: str, norm: Norm, distance: float) -> None:
    path = DATA_2D / f"{name}_sep.npz"
    if not path.exists():
        pytest.skip(f"the two-dimensional data sets are not there ({path.name})")
    points = partial(npz_samples, path, dataset=name, order=None, label_space=None)
    found = data.separation(Dataset(name=name, loader=lambda split: points(split), domain="numbers"), norm)
    assert found.min_distance == distance


@pytest.mark.parametrize("shape", [(2,), (3, 3)], ids=["rows", "images"])
def test_floating_point_samples_keep_all_their_digits(data: Data, told: list[str], shape: tuple[int, ...]) -> None:
    x = np.stack([np.zeros(shape), np.full(shape, 0.1 + 1e-12)])
    dataset = made({"test": (x, [0, 1])}, canonical_size=None)
    assert data.separation(dataset, "linf").min_distance == 0.1 + 1e-12
    assert searched_samples(data, dataset).space == "units of the data"
    assert told == []


def test_less_than_a_grey_level_is_told_of_images_alone(data: Data, told: list[str]) -> None:
    data.separation(made({"test": (np.array([[0.0], [0.001]]), [0, 1])}, domain="numbers"), "linf")
    assert told == []
    dataset = made({"train": (images(7, 8), [0, 1])}, name="images")
    data.separation(dataset, "l1")
    assert told == []
    data.separation(dataset, "linf")
    assert len(told) == 1
    assert "0.00196, less than one grey level (1/255): train/0 and train/1 are nearly equal" in told[0]


def test_named_splits_are_searched_in_the_order_of_the_data_set(data: Data) -> None:
    dataset = made({name: (images(0, 50 + level), [0, 1]) for level, name in enumerate("abc")})
    assert searched_samples(data, dataset).splits == ("a", "b", "c")
    assert searched_samples(data, dataset, ("c", "a", "c")).splits == ("a", "c")
    with pytest.raises(DataError, match=r"has no split 'd'\. Its splits: a, b, c"):
        searched_samples(data, dataset, ("a", "d"))
    named = replace(dataset, separation_splits=("c", "b"))
    assert searched_samples(data, named).splits == ("c", "b")
    assert searched_samples(data, named, ("a", "b", "c")).splits == ("c", "b", "a")


def test_the_evaluated_split_stands_for_too_many_samples(
    data: Data, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(separations, "MOST_SAMPLES", 4)
    dataset = made({"train": (images(0, 50, 51), [0, 1, 0]), "test": (images(0, 90), [0, 1])})
    assert data.separation(dataset, "linf").min_distance == 90 / 255
    assert len(told) == 1
    assert "5 samples in train + test, too many" in told[0]
    assert searched_samples(data, dataset, ("train", "test")).splits == ("train", "test")
    monkeypatch.setattr(separations, "MOST_SAMPLES", 5)
    assert data.separation(replace(dataset, name="few"), "linf").num_points == 5


def test_one_class_and_splits_that_differ_in_shape_are_refused(data: Data) -> None:
    one = made({"train": (images(0, 50), [1, 1]), "test": (images(0, 90), [0, 1])})
    with pytest.raises(DataError, match=r"'made' \(train\) has samples of one class only, 'dog'"):
        searched_samples(data, one, ("train",))
    sizes = made({"train": (images(0, 50), [0, 1]), "test": (images(0, 90, side=4), [0, 1])}, name="sizes")
    with pytest.raises(DataError, match=r"'train' has 8-bit samples of shape \(1, 3, 3\), 'test' .* \(1, 4, 4\)"):
        data.separation(sizes, "linf")
    kinds = made({"train": (images(0, 50), [0, 1]), "test": (np.zeros((2, 3, 3)), [0, 1])}, name="kinds")
    with pytest.raises(DataError, match="'test' has floating-point samples"):
        data.separation(kinds, "linf")


def test_a_class_with_one_sample_counts(data: Data) -> None:
    dataset = made({"test": (images(0, 10, 20, 200), [0, 0, 0, 1])})
    assert data.separation(dataset, "linf").min_distance == 180 / 255


def test_conflicting_samples_are_refused_unless_they_are_left_out(
    store: Store, data: Data, add: Callable[[Dataset], None]
) -> None:
    dataset = made({"train": (images(0, 77), [0, 1]), "test": (images(0, 200, 110), [1, 0, 0])})
    add(dataset)
    with pytest.raises(DataError, match=r"\(train/0 and test/0\).*Or use made-mscr-linf-without-conflicting"):
        located(registry.eval_setting("made-mscr-linf"), data)
    found = located(registry.eval_setting("made-mscr-linf-without-conflicting"), data)
    assert found.setting.shift is not None
    assert found.setting.shift.epsilon == 33 / 510
    assert found.setting.shift.name == "mscr-without-conflicting"
    assert found.version.spec["separation"] == {
        "splits": ["train", "test"], "num_points": 3, "min_distance": 33 / 255, "pair": [1, 4], "num_excluded": 2,
    }  # fmt: skip
    assert len(found.indices) == 3, "all samples are evaluated"
    searched = searched_samples(data, dataset)
    whole, rest = (store.get_separation(**searched.key("linf", exclude_conflicting=out)) for out in (False, True))
    assert whole is not None
    assert rest is not None
    assert (whole.min_distance, whole.pair_ids) == (0, ("train/0", "test/0"))
    assert (rest.min_distance, rest.pair_ids) == (33 / 255, ("train/1", "test/2"))


def test_a_setting_without_conflicting_is_at_the_usual_level_where_there_are_none(
    data: Data, add: Callable[[Dataset], None]
) -> None:
    add(made({"test": (images(0, 77), [0, 1])}))
    usual, rest = (located(registry.eval_setting(f"made-mscr-l2{end}"), data) for end in ("", "-without-conflicting"))
    assert usual.version.spec["separation"] == rest.version.spec["separation"]
    assert "num_excluded" not in usual.version.spec["separation"]
    assert usual.setting.shift is not None
    assert rest.setting.shift is not None
    assert usual.setting.shift.epsilon == rest.setting.shift.epsilon


def test_progress_is_not_told_of_a_short_search(data: Data, capsys: pytest.CaptureFixture[str]) -> None:
    data.separation(made({"test": (images(0, 77), [0, 1])}), "linf")
    assert capsys.readouterr().err == ""


def test_progress_of_a_long_search_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("testbed.progress.QUICK_SECONDS", -1)
    monkeypatch.setattr("testbed.progress.LINE_SECONDS", -1)
    with SearchProgress("Searching.") as progress:
        progress(30, 120)
        progress(60, 120)
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "Searching."
    assert [line.split(",")[0] for line in told[1:]] == ["30/120 samples (25 %)", "60/120 samples (50 %)"]
    with SearchProgress("Searching.", is_quiet=True) as progress:
        progress(30, 120)
    assert capsys.readouterr().err == ""
