"""A PostgreSQL server of the tests' own, in a temporary folder, reached by its socket alone."""

from __future__ import annotations

import getpass
import importlib.util
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

ACCOUNT = "postgres"  # the server refuses to run as root


@dataclass(frozen=True)
class Server:
    """A running server."""

    folder: Path
    numbers: Iterator[int]

    def new_database(self) -> str:
        """The URL of a database made just now."""
        import psycopg

        name = f"test_{next(self.numbers)}"
        with closing(psycopg.connect(f"host={self.folder} user={ACCOUNT} dbname=postgres", autocommit=True)) as server:
            server.execute(f"create database {name}")
        return f"postgresql+psycopg://{ACCOUNT}@/{name}?host={self.folder}"


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A server, stopped and deleted at the end; skips where PostgreSQL or its driver is not installed."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="testbed-pg-", dir="/tmp"))  # its socket's path has to be short
    data = folder / "data"
    if os.geteuid() == 0:
        shutil.chown(folder, ACCOUNT)
    try:
        _run(programs / "initdb", "-D", data, "-U", ACCOUNT, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
        _run(programs / "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start")
        try:
            yield Server(folder, count())
        finally:
            _run(programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    if not found:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("the driver of PostgreSQL is not installed (pip install 'psycopg[binary]')")
    return found[-1].parent


def _run(*command: object) -> None:
    line = shlex.join(map(str, command))
    account = ["su", ACCOUNT, "-s", "/bin/sh", "-c", line] if os.geteuid() == 0 else ["sh", "-c", line]
    # Output goes to a file: the server inherits it, and a pipe would be open until that stops.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(account, stdout=output, stderr=output, cwd="/", check=False)
        output.seek(0)
        assert done.returncode == 0, f"as {getpass.getuser()}: {line}\n{output.read()}"
