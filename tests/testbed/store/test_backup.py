"""The backup before an upgrade: whole or not there, on a full disk and at every other failure of a system call."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.testbed.store.test_revisions import contents, restored, unpacked

from testbed import paths
from testbed.errors import StoreError
from testbed.store import backup, revision

SOURCE = Path(__file__).parents[3] / "src"
# Upgrades a fresh copy under each limit on the size of files, from none to more than is needed, in a process each.
UPGRADES = """
import os, resource, shutil, signal, sys
from pathlib import Path
import alembic.command, alembic.config
from testbed.errors import StoreError
from testbed.store import revision

old, folder = Path(sys.argv[1]), Path(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for limit in range(0, int(sys.argv[3]), 65536):
    target = folder / str(limit) / "store.sqlite"
    target.parent.mkdir(parents=True)
    shutil.copy(old, target)
    if os.fork() == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            revision.upgrade(target)
        except StoreError as error:
            os._exit(3)
        os._exit(0)
    print(limit, os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A database of the first revision."""
    return restored(tmp_path / "store.sqlite", unpacked("v0.1.0"))


def kept(old: Path) -> Path:
    return old.with_name("store.sqlite.v0.1.0.bak")


def beside(old: Path) -> set[str]:
    return {file.name for file in old.parent.iterdir()} - {"store.sqlite", "store.sqlite-wal", "store.sqlite-shm"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits on file sizes are POSIX's")
def test_wherever_the_disk_is_full_the_next_upgrade_succeeds(old: Path, tmp_path: Path) -> None:
    before, size = contents(old), old.stat().st_size
    program = [sys.executable, "-c", UPGRADES, old, tmp_path / "upgrades", str(3 * size)]
    done = subprocess.run(program, capture_output=True, text=True, cwd=SOURCE, check=True)
    codes = {int(limit): int(code) for limit, code in (line.split() for line in done.stdout.splitlines())}
    assert set(codes.values()) == {0, 3}, done.stderr
    for limit, code in codes.items():
        database = tmp_path / "upgrades" / str(limit) / "store.sqlite"
        assert beside(database) <= {kept(database).name}
        if code:
            assert contents(database) == before
            revision.upgrade(database)
        assert contents(kept(database)) == before


@pytest.mark.parametrize("left", [b"", b"\0" * 65536, b"half of it"])
def test_what_an_earlier_failure_left_is_no_backup(old: Path, left: bytes) -> None:
    before = contents(old)
    kept(old).write_bytes(left)
    assert revision.upgrade(old) == kept(old)
    assert contents(kept(old)) == before


def test_the_first_half_of_a_database_is_no_backup(old: Path) -> None:
    before = contents(old)
    kept(old).write_bytes(old.read_bytes()[: old.stat().st_size // 2])
    revision.upgrade(old)
    assert contents(kept(old)) == before


def test_a_backup_of_something_else_is_kept_and_named(old: Path) -> None:
    shutil.copy(old, kept(old))
    with closing(sqlite3.connect(kept(old))) as connection:
        connection.execute("update models set name = 'precious' where id = 1")
        connection.commit()
    precious = kept(old).read_bytes()
    with pytest.raises(StoreError, match=r"v0\.1\.0\.bak exists already and holds something else. Move it away"):
        revision.upgrade(old)
    assert kept(old).read_bytes() == precious


def test_an_equal_backup_is_used_without_writing_it_again(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backup.back_up(old, kept(old))
    written = kept(old).stat().st_mtime_ns
    monkeypatch.setattr(backup, "_copy", lambda *_: pytest.fail("there is one already"))
    assert revision.upgrade(old) == kept(old)
    assert kept(old).stat().st_mtime_ns == written


@pytest.mark.parametrize(("call", "when"), [("open", 1), ("fsync", 1), ("replace", 1), ("open", 2), ("fsync", 2)])
def test_a_failing_system_call_leaves_a_whole_backup_or_none(
    old: Path, monkeypatch: pytest.MonkeyPatch, call: str, when: int
) -> None:
    """The calls of Python itself: of the file (1), and of its folder (2)."""
    before, count = contents(old), 0
    owner: Any = paths.Path if call == "replace" else backup.os
    real = getattr(owner, call)

    def failing(*given: Any, **named: Any) -> Any:
        nonlocal count
        count += call == "replace" or sys._getframe(1).f_code is backup._sync.__code__
        if count == when:
            raise OSError(5, "Input/output error")
        return real(*given, **named)

    monkeypatch.setattr(owner, call, failing)
    with pytest.raises(StoreError, match=r"cannot be copied.*run the same command again"):
        revision.upgrade(old)
    monkeypatch.undo()
    assert contents(old) == before
    assert beside(old) == ({kept(old).name} if when == 2 else set())
    revision.upgrade(old)
    assert contents(kept(old)) == before


def test_what_a_killed_copy_left_is_cleared_away(old: Path) -> None:
    for name in (f"{kept(old).name}.77-abcd.tmp", f"{kept(old).name}.77-abcd.tmp-journal"):
        old.with_name(name).write_bytes(b"half")
    revision.upgrade(old)
    assert beside(old) == {kept(old).name}
