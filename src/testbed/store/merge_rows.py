"""Rows that are what they are under their key: separations of data sets, and what others published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Table, select, update

from testbed.store import digests
from testbed.store.database import insert_new
from testbed.store.findings import SEPARATION_RESULT
from testbed.store.merge_report import MergeReport
from testbed.store.reader import Reader
from testbed.store.schema import published, published_models, separations
from testbed.store.store import Store

Key = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A table whose rows have a key and a content.

    Args:
        what: a row in words, with its columns as fields.
        plural: many rows, in words.
    """

    table: Table
    key: tuple[str, ...]
    content: tuple[str, ...]
    what: str
    plural: str


SEPARATIONS = Kind(
    table=separations,
    key=("dataset", "splits", "data_fingerprint", "norm", "space"),
    content=SEPARATION_RESULT,
    what="the {norm} separation of '{dataset}' ({splits}, {space})",
    plural="separations",
)
FINDINGS = (
    SEPARATIONS,
    Kind(
        table=published,
        key=("source", "model", "input_size", "eval_setting", "metric", "protocol"),
        content=("value", "flag"),
        what="{metric} of '{model}' on '{eval_setting}' as published by '{source}'",
        plural="published numbers",
    ),
    Kind(
        table=published_models,
        key=("source", "model"),
        content=("model_type",),
        what="the type of '{model}' as told by '{source}'",
        plural="types of published models",
    ),
)


def merge_findings(ours: Store, theirs: Reader, report: MergeReport, *, is_dry_run: bool) -> None:
    """Takes over separations and what others published; one that is here with another content is a conflict."""
    for kind in FINDINGS:
        with ours.reading() as here, theirs.reading() as there:
            new, differing = compare(kind, here, there)
        report.add(kind.plural, len(new))
        report.conflicts += [f"{kind.what.format(**row)} differs" for row in differing]
        if new and not is_dry_run:
            with ours.writing() as connection:
                insert_new(connection, kind.table, new)
    _merge_details(ours, theirs, report, is_dry_run=is_dry_run)


def _merge_details(ours: Store, theirs: Reader, report: MergeReport, *, is_dry_run: bool) -> None:
    """Adds what only the other store knows of a separation that both have."""
    with ours.reading() as here, theirs.reading() as there:
        names = (*SEPARATIONS.key, *SEPARATIONS.content)
        known = {_part(row, names): row for row in _rows(SEPARATIONS, here, ("id", *names, "detail"))}
        pairs = [(known.get(_part(row, names)), row.detail) for row in _rows(SEPARATIONS, there, (*names, "detail"))]
    gained = {row.id: {**detail, **row.detail} for row, detail in pairs if row and detail.keys() - row.detail.keys()}
    report.add("details of separations", len(gained))
    if gained and not is_dry_run:
        with ours.writing() as connection:
            for row_id, detail in gained.items():
                connection.execute(update(separations).where(separations.c.id == row_id).values(detail=detail))


def compare(kind: Kind, here: Connection, there: Connection) -> tuple[list[dict[str, Any]], list[Mapping[str, Any]]]:
    """The rows that are only there, without their ids, and those that are here with another content."""
    known = {_part(row, kind.key): _part(row, kind.content) for row in _rows(kind, here, (*kind.key, *kind.content))}
    new: list[dict[str, Any]] = []
    differing: list[Mapping[str, Any]] = []
    for row in _rows(kind, there, [column.name for column in kind.table.c if column.name not in ("id", "digest")]):
        content = known.get(_part(row, kind.key))
        if content is None:
            new.append(dict(row._mapping))
        elif content != _part(row, kind.content):
            differing.append(dict(row._mapping))
    return new, differing


def _rows(kind: Kind, connection: Connection, names: Sequence[str]) -> Sequence[Row[Any]]:
    digests.check(connection, kind.table)
    return connection.execute(select(*(kind.table.c[name] for name in names)).order_by(kind.table.c.id)).all()


def _part(row: Row[Any], names: Sequence[str]) -> Key:
    return tuple(getattr(row, name) for name in names)
