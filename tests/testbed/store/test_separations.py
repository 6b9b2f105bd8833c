"""A separation that is stored gains what was not known of it, and never changes."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.errors import DataError
from testbed.records import Separation
from testbed.store.merge import merge
from testbed.store.store import Store

FOUND = Separation(norm="linf", min_distance=111 / 255, pair=(3, 8), num_points=1797)
KEY: dict[str, Any] = {
    "dataset": "digits", "splits": ("train", "test"), "data_fingerprint": "f" * 64, "norm": "linf", "space": "8 px",
}  # fmt: skip


def put(store: Store, separation: Separation = FOUND, **detail: Any) -> None:
    store.put_separation(separation, pair_ids=("train/3", "test/0"), detail=detail, **KEY)


def stored_detail(store: Store) -> dict[str, Any]:
    found = store.get_separation(**KEY)
    assert found is not None
    assert (found.min_distance, found.pair) == (FOUND.min_distance, FOUND.pair)
    return dict(found.detail)


def test_a_missing_detail_is_filled_in_and_nothing_stored_is_lost(store: Store) -> None:
    put(store)
    assert stored_detail(store) == {}
    put(store, witness={"num_right": 514}, mean=0.7)
    put(store)
    put(store, mean=0.8, num_pairs=2)
    assert stored_detail(store) == {"witness": {"num_right": 514}, "mean": 0.7, "num_pairs": 2}


@pytest.mark.parametrize(
    "change",
    [{"min_distance": 112 / 255}, {"pair": (3, 9)}, {"num_points": 1796}],
    ids=lambda change: next(iter(change)),
)
def test_another_result_under_the_same_key_is_refused(store: Store, change: dict[str, Any]) -> None:
    put(store)
    other = Separation(**{"norm": "linf", "min_distance": 111 / 255, "pair": (3, 8), "num_points": 1797, **change})
    with pytest.raises(DataError, match=r"'digits' .* is stored as .*0.435.* but is now found"):
        put(store, other, mean=0.7)
    assert stored_detail(store) == {}


def test_a_merge_fills_in_details_either_way(store: Store, tmp_path: Any) -> None:
    with Store.open(tmp_path / "other.sqlite") as other:
        put(store, mean=0.7)
        put(other, num_pairs=2)
        dry = merge(store, other, is_dry_run=True)
        assert stored_detail(store) == {"mean": 0.7}
        assert merge(store, other).added == dry.added == {"details of separations": 1}
        assert merge(other, store).added == {"details of separations": 1}
        assert stored_detail(store) == stored_detail(other) == {"mean": 0.7, "num_pairs": 2}
        assert merge(store, other).added == {}
