"""Numbers that others published: beside our own, never among them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, insert, select

from testbed.errors import StoreError, UnknownNameError, suggestion
from testbed.records import PublishedResult
from testbed.store import digests
from testbed.store.schema import published

KEY = ("source", "model", "input_size", "eval_setting", "metric", "protocol")
_FIELDS = (*KEY, "value", "flag", "source_sha256")
UNKNOWN_SIZE = 0  # in the table; no two NULLs are equal, and the size is part of the key

Key = tuple[Any, ...]


def put_published(connection: Connection, results: Sequence[PublishedResult], *, override: bool = False) -> int:
    """Stores the results of one source; returns how many are new or changed. What is there already stays as it is.

    Args:
        override: let numbers that differ replace the stored ones.
    Raises: StoreError: a number is stored with another value, and `override` is not given. Nothing is stored then.
    """
    stored = {_key(row): row for row in connection.execute(_stored({result.source for result in results}))}
    rows = [_row(result) for result in results]
    changed = [row for row in rows if (before := stored.get(_row_key(row))) is not None and _differs(before, row)]
    if changed and not override:
        first = changed[0]
        raise StoreError(
            f"{len(changed)} of the numbers are stored with another value under the source '{first['source']}', the "
            f"first is {first['metric']} of '{first['model']}' on '{first['eval_setting']}': "
            f"{stored[_row_key(first)].value}, now {first['value']}. "
            "Give another --source, or --override to replace the stored ones."
        )
    for row in changed:
        connection.execute(delete(published).where(published.c.id == stored[_row_key(row)].id))
    new = [*changed, *(row for row in rows if _row_key(row) not in stored)]
    if new:
        connection.execute(insert(published), new)
    return len(new)


def list_published(connection: Connection, sources: Collection[str]) -> list[PublishedResult]:
    """All numbers of the sources, by source, model, size, setting and metric.

    Raises: UnknownNameError: nothing was imported under one of the names.
    """
    _check_sources(connection, sources)
    rows = sorted(connection.execute(_stored(sources)), key=_key)
    return [_result(row) for row in rows]


def numbers_of(
    connection: Connection, sources: Collection[str], settings: Collection[str] | None = None
) -> Select[Any]:  # fmt: skip
    """The query of all numbers of the sources, in any order: the columns of the table but its id and moment.

    Args: settings: only these; all if None.
    Raises: UnknownNameError: nothing was imported under one of the names.
    """
    _check_sources(connection, sources)
    wanted = select(*published.c[_FIELDS]).where(published.c.source.in_(sources))
    return wanted if settings is None else wanted.where(published.c.eval_setting.in_(settings))


def _check_sources(connection: Connection, sources: Collection[str]) -> None:
    known = list_sources(connection)
    digests.check(connection, published, published.c.source.in_(sources))
    for name in sources:
        if name not in known:
            listed = f"Imported: {', '.join(known)}." if known else "Nothing was imported; see db.py --import-csv."
            told = filter(None, [f"There is no published source '{name}'.", suggestion(name, known), listed])
            raise UnknownNameError(" ".join(told))


def list_sources(connection: Connection) -> list[str]:
    """Names under which numbers were imported."""
    return sorted(connection.scalars(select(published.c.source).distinct()))


def list_published_settings(connection: Connection, sources: Collection[str]) -> list[str]:
    """Names of the settings that the sources have numbers of.

    Raises: UnknownNameError: nothing was imported under one of the names.
    """
    _check_sources(connection, sources)
    found = select(published.c.eval_setting).where(published.c.source.in_(sources), published.c.value.is_not(None))
    return sorted(connection.scalars(found.distinct()))


def _stored(sources: Collection[str]) -> Any:
    return select(published.c.id, *published.c[_FIELDS]).where(published.c.source.in_(sources))


def _row(result: PublishedResult) -> dict[str, Any]:
    row = {name: getattr(result, name) for name in _FIELDS}
    return {**row, "input_size": result.input_size or UNKNOWN_SIZE}


def _result(row: Row[Any]) -> PublishedResult:
    fields = {name: getattr(row, name) for name in _FIELDS}
    return PublishedResult(**{**fields, "input_size": row.input_size or None})


def _key(row: Row[Any]) -> Key:
    return tuple(getattr(row, name) for name in KEY)


def _row_key(row: dict[str, Any]) -> Key:
    return tuple(row[name] for name in KEY)


def _differs(before: Row[Any], row: dict[str, Any]) -> bool:
    return bool(before.value != row["value"] or before.flag != row["flag"])
