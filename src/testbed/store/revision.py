"""The schema revision of a database: made, compared when it is opened, and brought up to date."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, insert, inspect, select

from testbed.errors import StoreError
from testbed.store import schema, sqlite
from testbed.store.database import Database

MIGRATIONS = Path(__file__).parent / "migrations"


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
    return connection.scalar(select(schema.alembic_version.c.version_num)) or "none"


def _revision_message(revision: str, url: str) -> str:
    newest = schema.REVISIONS[-1]
    if revision in schema.REVISIONS:
        return (
            f"The database {url} has schema {revision}, this version of the testbed works with {newest}. "
            "Run `python db.py --upgrade`, which makes a backup first."
        )
    return (
        f"The database {url} has schema {revision}, this version of the testbed works with {newest}: a newer version "
        "wrote it. Update the testbed, then run `python db.py --upgrade` if it asks for it."
    )


def _create_tables(connection: Connection) -> None:
    schema.metadata.create_all(connection)
    schema.alembic_version.create(connection)
    connection.execute(insert(schema.alembic_version).values(version_num=schema.REVISIONS[-1]))
    connection.execute(insert(schema.meta).values(key="application", value=schema.APPLICATION))


def upgrade(url: str | Path) -> Path | None:
    """Brings a database of an earlier revision up to date; returns the backup made before, None for a server's.

    Raises: StoreError: there is no such database, or the backup cannot be made.
    """
    database = Database(url, create=False)
    try:
        backup = _back_up(database)
        with database.writing() as connection:
            migrate(connection)
        return backup
    finally:
        database.close()


def migrate(connection: Connection) -> None:
    """Runs the migrations that the database behind `connection` has not seen."""
    from alembic import command  # costs a second, and only this function needs it
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _back_up(database: Database) -> Path | None:
    if database.path is None:
        return None
    with database.reading() as connection:
        revision = _revision(connection, database.url)
    backup = database.path.with_name(f"{database.path.name}.{revision}.bak")
    sqlite.copy(database.path, backup)
    return backup
