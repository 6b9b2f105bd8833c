"""What sources tell of their models: kept by source and model, replaced only on request, and merged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.errors import StoreError
from testbed.model_types import PublishedType
from testbed.store.merge import merge
from testbed.store.published_models import put_types
from testbed.store.store import Store


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "other.sqlite") as opened:
        yield opened


def told(model: str, model_type: str = "STANDARD", source: str = "paper") -> PublishedType:
    return PublishedType(source=source, source_sha256="0" * 64, model=model, model_type=model_type)


def put(store: Store, *types: PublishedType, override: bool = False) -> int:
    with store.writing() as connection:
        return put_types(connection, types, override=override)


def test_types_are_kept_by_source_and_model_and_stored_once(store: Store) -> None:
    types = [told("b"), told("a", "LP_ADV"), told("a", source="another")]
    assert [put(store, *types), put(store, *types), put(store)] == [3, 0, 0]
    assert store.published_types() == sorted(types, key=lambda one: (one.source, one.model))


def test_another_type_is_refused_as_a_whole_unless_it_is_to_replace_the_stored_one(store: Store) -> None:
    put(store, told("a"))
    with pytest.raises(StoreError, match=r"1 of the models .* 'paper', the first is 'a': STANDARD, now LP_ADV\. Give"):
        put(store, told("new"), told("a", "LP_ADV"))
    assert len(store.published_types()) == 1
    assert put(store, told("new"), told("a", "LP_ADV"), override=True) == 2
    assert [one.model_type for one in store.published_types()] == ["LP_ADV", "STANDARD"]


def test_types_are_merged_and_those_that_differ_are_conflicts(store: Store, other: Store) -> None:
    put(store, told("a"), told("b"))
    put(other, told("a", "LP_ADV"), told("b"), told("c"))
    report = merge(store, other)
    assert report.conflicts == ["the type of 'a' as told by 'paper' differs"]
    assert report.added == {"types of published models": 1}
    assert [(one.model, one.model_type) for one in store.published_types()] == [
        ("a", "STANDARD"), ("b", "STANDARD"), ("c", "STANDARD"),
    ]  # fmt: skip
    assert merge(store, other).added == {}
