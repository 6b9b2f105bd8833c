"""The URL of a database, taken apart: what would be cut off or is unknown is refused, what is secret is not shown."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from testbed.errors import StoreError, suggestion
from testbed.masking import HARMLESS, masked

_MISTYPED_URL = re.compile(r"(postgres|postgresql|mysql|mariadb|sqlite)[\w+]*:|[^/\s]*:[^/\s]*@")
_CONNECTION_STRING = re.compile(r"(^|\s)(host|hostaddr|port|dbname|user|password|passfile|service)\s*=")


def parse_url(url: str | Path) -> URL:
    """The parts of a URL, or of the path of an SQLite file.

    Raises: StoreError: it is no URL, of another kind of database, or has parts that would not be used.
    """
    try:
        str(url).encode()
    except UnicodeEncodeError as error:
        raise StoreError(f"The database path '{masked(str(url))}' is not UTF-8. Give another path.") from error
    if isinstance(url, Path):
        return URL.create("sqlite", database=str(url))
    if "://" not in url:
        if _CONNECTION_STRING.search(url) and not Path(url).exists():
            raise StoreError(
                "The database is given as a connection string of the form host=... dbname=.... Write it as "
                "postgresql+psycopg://USER@HOST/NAME, with other options behind a '?'."
            )
        if _MISTYPED_URL.match(url) and not Path(url).exists():
            raise StoreError(
                "The database is given in a form that is neither a URL nor likely the path of a file: a URL has '://' "
                "behind its kind. Give sqlite:///FILE, the path of a file, or postgresql+psycopg://USER@HOST:PORT/NAME."
            )
        return URL.create("sqlite", database=url)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:  # also a port that is no number
        raise StoreError(
            f"'{masked(url)}' is not a database URL. Give sqlite:///FILE, the path of a file, or "
            "postgresql+psycopg://USER@HOST:PORT/NAME."
        ) from error
    _check_parts(parsed, masked(url), has_options="?" in url)
    return parsed


def _check_parts(url: URL, shown: str, *, has_options: bool) -> None:
    kind = url.get_backend_name()
    if kind == "postgresql":
        if "@" in (url.host or "") or "#" in (url.database or ""):
            raise StoreError(
                "The database's URL has an '@' or a '#' within a part of it. Write it as %40 or %23, in a password too."
            )
        _check_options(url, shown)
    elif kind != "sqlite":
        raise StoreError(
            f"Databases of the kind '{kind}' are not supported. Give sqlite:///FILE or "
            "postgresql+psycopg://USER@HOST:PORT/NAME."
        )
    elif url.database in (None, "", ":memory:") and not has_options:
        raise StoreError(f"'{shown}' names no file. Give sqlite:///FILE: results must outlive the program.")
    elif url.host or url.username or url.password or url.port:
        raise StoreError(f"'{shown}' names a host, and a file has none. Give sqlite:///FILE.")
    elif has_options:
        raise StoreError(
            f"'{shown}' has options behind the '?', and a file takes none. Leave them out; for a file with '?' in its "
            "name give the path alone, without sqlite:///."
        )


def _check_options(url: URL, shown: str) -> None:
    try:
        from psycopg.pq import Conninfo  # asks libpq, whose versions differ
    except ImportError:
        return  # other drivers check for themselves, where they connect
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    for name in url.query:
        if name not in known:
            hint = suggestion(name, known) or "Leave it out."
            raise StoreError(f"'{name}' is no option of a PostgreSQL connection, in '{shown}'. {hint}")


def shown_url(url: URL) -> str:
    """A URL without secrets that names the same database; a path alone where its URL could not be read again."""
    if url.get_backend_name() != "sqlite":
        return masked(url.render_as_string(hide_password=True))
    path = str(url.database)
    return path if any(mark in path for mark in "?#%") else f"sqlite:///{path}"


def secrets_of(url: URL) -> list[str]:
    """What of a URL must not stand in the message of a driver."""
    values = [url.query[name] for name in url.query if name not in HARMLESS]
    flat = [part for value in values for part in ((value,) if isinstance(value, str) else value)]
    return [*([url.password] if url.password else []), *flat]
