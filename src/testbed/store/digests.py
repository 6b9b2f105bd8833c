"""A digest per row, written with it and compared where it is read: what is not as it was written decides no number.

A statement that changes a row takes its digest away (see `schema`), and `seal`, at the end of each transaction that
writes, gives every row that has none its own. So a row without one was changed by somebody else. Digests are of a row
as one database holds it, ids included: they are never copied to another.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    bindparam,
    delete,
    func,
    literal,
    literal_column,
    null,
    select,
    true,
    type_coerce,
    union_all,
    update,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.types import NullType

from testbed.errors import StoreError
from testbed.store.schema import (
    datasets,
    eval_settings,
    evaluations,
    logit_shards,
    metadata,
    metrics,
    model_versions,
    models,
    published,
    separations,
    setting_versions,
)

# Large values have a checksum of their own beside them, which is covered. Every other column of these tables is.
KEPT_APART: Mapping[Table, tuple[str, ...]] = {
    datasets: ("targets", "sample_ids", "label_sets"),
    setting_versions: ("sample_indices",),
    logit_shards: ("predictions", "target_ranks"),
}
# Without digests: `locks` says who writes at this moment, and is no result; `meta` and `alembic_version` are compared
# with what the code knows whenever a database is opened; `logit_payloads` have their checksum in `logit_shards`.
DIGESTED: tuple[Table, ...] = tuple(table for table in metadata.sorted_tables if "digest" in table.c)
AT_ONCE = 1000  # rows
REMEDIES = {
    metrics: "`python db.py --verify --repair` computes it again.",
    separations: "`python db.py --verify --repair` takes it out, and the next run computes it again.",
    published: "Import its source again with --override, or restore the database from a copy.",
    logit_shards: "`python db.py --verify --repair` takes it out, and eval.py computes it again.",
}
_REMEDY = (
    "`python db.py --verify` names every such row. Restore the database from a copy, or remove and purge what the row "
    "is of and evaluate it again."
)


def seal(connection: Connection) -> None:
    """Gives every row that was written in this transaction its digest."""
    waiting = set(connection.scalars(_waiting()))
    damaged: list[int] = []
    if metrics.name in waiting:
        has_new = evaluations.c.id.in_(select(metrics.c.evaluation_id).where(metrics.c.digest.is_(None)))
        whole = has_new & evaluations.c.digest.is_not(None)
        damaged = [row.id for row in connection.execute(_covered(evaluations).where(whole)) if not _is_right(row)]
        reopen(connection, has_new)
        waiting.add(evaluations.name)
    if evaluations.name in waiting:
        unsealed = update(evaluations).where(evaluations.c.digest.is_(None))
        connection.execute(unsealed.values(num_metrics=num_metrics_of(evaluations).scalar_subquery()))
    for table in DIGESTED:
        if table.name in waiting:
            _seal(connection, table)
    if damaged:  # a new metric does not make the rest of the row right
        connection.execute(update(evaluations).where(evaluations.c.id.in_(damaged)).values(digest=_DAMAGED))


def _is_right(row: Row[Any]) -> bool:
    return bool(row.digest == digest_of(row))


def reopen(connection: Connection, where: ColumnElement[bool]) -> None:
    """Has the metrics of these evaluations counted again when the transaction ends: some are added or taken away."""
    connection.execute(update(evaluations).where(where).values(digest=null()))


def num_metrics_of(table: Any) -> Select[Any]:
    """How many metrics an evaluation has, as a query to correlate with the table of evaluations."""
    return select(func.count()).where(metrics.c.evaluation_id == table.c.id).correlate(table)


def check(connection: Connection, table: Table, where: ColumnElement[bool] | None = None) -> None:
    """Compares rows with their digests.

    Raises: StoreError: one is not as it was written; the message names it, and what to do.
    """
    is_being_written = connection.get_execution_options().get("is_writer", False)  # `seal` comes at the end of that
    for row in connection.execute(_covered(table).where(true() if where is None else where)):
        if row.digest != digest_of(row) and not (is_being_written and row.digest is None):
            raise StoreError(sentence(table, row))


def check_metrics(connection: Connection, evaluation_id: int) -> None:
    """Compares the metrics of an evaluation with their digests, and their number with what it was.

    Raises: StoreError: as `check`, or one is gone.
    """
    is_being_written = connection.get_execution_options().get("is_writer", False)
    rows = connection.execute(_metrics_of(), {"of": evaluation_id}).all()
    for row in rows:
        if row.digest != digest_of(row) and not (is_being_written and row.digest is None):
            raise StoreError(sentence(metrics, row))
    num_written = rows[0].in_all if rows else connection.scalar(_num_written(), {"of": evaluation_id})
    if not is_being_written and len(rows) != (num_written or 0):
        raise StoreError(
            f"Metrics of evaluation {evaluation_id} are gone from the store, or came from elsewhere. "
            f"{REMEDIES[metrics]}"
        )


def miscounts_metrics() -> ColumnElement[bool]:
    """Whether an evaluation has another number of metrics than it had when its transaction ended."""
    is_sealed = evaluations.c.digest.is_not(None)
    return is_sealed & evaluations.c.num_metrics.is_distinct_from(num_metrics_of(evaluations).scalar_subquery())


def check_evaluations(connection: Connection, ids: Iterable[int] | Select[Any]) -> None:
    """Compares evaluations, and the definitions that they are of, with their digests: each once per connection.

    Args: ids: of evaluations, or the query of them.
    Raises: StoreError: as `check`.
    """
    if isinstance(ids, Select):
        _check_evaluated(connection, evaluations.c.id.in_(ids))
        return
    known: set[int] = connection.info.setdefault("sound_evaluations", set())
    new = sorted(set(ids) - known)
    for start in range(0, len(new), AT_ONCE // 2):
        _check_evaluated(connection, evaluations.c.id.in_(new[start : start + AT_ONCE // 2]))
    known.update(new)


def _check_evaluated(connection: Connection, is_it: ColumnElement[bool]) -> None:
    model_ids = select(evaluations.c.model_version_id).where(is_it)
    setting_ids = select(evaluations.c.setting_version_id).where(is_it)
    check(connection, evaluations, is_it)
    check_models(connection, model_versions.c.id.in_(model_ids))
    check_settings(connection, setting_versions.c.id.in_(setting_ids))


def check_models(connection: Connection, where: ColumnElement[bool] | None = None) -> None:
    """Compares versions of models, and their names, with their digests. Raises: StoreError: as `check`."""
    of_versions = select(model_versions.c.model_id).where(true() if where is None else where)
    check(connection, model_versions, where)
    check(connection, models, models.c.id.in_(of_versions))


def check_settings(connection: Connection, where: ColumnElement[bool] | None = None) -> None:
    """Compares versions of settings, their names and data sets with their digests. Raises: StoreError: as `check`."""
    version, is_it = setting_versions.c, true() if where is None else where
    check(connection, setting_versions, where)
    check(connection, eval_settings, eval_settings.c.id.in_(select(version.setting_id).where(is_it)))
    check(connection, datasets, datasets.c.id.in_(select(version.dataset_id).where(is_it)))


def damaged_metrics(connection: Connection) -> set[int]:
    """The evaluations with a metric that is not as it was written."""
    return {row.evaluation_id for row in damaged_rows(connection, metrics) if not isinstance(row, str)}


def delete_damaged_metrics(connection: Connection, evaluation_ids: Collection[int]) -> None:
    """Takes out the metrics of these evaluations that are not as they were written, for others to take their place."""
    keys = [(row.evaluation_id, row.name) for row in damaged_rows(connection, metrics) if not isinstance(row, str)]
    for evaluation_id, name in keys:
        if evaluation_id in evaluation_ids:
            connection.execute(delete(metrics).filter_by(evaluation_id=evaluation_id, name=name))
    reopen(connection, evaluations.c.id.in_(evaluation_ids))


@contextmanager
def keeping_damage(connection: Connection, table: Table, ids: Sequence[int]) -> Iterator[None]:
    """Lets rows be changed that may be damaged: those that are have no right digest afterwards either."""
    found = {row.id for row in damaged_rows(connection, table) if not isinstance(row, str)}.intersection(ids)
    yield
    connection.execute(update(table).where(table.c.id.in_(found)).values(digest=_DAMAGED))


def damaged_rows(connection: Connection, table: Table) -> Iterator[Row[Any] | str]:
    """The rows that are not as they were written; one that cannot even be read as words for its place."""
    try:
        rows = connection.execute(_covered(table)).all()
    except SQLAlchemyError:  # text that is none: SQLite keeps it, and its driver gives up on the whole query
        yield from _damaged_one_by_one(connection, table)
    else:
        yield from (row for row in rows if row.digest != digest_of(row))


def _damaged_one_by_one(connection: Connection, table: Table) -> Iterator[Row[Any] | str]:
    place: ColumnElement[int] = literal_column(f"{table.name}.rowid")
    for number in connection.scalars(select(place).select_from(table).order_by(place)).all():
        try:
            row = connection.execute(_covered(table).where(place == number)).one()
        except SQLAlchemyError:
            yield f"number {number}"
        else:
            if row.digest != digest_of(row):
                yield row


def first_damage(connection: Connection) -> str | None:
    """A sentence for the first row that is not as it was written; None where all are."""
    for table in DIGESTED:
        for row in damaged_rows(connection, table):
            return sentence(table, row)
    return _first_unreadable(connection)


def _first_unreadable(connection: Connection) -> str | None:
    """A sentence for the first of the large values that is not of its type; None where all are."""
    for table, names in KEPT_APART.items():
        for row in connection.execute(_covered(table)).all():
            is_it = [key == row._mapping[key.name] for key in table.primary_key]
            try:
                connection.execute(select(*table.c[names]).where(*is_it)).one()
            except Exception:  # each type has errors of its own
                return sentence(table, row)
    return None


def sentence(table: Table, row: Row[Any] | str) -> str:
    """What is said of a damaged row: which one, and what to do."""
    return f"{place_of(table, row)} is not as it was written. {REMEDIES.get(table, _REMEDY)}"


def place_of(table: Table, row: Row[Any] | str) -> str:
    """A row in words."""
    if isinstance(row, str):
        return f"Row {row} of table {table.name}"
    names = [column.name for column in table.primary_key] + [name for name in _LABELS if name in table.c]
    told = ", ".join(f"{name} {row._mapping[name]!r}" for name in dict.fromkeys(names))
    return f"The row of table {table.name} with {told}"


_DAMAGED = "damaged"
_LABELS = ("name", "source", "model", "eval_setting", "dataset", "splits", "norm", "space", "metric")


def digest_of(row: Row[Any]) -> str:
    """SHA-256 (hex) of the covered values of a row of `_covered`, as the database's driver hands them out."""
    values = [value for name, value in row._mapping.items() if name not in ("digest", "in_all")]
    return hashlib.sha256(json.dumps(values, default=_plain).encode()).hexdigest()


