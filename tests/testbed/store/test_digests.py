"""What is not as it was written decides no number: every column of every row is compared, where it is read too."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.testbed.store.conftest import Samples

from testbed import metric_check
from testbed.errors import StoreError
from testbed.model_types import PublishedType
from testbed.records import EvaluationKey, PublishedResult, Separation
from testbed.results import store_comparison, store_metrics
from testbed.store import admin, merge, rename, verification
from testbed.store.digests import DIGESTED, KEPT_APART
from testbed.store.published_models import put_types
from testbed.store.schema import metadata, metrics
from testbed.store.store import Store

SEPARATION: dict[str, Any] = {
    "dataset": "data", "splits": ("train", "test"), "data_fingerprint": "d" * 64, "norm": "linf", "space": "8 px",
}  # fmt: skip
# Kept in memory as bytes or lists; each has a checksum in a column beside it, which is covered.
APART = {"datasets": {"targets", "sample_ids", "label_sets"}, "setting_versions": {"sample_indices"},
         "logit_shards": {"predictions", "target_ranks"}}  # fmt: skip
COLUMNS = [(table.name, column.name) for table in DIGESTED for column in table.c]


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database file with a row in every table that has digests."""
    path = tmp_path_factory.mktemp("full") / "store.sqlite"
    with Store.open(path) as store:
        fill(store, Samples())
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "store.sqlite"
    path.write_bytes(content)
    return path


def fill(store: Store, samples: Any) -> None:
    noise = samples.setting("noise", shift=samples.shift, spec={"shift": None})
    samples.put_definitions(store, samples.setting(), noise)
    run = store.start_run({"host": "here", "argv": ["eval.py"]})
    clean, shifted = (evaluated(store, samples, samples.key(setting=s), run) for s in (samples.setting(), noise))
    store_comparison(store, store.evaluation_by_id(shifted), store.evaluation_by_id(clean))
    store.finish_run(run, 0)
    found = Separation(norm="linf", min_distance=0.5, pair=(1, 2), num_points=10)
    store.put_separation(found, **SEPARATION, pair_ids=("test/1", "test/2"))
    number = {"source_sha256": "f" * 64, "model": "net", "eval_setting": "val", "metric": "top1", "protocol": "p"}
    store.put_published([PublishedResult(source="paper", value=76.1, **number)])
    with store.writing() as connection:
        put_types(connection, [PublishedType(source="paper", source_sha256="f", model="net", model_type="STANDARD")])


def evaluated(store: Store, samples: Any, key: EvaluationKey, run: int) -> int:
    state = store.put_evaluation(key, num_draws=1, num_samples=10, shard_size=4, run_id=run)
    samples.fill(store, state)
    store_metrics(store, state.id)
    return state.id


def change(path: Path, table: str, column: str, value: object = None) -> None:
    """Changes a column of the first row behind the store's back: to a value, or to any other one."""
    with closing(sqlite3.connect(path)) as connection:
        place = connection.execute(f"select rowid from {table} where {column} is not null").fetchone()  # noqa: S608
        where = f"rowid = (select min(rowid) from {table})" if place is None else f"rowid = {place[0]}"  # noqa: S608
        (before,) = connection.execute(f"select {column} from {table} where {where}").fetchone()  # noqa: S608
        after = another(before) if value is None else value
        connection.execute(f"update {table} set {column} = ? where {where}", (after,))  # noqa: S608
        connection.commit()


def another(value: object) -> object:
    if isinstance(value, int):
        return 1 - value if value in (0, 1) else value + 1
    if isinstance(value, float):
        return value / 2
    return "9" if value is None else f"{value}9"


def texts(path: Path) -> list[str]:
    with Store.open(path, read_only=True) as store:
        return [finding.text for finding in metric_check.verify(store).findings]


def test_what_has_no_digest_is_looked_at_otherwise() -> None:
    assert set(metadata.tables) - {table.name for table in DIGESTED} == {"locks", "meta", "logit_payloads"}
    assert {table.name: set(columns) for table, columns in KEPT_APART.items()} == APART


def test_a_store_is_as_it_was_written(path: Path) -> None:
    assert texts(path) == []


