"""Whatever byte of a result changes is found and named, and what can be computed again is opened for that."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from testbed import metric_check
from testbed.errors import StoreError
from testbed.results import store_comparison, store_metrics
from testbed.store.store import Store
from testbed.store.verification import Finding, repair, verify


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
    assert "Targets, sample ids or label sets of data set 'data' (test)" in finding.text
    assert finding.evaluation_id is None
    assert repair(store, [finding]) == 0
    assert store.evaluation_by_id(done).status == "complete"


def test_damaged_sample_indices_are_found(store: Store, samples: Any, execute: Any) -> None:
    samples.put_definitions(store, samples.setting(sample_indices=[3, 1, 2]))
    flip(execute, "setting_versions", "sample_indices", "1 = 1")
    (finding,) = verify(store).findings
    assert "sample indices of setting 'data'" in finding.text


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("codec = 'nonsense'", r"logits \(unknown codec 'nonsense'\)"),
        ("codec = 'f32+shuffle+zlib'", r"logits \(3 outputs as 'f32\+shuffle\+zlib': .*\)"),
        ("codec = 'topk:2'", r"logits \(.*\)"),
        ("num_outputs = 5", r"logits \(5 outputs as 'f32': .*\)"),
        ("num_outputs = 4", r"logits \(of 3 samples with 4 outputs\)"),
        ("num_outputs = 0", r"logits \(0 outputs as 'f32': .*\)"),
    ],
)
def test_logits_that_are_not_what_their_shard_says_are_found(
    store: Store, samples: Any, done: int, execute: Any, change: str, what: str
) -> None:
    execute(f"update logit_shards set {change} where draw = 1 and start = 4")  # noqa: S608
    (finding,) = verify(store).findings
    assert re.search(rf"Evaluation {done} .*: {what} of draw 1, samples 4 to 8, are damaged", finding.text)
    assert repair(store, [finding]) == 1
    assert len(samples.take_up(store, num_draws=2).missing()) == 1


@pytest.mark.parametrize(
    ("table", "column", "what"),
    [
        ("logit_payloads", "payload", "logits (checksum)"),
        ("logit_shards", "predictions", "predictions or ranks"),
    ],
)
def test_a_text_in_place_of_bytes_is_a_finding(
    tmp_path: Path, samples: Any, table: str, column: str, what: str
) -> None:
    """Of SQLite alone: a server keeps its types."""
    import sqlite3
    from contextlib import closing

    path = tmp_path / "store.sqlite"
    with Store.open(path) as store:
        done = samples.completed(store)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"update {table} set {column} = 'text' where start = 4")  # noqa: S608
        connection.commit()
    with Store.open(path) as store:
        (finding,) = metric_check.verify(store).findings
        assert f"{what} of draw 0, samples 4 to 8, are damaged" in finding.text
        assert (finding.evaluation_id, finding.shard) == (done, (0, 4))
        assert repair(store, [finding]) == 1


def test_draws_beyond_the_planned_ones_are_found_and_taken_up_again(
    store: Store, samples: Any, done: int, rewrite: Any
) -> None:
    rewrite("update evaluations set num_draws = 1")
    (finding,) = verify(store).findings
    assert "has 1 planned draw(s), but 1 more are stored as a whole" in finding.text
    assert repair(store, [finding]) == 1
    assert samples.take_up(store, num_draws=2).missing() == [], "what is stored need not be computed again"
    store.complete_evaluation(done, [])
    assert verify(store).findings == ()


def test_an_interrupted_draw_that_is_no_longer_asked_for_is_sound(store: Store, samples: Any) -> None:
    state = samples.begin(store, num_draws=2)
    store.put_shards((state.id, samples.shard(where)) for where in state.missing()[:4])
    assert samples.take_up(store, num_draws=1).missing() == []
    store.complete_evaluation(state.id, [])
    assert verify(store).findings == ()


def test_a_piece_off_the_grid_is_found(store: Store, done: int, execute: Any) -> None:
    execute("update evaluations set shard_size = 8")
    texts = [finding.text for finding in verify(store).findings]
    assert any("samples 4 to 8 of draw 1 are no piece of what was planned" in text for text in texts)


@pytest.mark.parametrize(
    ("statement", "what"),
    [("drop table metrics", "no table 'metrics'"), ("alter table metrics drop column ci_low", "'metrics.ci_low'")],
)
def test_a_missing_table_or_column_is_one_sentence(
    store: Store, done: int, execute: Any, statement: str, what: str
) -> None:
    execute(statement)
    with pytest.raises(StoreError, match=what):
        metric_check.verify(store)


@pytest.fixture
def compared(store: Store, samples: Any) -> int:
    """A shifted evaluation with all its metrics, compared with its clean parent."""
    setting = samples.setting("noise", shift=samples.shift)
    samples.put_definitions(store, samples.setting(), setting)
    clean = samples.completed(store)
    shifted = samples.completed(store, samples.key(setting=setting), num_draws=2)
    for evaluation_id in (clean, shifted):
        store_metrics(store, evaluation_id)
    store_comparison(store, store.evaluation_by_id(shifted), store.evaluation_by_id(clean))
    return int(shifted)


CHANGED_METRICS = (
    "update metrics set value = value + 10 where name = 'top1' and evaluation_id = {}",
    "update metrics set value = null where name = 'top1' and evaluation_id = {}",
    "update metrics set ci_low = ci_low - 1e-3 where name = 'balanced_accuracy' and evaluation_id = {}",
    "update metrics set ci_high = 1 where name = 'worst_class_accuracy' and evaluation_id = {}",
    "update metrics set n = 7 where name = 'top5' and evaluation_id = {}",
    "update metrics set value = 3 where name = 'mscr' and evaluation_id = {}",
    "update metrics set n = 7 where name = 'recovery' and evaluation_id = {}",
    "delete from metrics where name = 'loss' and evaluation_id = {}",
    "delete from metrics where name = 'top1' and evaluation_id = {}",
    "delete from metrics where reference_evaluation_id is null and evaluation_id = {}",
    "update metrics set method = 'guess' where name = 'top1' and evaluation_id = {}",
    "update metrics set reason = 'none' where name = 'top5' and evaluation_id = {}",
)


@pytest.mark.parametrize("change", CHANGED_METRICS)
def test_metrics_that_are_not_those_of_the_predictions_are_found_and_mended(
    store: Store, compared: int, execute: Any, rewrite: Any, change: str
) -> None:
    wanted = "select name, value, ci_low, ci_high, n, method, reason from metrics order by evaluation_id, name"
    before = execute(wanted)
    rewrite("update evaluations set hidden = ?", "top1" in change)  # what was removed can be restored
    assert metric_check.verify(store).findings == ()
    rewrite(change.format(compared))
    (finding,) = metric_check.verify(store).findings
    pattern = (
        r"^Metrics of net on noise \(evaluation \d+\) are not those of its predictions; db.py --recompute mends it"
    )
    assert re.search(pattern, finding.text)
    check_mending(store, compared, finding)
    assert execute(wanted) == before


def test_intervals_of_the_worst_class_by_the_former_method_are_sound_and_their_values_checked(
    store: Store, compared: int, rewrite: Any
) -> None:
    former = "update metrics set method = 'wilson; Bonferroni over 3 classes', {} where name = 'worst_class_accuracy'"
    rewrite(former.format("ci_high = 99"))
    assert metric_check.verify(store).findings == ()
    rewrite(former.format("value = value + 1"))
    assert len(metric_check.verify(store).findings) == 2
    assert compared


def check_mending(store: Store, evaluation_id: int, *findings: Finding) -> None:
    for finding in findings:
        assert (finding.metrics_of, finding.evaluation_id, finding.can_be_mended) == (evaluation_id, None, True)
    assert repair(store, findings) == 0, "nothing is evaluated again"
    assert metric_check.repair(store, findings) == 1
    assert metric_check.verify(store).findings == ()


@pytest.mark.parametrize(
    "change",
    [
        *CHANGED_METRICS,
        "update metrics set detail = '{{}}' where name = 'worst_class_accuracy' and evaluation_id = {}",
        "update metrics set reference_evaluation_id = evaluation_id where name = 'loss' and evaluation_id = {}",
        "update metrics set name = 'losses' where name = 'loss' and evaluation_id = {}",
        "delete from metrics where reference_evaluation_id is not null and evaluation_id = {}",
    ],
)
def test_metrics_that_are_not_as_they_were_written_are_named_and_computed_again(
    store: Store, compared: int, execute: Any, change: str
) -> None:
    wanted = "select name, value, ci_low, ci_high, n, method, reason from metrics order by evaluation_id, name"
    before = execute(wanted)
    execute(change.format(compared))
    findings = metric_check.verify(store).findings
    for finding in findings:
        assert re.search(rf"(evaluation_id|Metrics of evaluation) {compared}\b.*db\.py --verify --repair", finding.text)
    check_mending(store, compared, *findings)
    assert execute(wanted) == before


def test_a_complete_evaluation_without_metrics_is_found(store: Store, compared: int, execute: Any) -> None:
    execute("delete from metrics")
    assert len(metric_check.verify(store).findings) == 2


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
        texts = [finding.text for finding in verify(store).findings]
        assert [text for text in texts if "of table evaluations refers to a row of runs" in text]
        assert [text for text in texts if "table evaluations with id 1 is not as it was written" in text]
        assert len(texts) == 2
    content = bytearray(path.read_bytes())
    content[5 * 65536 : 5 * 65536 + 200] = bytes(200)
    path.write_bytes(content)
    with Store.open(path) as store:
        assert any("damaged" in one.text for one in verify(store).findings)
