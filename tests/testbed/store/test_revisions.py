"""The schema's history: what alembic makes equals what the code declares, and other revisions are not opened."""

from __future__ import annotations

import gzip
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from testbed.errors import StoreError
from testbed.records import EvaluationKey
from testbed.store import revision, schema, sqlite
from testbed.store.database import Database
from testbed.store.evaluation import Evaluation
from testbed.store.store import Store
from testbed.store.verification import verify

NEWEST = schema.REVISIONS[-1].replace(".", r"\.")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def old(path: Path) -> Path:
    """A database of the first revision."""
    return restored(path, unpacked(schema.REVISIONS[0]))


def unpacked(version: str) -> bytes:
    return gzip.decompress((Path(__file__).parent / "assets" / f"{version}.sqlite.gz").read_bytes())


def restored(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def contents(path: Path) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
        return {name: list(map(dict, connection.execute(f"select * from {name}"))) for name in tables}  # noqa: S608


def stamp(path: Path, version: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update alembic_version set version_num = ?", (version,))
        connection.commit()


def test_the_list_of_revisions_is_that_of_the_migration_files() -> None:
    config = Config()
    config.set_main_option("script_location", str(revision.MIGRATIONS))
    scripts = ScriptDirectory.from_config(config).walk_revisions()
    assert tuple(script.revision for script in scripts)[::-1] == schema.REVISIONS


def test_the_migrations_make_the_schema_that_the_code_declares(url: str) -> None:
    database = Database(url)
    with database.writing() as connection:
        revision.migrate(connection)
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, schema.metadata) == []
        assert context.get_current_revision() == schema.REVISIONS[-1]
    database.close()


def definitions(path: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("select name, sql from sqlite_master where name not like 'alembic%'").fetchall()
        return {name: sorted((sql or "").replace("\n", " ").replace(",", " ").split()) for name, sql in rows}


def test_a_new_store_and_a_migrated_one_have_the_same_constraints(tmp_path: Path) -> None:
    database = Database(tmp_path / "migrated.sqlite")
    with database.writing() as connection:
        revision.migrate(connection)
    database.close()
    Store.open(tmp_path / "new.sqlite").close()
    assert definitions(tmp_path / "migrated.sqlite") == definitions(tmp_path / "new.sqlite")


def test_a_newer_schema_is_refused_and_both_revisions_are_named(path: Path) -> None:
    Store.open(path).close()
    stamp(path, "v9.0.0")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=rf"has schema v9\.0\.0, .* works with {NEWEST}.*[Uu]pdate the testbed"):
        Store.open(path)
    assert path.read_bytes() == before


def test_an_older_schema_is_refused_with_the_command_to_run(old: Path) -> None:
    before = old.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreError, match=rf"schema v0\.1\.0, .* works with {NEWEST}.*python db\.py --upgrade"):
            Store.open(old, read_only=read_only)
    assert old.read_bytes() == before


