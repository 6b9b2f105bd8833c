"""Opening a database by URL, its transactions, and the one place where driver errors become a StoreError."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, Table, create_engine, func, select
from sqlalchemy.dialects import postgresql as postgresql_dialect
from sqlalchemy.dialects import sqlite as sqlite_dialect
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError, SQLAlchemyError

from testbed.errors import StoreError, TestbedError
from testbed.masking import masked_text
from testbed.store import digests, sqlite
from testbed.store.columns import json_text
from testbed.store.database_url import parse_url, secrets_of, shown_url

T = TypeVar("T")

MAX_VALUES = 500  # in one statement: databases take some thousands


class Database:
    """An open database. Connections are short-lived; all writes go through `writing`, all reads through `reading`."""

    def __init__(self, url: str | Path, *, read_only: bool = False, create: bool = True) -> None:
        """Opens the database without looking at its schema.

        Args:
            url: `sqlite:///FILE`, the path of an SQLite file, or `postgresql+psycopg://...`.
            read_only: refuse every write.
            create: make the file and its folders where there are none.
        Raises: StoreError: the URL is not understood, or the database cannot be opened.
        """
        parsed = parse_url(url)
        self.read_only = read_only
        self.path = Path(parsed.database or "").expanduser() if parsed.get_backend_name() == "sqlite" else None
        self.url = shown_url(parsed)
        self._secrets = secrets_of(parsed)
        if self.path is None:
            self.engine, self._file = _server_engine(parsed), None
        else:
            self.engine, self._file = sqlite.connect(self.path, read_only=read_only, create=create)

    def close(self) -> None:
        """Closes all connections."""
        if self._file is None:
            self.engine.dispose()
        elif self.read_only or self._file.may_close():
            self.engine.dispose()
            self._file.close()

    def check_file(self) -> None:
        """Raises: StoreError: what is written no longer goes to the file that was named."""
        if self._file is not None and not self.read_only:
            self._file.check()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection in a transaction that sees one state of the database; nothing is to be written on it."""
        self.check_file()
        with self._translated(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in a transaction that is kept as a whole or, on any error, not at all."""
        if self.read_only:
            raise StoreError(f"The database {self.url} was opened for reading only.")
        self.check_file()
        with self._translated(), self.engine.connect() as connection:
            connection = connection.execution_options(is_writer=True)
            with connection.begin():
                yield connection
                self.check_file()

    def size(self) -> int:
        """Bytes that the database takes on its disk."""
        if self.path is not None:
            return sqlite.size(self.path)
        with self.reading() as connection:
            return int(connection.execute(select(func.pg_database_size(func.current_database()))).scalar_one())

    def compact(self) -> None:
        """Gives the space of what was deleted back to the disk; takes as much free space as the database meanwhile."""
        if self.path is not None:
            self.check_file()
            sqlite.compact(self.path)
            return
        with self._translated(), self.engine.connect() as connection:  # a server vacuums outside of transactions only
            connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("VACUUM FULL")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (TestbedError, OSError):
            raise
        except SQLAlchemyError as error:
            raise StoreError(self._sentence(error)) from error
        except Exception as error:
            if (damage := self._damage()) is not None:  # a cell holds what no type can read, or what nobody expects
                raise StoreError(damage) from error
            if isinstance(error, (OverflowError, UnicodeError)):  # values that the driver cannot pass on
                raise StoreError(f"The database {self.url} cannot hold a value: {error}.") from error
            raise

    def _damage(self) -> str | None:
        """What row of the database is not as it was written; None where all are, or nothing can be read."""
        try:
            with self.engine.connect() as connection, connection.begin():
                found = digests.first_damage(connection)
        except Exception:  # what it is asked about is told instead
            return None
        return None if found is None else f"The database {self.url} is damaged. {found}"

    def _sentence(self, error: SQLAlchemyError) -> str:
        if isinstance(error, DBAPIError) and self.path is not None and (meaning := sqlite.explain(error, self.path)):
            return meaning
        if self.path is not None and isinstance(error, OperationalError) and (damage := self._damage()) is not None:
            return damage
        origin = getattr(error, "orig", None)
        message = (str(origin or error).strip() or type(error).__name__).splitlines()[0]
        message = masked_text(message, self._secrets)
        if isinstance(error, OperationalError) and getattr(origin, "sqlstate", "") is None:  # no server answered
            return f"The database {self.url} cannot be reached: {message}. Start its server, or check the URL."
        return f"The database {self.url} refused a statement: {message}"


def _server_engine(url: URL) -> Engine:
    try:
        return create_engine(url, json_serializer=json_text, pool_pre_ping=True)
    except ArgumentError as error:  # an option whose value is of the wrong kind
        raise StoreError(f"'{shown_url(url)}' is not a database URL: {error}. Correct that option.") from error
    except (ImportError, NoSuchModuleError) as error:
        hint = "Install one: pip install 'psycopg[binary]', and write the URL as postgresql+psycopg://..."
        raise StoreError(f"The driver for '{url.drivername}' is not installed ({error}). {hint}") from error


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts the rows whose key is not there yet; the others change nothing."""
    if rows:
        dialect = postgresql_dialect if connection.dialect.name == "postgresql" else sqlite_dialect
        connection.execute(dialect.insert(table).on_conflict_do_nothing(), list(rows))


def pieces(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """As many of the values at a time as a statement may have."""
    for start in range(0, len(values), MAX_VALUES):
        yield values[start : start + MAX_VALUES]
