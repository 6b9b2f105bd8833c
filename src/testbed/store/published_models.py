"""What sources of published numbers tell of their models: the types that figures colour them by."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select

from testbed.errors import StoreError
from testbed.model_types import PublishedType
from testbed.store import digests
from testbed.store.schema import published_models

_FIELDS = ("source", "source_sha256", "model", "model_type")


def put_types(connection: Connection, types: Sequence[PublishedType], *, override: bool = False) -> int:
    """Stores the types of models of one source; returns how many are new or changed. What is there stays as it is.

    Args:
        types: no model twice.
        override: let types that differ replace the stored ones.
    Raises: StoreError: a model is stored with another type, and `override` is not given. Nothing is stored then.
    """
    known = {(one.source, one.model): one.model_type for one in list_types(connection)}
    changed = [one for one in types if known.get((one.source, one.model), one.model_type) != one.model_type]
    if changed and not override:
        first = changed[0]
        raise StoreError(
            f"{len(changed)} of the models are stored with another type under the source '{first.source}', the first "
            f"is '{first.model}': {known[first.source, first.model]}, now {first.model_type}. "
            "Give another --source, or --override to replace the stored ones."
        )
    mine = published_models.c
    for one in changed:
        connection.execute(delete(published_models).where(mine.source == one.source, mine.model == one.model))
    new = [*changed, *(one for one in types if (one.source, one.model) not in known)]
    if new:
        connection.execute(insert(published_models), [{name: getattr(one, name) for name in _FIELDS} for one in new])
    return len(new)


def list_types(connection: Connection) -> list[PublishedType]:
    """What is known of the models of all sources, by source and model."""
    digests.check(connection, published_models)
    found = connection.execute(select(*published_models.c[_FIELDS])).all()
    return [PublishedType(**row._mapping) for row in sorted(found, key=lambda row: (row.source, row.model))]