def _plain(value: Any) -> str:
    """What is no JSON: moments, in whatever time zone a server tells them, and bytes where no bytes belong."""
    if isinstance(value, datetime):
        return (value if value.tzinfo is None else value.astimezone(UTC)).isoformat()
    return repr(value)


@cache
def _covered(table: Table) -> Select[Any]:
    """The covered values of rows as the driver hands them out, and their digest: what no type can read is read too."""
    apart = (*KEPT_APART.get(table, ()), "digest")
    columns = [column for column in table.c if column.name not in apart]
    raw: list[ColumnElement[Any]] = [type_coerce(column, NullType()).label(column.name) for column in columns]
    return select(*raw).add_columns(table.c.digest)


@cache
def _metrics_of() -> Select[Any]:
    """The covered values of the metrics of an evaluation, each with how many there were when they were written."""
    is_its = metrics.c.evaluation_id == bindparam("of")
    return _covered(metrics).where(is_its).add_columns(_num_written().scalar_subquery().label("in_all"))


@cache
def _num_written() -> Select[Any]:
    return select(evaluations.c.num_metrics).where(evaluations.c.id == bindparam("of"))


@cache
def _waiting() -> Any:
    """Names of the tables in which rows have no digest."""
    without = [(table, select(table.c.digest).where(table.c.digest.is_(None))) for table in DIGESTED]
    return union_all(*(select(literal(table.name)).where(rows.exists()) for table, rows in without))


def _seal(connection: Connection, table: Table) -> None:
    keys = list(table.primary_key)
    is_it = [column == bindparam(f"of_{column.name}") for column in keys]
    change = update(table).where(*is_it).values(digest=bindparam("new_digest"))
    while rows := connection.execute(_covered(table).where(table.c.digest.is_(None)).limit(AT_ONCE)).all():
        new = [
            {"new_digest": digest_of(row), **{f"of_{key.name}": row._mapping[key.name] for key in keys}} for row in rows
        ]
        if connection.execute(change, new).rowcount == 0:
            break  # a damaged key that no row can be found by: `damaged_rows` names it