@pytest.mark.parametrize(("table", "column"), [c for c in COLUMNS if c[1] not in APART.get(c[0], ())])
def test_a_change_of_any_column_is_named_by_its_row(path: Path, table: str, column: str) -> None:
    if (table, column) == ("evaluations", "status"):
        change(path, table, column, "failed")  # SQLite takes no status that there is not
    else:
        change(path, table, column)
    found = texts(path)
    where = "Evaluation" if table == "logit_shards" else f"The row of table {table} with "
    assert [text for text in found if where in text], found


READS: dict[str, Callable[[Store], Any]] = {
    "models": Store.list_models,
    "model_versions": Store.list_models,
    "datasets": Store.list_settings,
    "eval_settings": Store.list_settings,
    "setting_versions": Store.list_settings,
    "evaluations": Store.list_evaluations,
    "metrics": lambda store: [one.metrics() for one in store.list_evaluations()],
    "logit_shards": lambda store: [one.predictions() for one in store.list_evaluations()],
    "runs": lambda store: [one.provenance for one in store.list_evaluations()],
    "separations": lambda store: store.get_separation(**SEPARATION),
    "published": lambda store: store.results(published=["paper"]),
    "published_models": Store.published_types,
}
READ_COLUMNS = {
    "models": "label_space", "model_versions": "spec", "datasets": "class_names", "eval_settings": "created_at",
    "setting_versions": "shift_epsilon", "evaluations": "noise_seed", "metrics": "ci_high",
    "logit_shards": "num_outputs", "runs": "devices", "separations": "min_distance", "published": "value",
    "published_models": "model_type",
}  # fmt: skip


@pytest.mark.parametrize("table", READS)
def test_a_row_is_compared_where_it_is_read(path: Path, table: str) -> None:
    change(path, table, READ_COLUMNS[table])
    with Store.open(path, read_only=True) as store:
        with pytest.raises(StoreError, match=rf"table {table} with .*db\.py --verify|Import its source again"):
            READS[table](store)


@pytest.mark.parametrize("table", ["models", "model_versions", "setting_versions", "evaluations", "datasets"])
def test_the_long_table_compares_what_it_labels_numbers_with(path: Path, table: str) -> None:
    change(path, table, READ_COLUMNS[table])
    with Store.open(path, read_only=True) as store:
        with pytest.raises(StoreError, match=f"table {table}"):
            store.results()


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("evaluations", "created_at", "the day before"),
        ("evaluations", "numerics", "{broken"),
        ("evaluations", "n", "many"),
        ("evaluations", "noise_seed", 2**62),
        ("models", "name", b"\xff\xfe"),
        ("metrics", "value", "high"),
        ("metrics", "detail", "[1"),
        ("datasets", "class_names", "null"),
        ("setting_versions", "shift_severity", 9),
        ("setting_versions", "spec", "7"),
    ],
)
def test_a_cell_that_no_type_can_read_is_one_sentence_about_its_row(
    path: Path, table: str, column: str, value: object
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        text = "cast(? as text)" if isinstance(value, bytes) else "?"
        connection.execute(f"update {table} set {column} = {text}", (value,))  # noqa: S608
        connection.commit()
    for read in (Store.results, READS["metrics"]):
        with Store.open(path, read_only=True) as store, pytest.raises(StoreError, match=f"of table {table}"):
            read(store)
    assert any(f"of table {table}" in text for text in texts(path))


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("datasets", "targets", 5),
        ("datasets", "targets", "text"),
        ("datasets", "sample_ids", "text"),
        ("datasets", "label_sets", "[[NaN]]"),
        ("logit_shards", "predictions", 0.5),
        ("logit_shards", "target_ranks", b"odd"),
    ],
)
def test_a_large_value_of_another_kind_is_one_sentence(path: Path, table: str, column: str, value: object) -> None:
    change(path, table, column, value)
    with Store.open(path, read_only=True) as store:
        found = store.evaluation_by_id(1)
        with pytest.raises(StoreError, match=f"data set 'data'|of table {table}"):
            assert (found.sample_ids(), found.targets(), found.predictions()) is None
    assert [text for text in texts(path) if "data set 'data'" in text or "Evaluation 1 " in text]


