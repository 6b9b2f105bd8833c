"""What can happen to an SQLite file, and what the store says and does then."""
# ruff: noqa: S608 - the names of tables and columns are this file's own

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.errors import StoreError
from testbed.store import sqlite
from testbed.store.store import Store

SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


def pragma(path: Path, name: str) -> Any:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]


def program(text: str, *arguments: object) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": f"{SOURCE}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", text, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)


# Opening


def test_a_new_file_has_large_pages_a_write_ahead_log_and_our_mark(path: Path) -> None:
    Store.open(path).close()
    assert pragma(path, "page_size") == 65536
    assert pragma(path, "journal_mode") == "wal"
    assert pragma(path, "application_id") == sqlite.APPLICATION_ID


def test_every_connection_checks_foreign_keys_and_waits_for_others(store: Store) -> None:
    with store._database.engine.connect() as connection:
        settings = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in
                    ("foreign_keys", "synchronous", "busy_timeout")}  # fmt: skip
    assert settings == {"foreign_keys": 1, "synchronous": 1, "busy_timeout": 60000}


def test_folders_are_made_and_odd_paths_work(tmp_path: Path) -> None:
    path = tmp_path / "a b" / "50%?#é" / "x.sqlite"
    Store.open(path).close()
    assert path.is_file()
    Store.open(f"sqlite:///{tmp_path / 'by url.sqlite'}").close()
    assert (tmp_path / "by url.sqlite").is_file()


@pytest.mark.parametrize("content", ["database", "text"])
def test_a_foreign_file_is_refused_and_not_touched(tmp_path: Path, content: str) -> None:
    path = tmp_path / "theirs.db"
    if content == "database":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("create table theirs (x)")
            connection.commit()
    else:
        path.write_text("a shopping list, longer than a header " * 10)
    before = path.read_bytes(), path.stat().st_mtime_ns
    for read_only in (False, True):
        with pytest.raises(StoreError, match=r"theirs\.db is .*left untouched"):
            Store.open(path, read_only=read_only)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_file_is_not_made_for_readers(path: Path) -> None:
    for options in ({"read_only": True}, {"create": False}):
        with pytest.raises(StoreError, match="There is no database at"):
            Store.open(path, **options)
    assert not path.exists()


