"""The database of evaluations: `open_store` is the way in from a notebook or a script."""

from __future__ import annotations

from pathlib import Path

from testbed.store.store import Store


def open_store(url: str | Path, read_only: bool = True) -> Store:
    """The store at `url`, for look-ups: `.results()`, `.list_models()`, `.evaluation(model, setting, seed)` and others.

    Nothing larger than a name and a number is read before it is asked for. Use it in a `with` block, or close it.

    Args:
        url: the path of an SQLite file, `sqlite:///FILE`, or `postgresql+psycopg://...`.
        read_only: refuse every write; otherwise a store that does not exist is made.
    Raises: StoreError: there is no such database, or it is another program's or another version's.
    """
    return Store.open(url, read_only=read_only, create=not read_only)
