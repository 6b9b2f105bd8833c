"""The schema revision of a database: made, compared when it is opened, and brought up to date."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, func, insert, inspect, select

from testbed.errors import BusyError, StoreError
from testbed.store import digests, schema, sqlite
from testbed.store.backup import back_up
from testbed.store.database import Database
from testbed.store.lock import holder

MIGRATIONS = Path(__file__).parent / "migrations"
_NONE = "none"


def prepare_schema(database: Database, *, create: bool) -> None:
    """Makes the tables in an empty database; otherwise checks that they are those this version works with.

    Raises: StoreError: the tables are another program's, or of an older or newer version.
    """
    with database.reading() as connection:
        revision = _revision(connection, database.url)
    if revision is None:
        if database.read_only or not create:
            raise StoreError(f"The database {database.url} is empty. Evaluate something into it first.")
        with database.writing() as connection:
            _wait_for_others(connection)
            if _revision(connection, database.url) is None:  # nobody was faster
                _create_tables(connection)
    elif revision != schema.REVISIONS[-1]:
        raise StoreError(_revision_message(revision, database.url))


def _revision(connection: Connection, url: str) -> str | None:
    """The schema revision of the database; None where it has no tables at all."""
    names = set(inspect(connection).get_table_names())
    if not names:
        return None
    if not {schema.meta.name, schema.alembic_version.name} <= names:
        raise StoreError(f"The database {url} holds tables of another program. It was left untouched.")
    return connection.scalar(select(schema.alembic_version.c.version_num)) or _NONE


def _revision_message(revision: str, url: str) -> str:
    newest = schema.REVISIONS[-1]
    if revision == _NONE:
        return (
            f"The database {url} says no schema: its creation was cut off, or it is damaged. Restore it from a copy, "
            "or remove it if nothing was evaluated into it."
        )
    if revision in schema.REVISIONS:
        return (
            f"The database {url} has schema {revision}, this version of the testbed works with {newest}. "
            "Run `python db.py --upgrade`, which makes a backup first."
        )
    return (
        f"The database {url} has schema {revision}, this version of the testbed works with {newest}: a newer version "
        "wrote it. Update the testbed, then run `python db.py --upgrade` if it asks for it."
    )


def _wait_for_others(connection: Connection) -> None:
    """Lets one program at a time make tables on a server, until the end of its transaction; SQLite does so anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(sqlite.APPLICATION_ID)))


def _create_tables(connection: Connection) -> None:
    schema.metadata.create_all(connection)
    schema.alembic_version.create(connection)
    connection.execute(insert(schema.alembic_version).values(version_num=schema.REVISIONS[-1]))
    connection.execute(insert(schema.meta).values(key="application", value=schema.APPLICATION))


def upgrade(url: str | Path) -> Path | None:
    """Brings a database of an earlier revision up to date, as a whole or not at all.

    Returns: the backup made before; None where nothing was to be done, and for a server, which has its own tools.
    Raises: StoreError: no such database, a newer one, one in use, or one that cannot be copied or is damaged.
    """
    database = Database(url, create=False)
    try:
        with database.reading() as connection:
            revision = _revision(connection, database.url)
            if revision == schema.REVISIONS[-1]:
                return None
            if revision is None:
                raise StoreError(f"The database {database.url} is empty. Evaluate something into it first.")
            if revision not in schema.REVISIONS:
                raise StoreError(_revision_message(revision, database.url))
            if (writer := holder(connection)) is not None:
                raise BusyError(f"The database {database.url} is in use by {writer.owner}. Upgrade it afterwards.")
        backup = _back_up(database, revision)
        with database.writing() as connection:
            migrate(connection)
            digests.seal(connection)
            if problems := sqlite.problems(connection):
                raise StoreError(f"The database {database.url} was left as it was: {problems[0]}")
        return backup
    finally:
        database.close()


def migrate(connection: Connection, *, target: str = "head") -> None:
    """Runs the migrations that the database behind `connection` has not seen, up to the revision `target`."""
    from alembic import command  # costs a second, and only this function needs it
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, target)


def _back_up(database: Database, revision: str) -> Path | None:
    if database.path is None:
        return None
    backup = database.path.with_name(f"{database.path.name}.{revision}.bak")
    back_up(database.path, backup)
    return backup