def test_comparisons_that_are_gone_are_noticed_and_made_again(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("delete from metrics where reference_evaluation_id is not null")
        connection.commit()
    with Store.open(path) as store:
        (finding,) = metric_check.verify(store).findings
        assert "Metrics of evaluation 2 are gone" in finding.text
        with pytest.raises(StoreError, match="evaluation 2 are gone"):
            store.evaluation_by_id(2).comparisons()
        assert metric_check.repair(store, [finding]) == 1
        (compared,) = store.evaluation_by_id(2).comparisons().values()
        assert {value.name for value in compared} == {"mscr", "loss", "recovery"}
    assert texts(path) == []


def test_a_damaged_separation_is_taken_out_by_a_repair_and_can_be_stored_again(path: Path) -> None:
    change(path, "separations", "min_distance")
    found = Separation(norm="linf", min_distance=0.25, pair=(1, 2), num_points=10)
    with Store.open(path) as store:
        with pytest.raises(StoreError, match="table separations"):
            store.put_separation(found, **SEPARATION, pair_ids=("test/1", "test/2"), detail={"witness": 1})
        (finding,) = metric_check.verify(store).findings
        assert finding.can_be_mended
        verification.repair(store, [finding])
        assert store.get_separation(**SEPARATION) is None


def test_what_is_damaged_stays_so_when_it_is_hidden_and_shown(path: Path) -> None:
    change(path, "evaluations", "noise_seed")
    with Store.open(path) as store:
        admin.remove_evaluations(store, model="net", setting="data")
        admin.restore(store, "net")
        with pytest.raises(StoreError, match="table evaluations with id 1 "):
            store.list_evaluations()
        admin.remove(store, "model", "net")
        admin.purge(store)
    assert texts(path) == [], "what is removed for good is no longer in the way"


def test_what_the_testbed_itself_changes_has_digests_of_what_it_is_now(path: Path, samples: Any) -> None:
    def check(what: str) -> None:
        assert texts(path) == [], what

    with Store.open(path) as store:
        rename.rename_model(store, "net", "other")
        rename.rename_setting(store, "data", "clean")
        check("renamed")
        admin.remove(store, "model", "other")
        admin.restore(store, "other")
        check("removed and restored")
        store.put_model(samples.model("other", spec={"width": 9}))
        store.set_model_facts(samples.model("other", spec={"width": 9}).fingerprint, weights_sha256="a", num_outputs=3)
        check("defined anew")
        admin.remove(store, "eval-setting", "clean")
        admin.purge(store)
        check("purged, with comparisons")
        assert store.evaluation_by_id(2).comparisons() == {}


def test_rows_of_another_store_get_digests_of_their_own(path: Path, tmp_path: Path, samples: Any) -> None:
    with Store.open(tmp_path / "ours.sqlite") as ours, Store.open(path, read_only=True) as theirs:
        store_metrics(ours, samples.completed(ours, samples.key(fit_seed=3)))  # so that ids differ
        merge.merge(ours, theirs)
    assert texts(tmp_path / "ours.sqlite") == []


def test_a_damaged_row_is_not_taken_over_by_a_merge(path: Path, tmp_path: Path) -> None:
    change(path, "separations", "min_distance")
    with Store.open(tmp_path / "ours.sqlite") as ours, Store.open(path, read_only=True) as theirs:
        with pytest.raises(StoreError, match="table separations"):
            merge.merge(ours, theirs)


def test_a_new_metric_does_not_make_a_damaged_evaluation_right(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update evaluations set attempts = attempts + 7 where id = 1")
        connection.commit()
    with Store.open(path) as store:
        with store.writing() as connection:
            row = {"evaluation_id": 1, "name": "own", "value": 1.0, "method": "", "n": 1, "reason": "", "detail": {}}
            connection.execute(metrics.insert().values(**row))
        (finding,) = verification.verify(store).findings
    assert "table evaluations with id 1" in finding.text


def test_what_was_compared_with_a_rejected_evaluation_stays_whole(path: Path) -> None:
    with Store.open(path) as store:
        (clean,) = store.evaluation_by_id(2).comparisons()
        store.reject_evaluation(clean, "its answers changed")
        assert texts(path) == []
        assert store.evaluation_by_id(2).comparisons() == {}
        assert store.evaluation_by_id(clean).metrics() == []
