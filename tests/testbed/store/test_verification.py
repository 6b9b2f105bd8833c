"""Whatever byte of a result changes is found and named, and what can be computed again is opened for that."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from testbed.store.store import Store
from testbed.store.verification import repair, verify


@pytest.fixture
def done(store: Store, samples: Any) -> int:
    return int(samples.completed(store, num_draws=2))


def flip(execute: Any, table: str, column: str, where: str) -> None:
    """Changes one byte in the middle of a value."""
    (value,) = execute(f"select {column} from {table} where {where}")[0]  # noqa: S608
    value = bytearray(value)
    value[len(value) // 2] ^= 1
    execute(f"update {table} set {column} = ? where {where}", bytes(value))  # noqa: S608


def test_a_sound_store_has_no_findings(store: Store, done: int) -> None:
    found = verify(store)
    assert (found.num_evaluations, found.num_shards, found.findings) == (1, 6, ())


@pytest.mark.parametrize(
    ("table", "column", "what"),
    [
        ("logit_payloads", "payload", r"logits \(checksum\)"),
        ("logit_shards", "predictions", "predictions or ranks"),
        ("logit_shards", "target_ranks", "predictions or ranks"),
    ],
)
def test_a_flipped_byte_is_named_and_only_its_shard_is_computed_again(
    store: Store, samples: Any, done: int, execute: Any, table: str, column: str, what: str
) -> None:
    flip(execute, table, column, "draw = 1 and start = 4")
    (finding,) = verify(store).findings
    assert (finding.evaluation_id, finding.shard) == (done, (1, 4))
    pattern = rf"'net' on 'data'\): {what} of draw 1, samples 4 to 8, are damaged"
    assert re.search(pattern, finding.text)
    assert repair(store, [finding]) == 1
    state = samples.take_up(store, num_draws=2)
    assert (state.id, state.status) == (done, "running")
    assert [(where.draw, where.start) for where in state.missing()] == [(1, 4)]
    samples.fill(store, state)
    store.complete_evaluation(done, [])
    assert verify(store).findings == ()
    assert store.evaluation_by_id(done).logits(1).tobytes() == samples.logits(1).tobytes()


def test_logits_that_are_gone_are_found(store: Store, done: int, execute: Any) -> None:
    execute("delete from logit_payloads where draw = 0 and start = 8")
    (finding,) = verify(store).findings
    assert "logits (they are gone) of draw 0, samples 8 to 10" in finding.text


def test_an_evaluation_that_lacks_pieces_is_not_complete(store: Store, samples: Any, done: int, execute: Any) -> None:
    execute("delete from logit_payloads where draw = 0")
    execute("delete from logit_shards where draw = 0")
    (finding,) = verify(store).findings
    assert "marked complete, but 3 of its planned pieces are not stored" in finding.text
    repair(store, [finding])
    assert len(samples.take_up(store, num_draws=2).missing()) == 3


@pytest.mark.parametrize("column", ["targets", "sample_ids"])
def test_damaged_targets_are_named_and_cannot_be_repaired(store: Store, done: int, execute: Any, column: str) -> None:
    flip(execute, "datasets", column, "1 = 1")
    (finding,) = verify(store).findings
    assert "Targets or sample ids of data set 'data' (test)" in finding.text
    assert finding.evaluation_id is None
    assert repair(store, [finding]) == 0
    assert store.evaluation_by_id(done).status == "complete"


def test_damaged_sample_indices_are_found(store: Store, samples: Any, execute: Any) -> None:
    samples.put_definitions(store, samples.setting(sample_indices=[3, 1, 2]))
    flip(execute, "setting_versions", "sample_indices", "1 = 1")
    (finding,) = verify(store).findings
    assert "sample indices of setting 'data'" in finding.text


def test_a_row_that_refers_to_nothing_and_a_torn_page_are_found(tmp_path: Path, samples: Any) -> None:
    """Both of SQLite alone: a server does not let it happen, or checks its own pages."""
    import sqlite3
    from contextlib import closing

    path = tmp_path / "store.sqlite"
    with Store.open(path) as store:
        samples.completed(store)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update evaluations set run_id = 77")
        connection.commit()
    with Store.open(path) as store:
        assert ["of table evaluations refers to a row of runs" in one.text for one in verify(store).findings] == [True]
    content = bytearray(path.read_bytes())
    content[5 * 65536 : 5 * 65536 + 200] = bytes(200)
    path.write_bytes(content)
    with Store.open(path) as store:
        assert any("damaged" in one.text for one in verify(store).findings)
