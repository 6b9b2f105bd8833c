"""The database file is removed or replaced while it is open: the writer says so, and harms no other database."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import StoreError
from testbed.store.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store under test lies: in a folder of its own, reached through a link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    return tmp_path / "link" / "store.sqlite"


@pytest.fixture
def other(tmp_path: Path, samples: Any) -> Path:
    """A database of somebody else, which holds two models."""
    found = tmp_path / "theirs" / "store.sqlite"
    with Store.open(found) as store:
        for name in ("theirs", "theirs-too"):
            store.put_model(samples.model(name))
    return found


def names(path: Path) -> list[str]:
    with Store.open(path, read_only=True) as store:
        return [model.name for model in store.list_models()]


def removed(path: Path, other: Path) -> None:
    path.unlink()


def removed_with_its_log(path: Path, other: Path) -> None:
    for file in path.parent.glob("store.sqlite*"):
        file.unlink()


def replaced(path: Path, other: Path) -> None:
    shutil.copy(other, other.with_name("copy")).replace(path)


def replaced_by_its_own_copy(path: Path, other: Path) -> None:
    shutil.copy(path, other.with_name("copy")).replace(path)


def overwritten(path: Path, other: Path) -> None:
    shutil.copyfile(other, path)


def emptied(path: Path, other: Path) -> None:
    path.write_bytes(b"")


def filled_with_text(path: Path, other: Path) -> None:
    path.write_text("notes of somebody else\n" * 9999)


def folder_moved(path: Path, other: Path) -> None:
    path.parent.resolve().rename(other.parent.with_name("moved"))


def link_turned(path: Path, other: Path) -> None:
    path.parent.unlink()
    path.parent.symlink_to(other.parent)


def log_removed(path: Path, other: Path) -> None:
    path.with_name("store.sqlite-wal").unlink()


CHANGES = [
    removed, removed_with_its_log, replaced, replaced_by_its_own_copy, overwritten, emptied, filled_with_text,
    folder_moved, link_turned, log_removed,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_is_written_behind_a_name_that_means_another_file(
    path: Path, other: Path, samples: Any, change: Callable[[Path, Path], None]
) -> None:
    store = Store.open(path)
    store.lock("us")
    store.put_model(samples.model("ours"))
    change(path, other)
    for act in (lambda: store.put_model(samples.model("late")), store.list_models, store.heartbeat, store.close):
        if act == store.heartbeat and store._lock is not None:
            store._lock._pause = 0
        with pytest.raises(StoreError, match=r"while it was in use.*run the same command again") as caught:
            act()
        assert caught.value.exit_code == 3
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", [replaced, overwritten, link_turned])
def test_the_file_that_took_the_place_is_left_as_it_was(
    path: Path, other: Path, samples: Any, change: Callable[[Path, Path], None]
) -> None:
    before = other.read_bytes()
    store = Store.open(path)
    store.put_model(samples.model("ours"))
    change(path, other)
    with pytest.raises(StoreError, match="while it was in use"):
        in_thread(lambda: store.put_model(samples.model("late")))
    with pytest.raises(StoreError, match="while it was in use"):
        store.close()
    assert path.read_bytes() == before
    with closing(sqlite3.connect(shutil.copytree(path.parent, other.parent / "seen") / path.name)) as next_user:
        assert next_user.execute("select name from models").fetchall() == [("theirs",), ("theirs-too",)]


def in_thread(act: Callable[[], object]) -> None:
    """Acts on a connection of its own, as the heartbeat does; raises what it raised."""
    raised: list[BaseException] = []

    def body() -> None:
        try:
            act()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    for error in raised:
        raise error


def test_a_log_that_another_program_keeps_under_the_name_is_not_deleted(path: Path, other: Path, samples: Any) -> None:
    """The other database is in use: its newest model lies in its log alone."""
    folder = path.parent.resolve()
    store = Store.open(path)
    store.put_model(samples.model("ours"))
    folder.rename(folder.with_name("moved"))
    with closing(sqlite3.connect(other)) as user:
        user.execute("update models set name = 'newest' where name = 'theirs'")
        user.commit()
        shutil.copytree(other.parent, folder)
    with pytest.raises(StoreError, match="was replaced"):
        store.close()
    with closing(sqlite3.connect(path)) as next_user:
        assert next_user.execute("select name from models").fetchall() == [("newest",), ("theirs-too",)]


def test_what_was_stored_before_a_move_is_found_at_the_new_place(path: Path, samples: Any) -> None:
    store = Store.open(path)
    store.put_model(samples.model("ours"))
    path.rename(path.with_name("moved.sqlite"))
    with pytest.raises(StoreError, match="was removed or moved"):
        store.close()
    assert names(path.with_name("moved.sqlite")) == ["ours"]
    assert not path.with_name("store.sqlite-wal").exists()


def test_a_reader_finishes_what_it_reads(path: Path, other: Path, samples: Any) -> None:
    with Store.open(path) as store:
        store.put_model(samples.model("ours"))
    with Store.open(path, read_only=True) as store:
        replaced(path, other)
        assert [model.name for model in store.list_models()] == ["ours"]


def test_an_error_of_the_block_is_told_before_that_of_the_file(path: Path) -> None:
    def body() -> None:
        with Store.open(path):
            path.unlink()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        body()


def test_a_compacted_database_is_the_same_file(path: Path, samples: Any) -> None:
    with Store.open(path) as store:
        store.put_model(samples.model("ours"))
        store.database.compact()
        store.put_model(samples.model("more"))
    assert names(path) == ["more", "ours"]
