"""What is committed under `results/measured` can be read by this version, is whole, and is ours alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from testbed.store import open_store
from testbed.store.published import list_sources
from testbed.store.reader import Reader
from testbed.store.verification import verify

MEASURED = Path(__file__).resolve().parents[2] / "results" / "measured"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Reader]:
    """The committed database, in a copy: reading leaves nothing beside the original."""
    copy = shutil.copy(MEASURED / "testbed.sqlite", tmp_path)
    with open_store(copy) as found:
        yield found


def test_the_committed_database_has_this_schema_and_every_checksum(store: Reader) -> None:
    assert not verify(store).findings
    assert {one.status for one in store.list_evaluations()} == {"complete"}


def test_no_published_number_is_committed(store: Reader) -> None:
    with store.reading() as connection:
        assert list_sources(connection) == []
    assert set(store.results()["source"].dropna()) == set()


def test_the_numbers_on_the_site_are_those_of_the_database(store: Reader) -> None:
    import pandas as pd

    shown = pd.read_csv(MEASURED / "site" / "data" / "points.csv").set_index(["model", "eval_setting"])["value"]
    table = store.results()
    stored = table[table["metric"] == "top1"].set_index(["model", "eval_setting"])["value"]
    assert set(stored.index) <= set(shown.index)
    assert shown[stored.index].to_numpy() == pytest.approx(stored.to_numpy(np.float64))
