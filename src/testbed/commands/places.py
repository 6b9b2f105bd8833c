"""Where a command line keeps its results: the shared database, or the small one of a log directory."""

from __future__ import annotations

from pathlib import Path

DEFAULT_DATABASE = Path("results/testbed.sqlite")
DEFAULT_LOGDIR = Path("results/log")
LOG_DATABASE = "evaluations.sqlite"
_SQLITE = "sqlite:///"


def database_url(db_url: str | None) -> str:
    """The URL of the shared database."""
    return db_url or f"{_SQLITE}{DEFAULT_DATABASE}"


def log_database_url(logdir: Path) -> str:
    """The URL of a log directory's own database."""
    return f"{_SQLITE}{logdir / LOG_DATABASE}"


def event_file(url: str) -> Path:
    """Where the events of runs are noted: beside the database, or where the local one would be."""
    return (sqlite_file(url) or DEFAULT_DATABASE).with_suffix(".events.jsonl")


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite URL or path; None for a database server."""
    if url.startswith(_SQLITE):
        return Path(url.removeprefix(_SQLITE))
    return None if "://" in url else Path(url)