def test_a_database_with_our_mark_and_other_tables_is_refused(path: Path) -> None:
    sqlite._begin_file(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table theirs (x)")
    with pytest.raises(StoreError, match="tables of another program"):
        Store.open(path)


def test_a_database_whose_creation_was_cut_off_says_what_it_is(path: Path) -> None:
    sqlite._begin_file(path)
    with pytest.raises(StoreError, match="is empty"):
        Store.open(path, read_only=True)
    with pytest.raises(StoreError, match="is empty"):
        revision.upgrade(path)
    Store.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("delete from alembic_version")
        connection.commit()
    for opens in (lambda: Store.open(path, read_only=True), lambda: revision.upgrade(path)):
        with pytest.raises(StoreError, match=r"creation was cut off.*Restore it from a copy"):
            opens()
    path.write_bytes(bytes(2 * 65536))  # the pages were allotted, and the first was never written
    with pytest.raises(StoreError, match="cut off before anything was stored"):
        Store.open(path, read_only=True)
    assert path.read_bytes() == bytes(2 * 65536)


@pytest.mark.parametrize("version", schema.REVISIONS[:-1])
def test_a_database_of_every_earlier_revision_is_upgraded_read_and_resumed(
    path: Path, samples: Any, version: str
) -> None:
    """The files were made by the code of their revisions, compacted, and compressed by gzip -9:

    eval.py --models digits-linear digits-1nn --eval-settings digits digits-mscr-linf --limit 40 --draws 2 --db
    eval.py --models digits-linear --eval-settings digits-noise-linf-0.1 --limit 40 --draws 3 --db

    the second interrupted after two of its three pieces (v0.4.0: its third draw was asked for afterwards). Host, user
    and command line were then taken out of its runs. Those from v0.2.0 on have `digits-linear` on a setting with
    class_sublist=[8, 3] and idx_subsample_list=range(40) as well.
    """
    old = restored(path, unpacked(version))
    before = old.read_bytes()
    backup = revision.upgrade(old)
    assert backup == old.with_name(f"store.sqlite.{version}.bak")
    assert contents(backup) == contents(restored(backup.with_name("unpacked"), before))
    with Store.open(old) as store:
        assert verify(store).findings == (), "every row has its digest"
        found = [one for one in store.list_evaluations() if one.class_sublist is None]
        assert [(one.model, one.setting, one.status, one.num_draws) for one in found] == [
            ("digits-1nn", "digits-mscr-linf@limit40", "complete", 2),
            ("digits-1nn", "digits@limit40", "complete", 1),
            ("digits-linear", "digits-mscr-linf@limit40", "complete", 2),
            ("digits-linear", "digits-noise-linf-0.1@limit40", "running", 3),
            ("digits-linear", "digits@limit40", "complete", 1),
        ]
        for one in found:
            rows = [one.logits(draw) for draw in range(one.num_draws - (one.status == "running"))]
            if one.status == "complete":
                assert np.array_equal(np.argmax(rows, axis=2), one.predictions())
                assert {value.name for value in one.metrics()} >= {"top1", "top5", "balanced_accuracy"}
            assert len(one.sample_ids()) == len(one.targets()) == one.n == 40
        values = {value.name: value.value for one in found for values in one.comparisons().values() for value in values}
        assert set(values) == {"mscr", "loss", "recovery"}
        resume(store, found[3], samples)
        if version != "v0.1.0":
            check_subset(store.evaluation("digits-linear", "digits-3-8"))
    assert revision.upgrade(old) is None, "there is nothing left to do"


def check_subset(found: Evaluation) -> None:
    """What was evaluated on some classes reads as it did, and its definition is the same one as today."""
    assert found.class_sublist == (8, 3)
    assert found.class_names == ("8", "3")
    assert found.label_sets() is None
    assert np.array_equal(found.in_setting(found.logits()).argmax(1), found.predictions()[0])
    assert {1, 0, -1} == set(found.targets().tolist())
    top1 = next(value for value in found.metrics() if value.name == "top1")
    assert top1.value == 100 * np.mean(found.target_ranks() == 0) == 12.5


def resume(store: Store, begun: Evaluation, samples: Any) -> None:
    key = EvaluationKey(
        model_fingerprint=begun.model_fingerprint, setting_fingerprint=begun.setting_fingerprint,
        fit_seed=begun.fit_seed, noise_seed=begun.noise_seed, numerics=begun.numerics,
    )  # fmt: skip
    state = store.put_evaluation(key, num_draws=3, num_samples=40, shard_size=64, run_id=store.start_run({}))
    (missing,) = state.missing()
    assert (state.id, missing.draw, missing.start, missing.stop) == (begun.id, 2, 0, 40)
    store.put_shards([(state.id, samples.shard(missing, np.zeros((40, 10), np.float32)))])
    store.complete_evaluation(state.id, [])
    assert store.evaluation_by_id(state.id).predictions().shape == (3, 40)
    assert verify(store).findings == ()


@pytest.mark.parametrize("earlier", schema.REVISIONS[:-1])
def test_every_revision_is_upgraded_on_every_kind_of_database(url: str, earlier: str) -> None:
    database = Database(url)
    with database.writing() as connection:
        revision.migrate(connection, target=earlier)
        connection.exec_driver_sql("insert into meta values ('application', 'robustness-testbed')")
    database.close()
    with pytest.raises(StoreError, match="python db\\.py --upgrade"):
        Store.open(url)
    revision.upgrade(url)
    with Store.open(url) as store:
        assert verify(store).findings == ()


def test_runs_of_two_copies_get_the_same_identity(tmp_path: Path) -> None:
    paths = [restored(tmp_path / name, unpacked("v0.1.0")) for name in ("one.sqlite", "two.sqlite")]
    identities = []
    for path in paths:
        revision.upgrade(path)
        identities.append([row["uuid"] for row in contents(path)["runs"]])
    assert identities[0] == identities[1]
    assert len(set(identities[0])) == 2


def test_a_failed_upgrade_changes_nothing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def migrated_and_damaged(connection: Any) -> list[str]:
        return ["row 7 is missing"]

    before = contents(old)
    monkeypatch.setattr(sqlite, "problems", migrated_and_damaged)
    with pytest.raises(StoreError, match="left as it was: row 7 is missing"):
        revision.upgrade(old)
    assert contents(old) == before
    monkeypatch.undo()
    assert revision.upgrade(old) is not None, "its own backup is no obstacle"


def test_a_database_in_use_is_not_upgraded(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection:
        row = ("driver", "the old driver", "t", "elsewhere", 1, f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}", 120.0)
        connection.execute("insert into locks values (?, ?, ?, ?, ?, ?, ?)", row)
        connection.commit()
    with pytest.raises(StoreError, match="in use by the old driver"):
        revision.upgrade(old)


def test_a_newer_or_foreign_database_is_not_upgraded(path: Path) -> None:
    Store.open(path).close()
    stamp(path, "v9.0.0")
    with pytest.raises(StoreError, match="a newer version wrote it"):
        revision.upgrade(path)
    assert list(path.parent.glob("*.bak")) == []


def test_upgrade_makes_no_database(path: Path) -> None:
    with pytest.raises(StoreError, match="There is no database"):
        revision.upgrade(path)
    assert not path.exists()


def test_opening_a_store_imports_neither_alembic_nor_torch(path: Path) -> None:
    text = (
        "import sys; from testbed.store.store import Store; Store.open(sys.argv[1]).close(); "
        "print([name for name in ('alembic', 'torch', 'pandas') if name in sys.modules])"
    )
    source = Path(__file__).parents[3] / "src"
    done = subprocess.run([sys.executable, "-c", text, path], capture_output=True, text=True, cwd=source, check=True)
    assert done.stdout.strip() == "[]"