def test_a_path_under_a_file_is_one_line_with_exit_code_3(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as caught:
        Store.open(tmp_path / "file" / "store.sqlite")
    assert "cannot be opened" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite://", "names no file"),
        ("mysql://host/x", "'mysql' are not supported"),
        ("://", "is not a database URL"),
    ],
)
def test_an_unusable_url_is_refused(url: str, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        Store.open(url)


def test_read_only_leaves_the_file_as_it_is(path: Path, samples: Any) -> None:
    with Store.open(path) as store:
        id_ = samples.completed(store)
    before = path.read_bytes()
    with Store.open(path, read_only=True) as store:
        assert store.evaluation_by_id(id_).logits().shape == (10, 3)
        for write in (lambda: store.put_model(samples.model("new")), lambda: store.lock("me")):
            with pytest.raises(StoreError, match="for reading only"):
                write()
        with pytest.raises(StoreError, match="cannot be written"), store._database._translated():
            with store._database.engine.begin() as connection:
                connection.exec_driver_sql("delete from models")
    assert path.read_bytes() == before


def test_a_database_in_a_read_only_folder_can_be_read(
    path: Path, samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(path) as store:
        id_ = samples.completed(store)
    monkeypatch.setattr(sqlite.os, "access", lambda *_: False)  # tests may run as root, whom no permission stops
    with Store.open(path, read_only=True) as store:
        assert store.evaluation_by_id(id_).logits().shape == (10, 3)
        assert list(path.parent.iterdir()) == [path], "no log and no shared memory beside it"


def test_an_interrupted_creation_is_finished_by_the_next(path: Path) -> None:
    sqlite._begin_file(path)
    Store.open(path).close()
    with Store.open(path) as store:
        assert store.list_models() == []


# Faults


def test_a_full_disk_is_one_line_and_loses_nothing(path: Path, samples: Any) -> None:
    with Store.open(path) as store:
        state = samples.begin(store)
        first, *others = state.missing()
        store.put_shards([(state.id, samples.shard(first))])
        with store._database.engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
        large = samples.shard(others[0], payload=bytes(200_000))
        with pytest.raises(StoreError, match=r"No space is left .* free on its disk") as caught:
            store.put_shards([(state.id, large)])
        assert "\n" not in str(caught.value)
    assert pragma(path, "integrity_check") == "ok"
    with Store.open(path) as store:
        assert samples.take_up(store).stored == {(0, 0, 4)}
        samples.fill(store, samples.take_up(store))
        store.complete_evaluation(state.id, [])


def test_a_limit_on_file_sizes_is_one_line_and_loses_nothing(path: Path, samples: Any) -> None:
    with Store.open(path) as store:
        state = samples.begin(store)
    writer = program(
        "import resource, sys\n"
        "from testbed.errors import StoreError\n"
        "from testbed.store.store import Store\n"
        "store = Store.open(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))\n"
        "try:\n"
        "    store.start_run({'argv': ['x' * 4_000_000]})\n"
        "except StoreError as error:\n"
        "    print(error)\n",
        path,
    )
    said, _ = writer.communicate(timeout=60)
    assert said.count("\n") == 1
    assert "cannot be written or read" in said
    assert pragma(path, "integrity_check") == "ok"
    with Store.open(path) as store:
        samples.fill(store, state)


def test_a_locked_database_is_named(path: Path, samples: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    with Store.open(path) as store, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="is locked by another program"):
            store.put_model(samples.model())
        other.rollback()
        store.put_model(samples.model())


@pytest.mark.parametrize(
    ("table", "column", "read", "message"),
    [
        ("logit_payloads", "payload", "logits", "logits of draw 1, samples 4 to 8 are not those"),
        ("logit_shards", "predictions", "predictions", "ranks of draw 1, samples 4 to 8 are not those"),
        ("logit_shards", "target_ranks", "target_ranks", "ranks of draw 1, samples 4 to 8 are not those"),
    ],
)
def test_a_flipped_byte_in_a_shard_is_found_and_named(
    store: Store, samples: Any, execute: Any, table: str, column: str, read: str, message: str
) -> None:
    id_ = samples.completed(store, num_draws=2)
    where = f"from {table} where draw = 1 and start = 4"
    blob = bytearray(execute(f"select {column} {where}")[0][0])
    blob[5] ^= 4
    execute(f"update {table} set {column} = ? where draw = 1 and start = 4", bytes(blob))
    found = store.evaluation_by_id(id_)
    with pytest.raises(StoreError, match=f"Evaluation {id_} .*{message}"):
        found.logits(1) if read == "logits" else getattr(found, read)()
    assert np.array_equal(found.logits(0), samples.logits(0)), "the other draw is whole"


def test_a_flipped_byte_in_targets_or_ids_or_indices_is_found(store: Store, samples: Any, execute: Any) -> None:
    setting = samples.setting("part", sample_indices=np.arange(10)[::-1])
    samples.put_definitions(store, setting)
    id_ = samples.take_up(store, samples.key(setting=setting)).id
    for table, column in (
        ("setting_versions", "sample_indices"), ("datasets", "targets"), ("datasets", "sample_ids")
    ):  # fmt: skip
        before = execute(f"select {column} from {table}")[0][0]
        assert store.evaluation_by_id(id_).targets()[0] == 0
        execute(f"update {table} set {column} = ?", before[:-2] + bytes([before[-2] ^ 1]) + before[-1:])
        with pytest.raises(StoreError, match="not those that were written"):
            store.evaluation_by_id(id_).targets()
        execute(f"update {table} set {column} = ?", before)


def test_a_damaged_file_is_named(path: Path, samples: Any) -> None:
    with Store.open(path) as store:
        samples.completed(store)
    content = bytearray(path.read_bytes())
    content[65536:] = bytes([255]) * (len(content) - 65536)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is damaged"), Store.open(path) as store:
        store.list_models()


# Several programs

WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from conftest import Samples
from testbed.store.store import Store
samples = Samples(num_samples=4000)
with Store.open(sys.argv[1]) as store:
    state = samples.begin(store)
    for where in state.missing():
        store.put_shards([(state.id, samples.shard(where))])
        print(where.start, flush=True)
"""


def test_a_killed_writer_loses_no_shard_it_had_reported(path: Path, samples: Any) -> None:
    reported: set[int] = set()
    for count in (1, 9, 30):
        writer = program(WRITER, path, Path(__file__).parent)
        assert writer.stdout is not None
        news = [int(writer.stdout.readline()) for _ in range(count)]
        writer.send_signal(signal.SIGKILL)
        news += [int(line) for line in writer.stdout.read().splitlines()]
        writer.wait()
        writer.stdout.close()
        assert not reported & set(news), "nothing is done twice"
        reported |= set(news)
        with Store.open(path) as store:
            state = store.find_evaluation(samples.key())
            assert state is not None
            stored = {start for _, start, _ in state.stored}
        assert reported <= stored
        assert len(stored - reported) <= 1, "at most the one that was being reported"
        reported = stored
        assert pragma(path, "integrity_check") == "ok"


def test_programs_that_make_the_same_store_at_once_do_not_collide(path: Path) -> None:
    text = (
        "import sys\nfrom testbed.store.store import Store\nstore = Store.open(sys.argv[1])\n"
        "for _ in range(5): store.start_run({})\nprint('done')\n"
    )
    programs = [program(text, path) for _ in range(4)]
    assert [made.communicate(timeout=60)[0].strip() for made in programs] == ["done"] * 4
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select count(*) from runs").fetchone() == (20,)
