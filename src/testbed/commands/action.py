"""What the actions of `db.py` share: their options, the store they work on, the registry, and how they print."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from testbed.cli import say
from testbed.commands.places import DEFAULT_DATABASE, DEFAULT_LOGDIR, LOG_DATABASE, database_url, log_database_url
from testbed.errors import StoreError
from testbed.visible import visible

if TYPE_CHECKING:
    from testbed.store.store import Store

Options = Mapping[str, Any]
Action = Callable[[Options], "int | None"]  # an exit code; None is 0


def store_url(options: Options) -> str:
    """The URL of the database that the options name."""
    return log_database_url(options["logdir"]) if options["logdir"] else database_url(options["db_url"])


def reading(options: Options) -> Store:
    """The store, for reading only. Raises: StoreError: there is none."""
    from testbed.store.store import Store

    _look_beside(options)
    return Store.open(store_url(options), read_only=True, create=False)


def _look_beside(options: Options) -> None:
    """Raises: StoreError: no database is named and the shared one is not there, but that of the log directory is."""
    if options["logdir"] or options["db_url"] or DEFAULT_DATABASE.exists():
        return
    if (DEFAULT_LOGDIR / LOG_DATABASE).exists():
        raise StoreError(
            f"There is no database at {DEFAULT_DATABASE}. Results of eval.py without --db lie in a log directory: "
            f"add --logdir {DEFAULT_LOGDIR}."
        )


@contextmanager
def writing(options: Options, name: str, *, create: bool = False) -> Iterator[Store]:
    """The store, locked as a driver locks it: nothing is changed under an evaluation that runs.

    Args:
        name: of the action, for another program that is refused meanwhile.
        create: make the database where there is none.
    Raises: StoreError: there is none, or another program writes to it.
    """
    from testbed.store.store import Store

    with Store.open(store_url(options), create=create) as store:
        store.lock(f"db.py {name}")
        yield store


def definitions(options: Options) -> Any:
    """The registry with everything imported; a file that cannot be is told and left out."""
    from registry import registry
    from testbed.definitions import Sources, load_definitions, plugin_paths

    for failure in load_definitions(Sources(plugins=plugin_paths(options["plugins"]))):
        say(f"Warning: {failure.path} was not imported: {failure.reason}")
    return registry


def print_names(names: Iterable[str]) -> None:
    """Prints one name a line."""
    for name in names:
        print(visible(name))


def print_json(value: Any) -> None:
    """Prints a JSON-able value for a program."""
    print(json.dumps(value, indent=1, allow_nan=False))
