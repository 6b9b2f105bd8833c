"""The schema's history: what alembic makes equals what the code declares, and other revisions are not opened."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from testbed.errors import StoreError
from testbed.store import revision, schema, sqlite
from testbed.store.database import Database
from testbed.store.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


def stamp(path: Path, version: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update alembic_version set version_num = ?", (version,))
        connection.commit()


def test_the_list_of_revisions_is_that_of_the_migration_files() -> None:
    config = Config()
    config.set_main_option("script_location", str(revision.MIGRATIONS))
    scripts = ScriptDirectory.from_config(config).walk_revisions()
    assert tuple(script.revision for script in scripts)[::-1] == schema.REVISIONS


def test_the_migrations_make_the_schema_that_the_code_declares(path: Path) -> None:
    database = Database(path)
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
    with pytest.raises(StoreError, match=r"has schema v9\.0\.0, .* works with v0\.1\.0.*[Uu]pdate the testbed"):
        Store.open(path)
    assert path.read_bytes() == before


def test_an_older_schema_is_refused_with_the_command_to_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store.open(path).close()
    monkeypatch.setattr(schema, "REVISIONS", (*schema.REVISIONS, "v0.2.0"))
    with pytest.raises(StoreError, match=r"has schema v0\.1\.0, .* works with v0\.2\.0.*python db\.py --upgrade"):
        Store.open(path)


def test_a_database_with_our_mark_and_other_tables_is_refused(path: Path) -> None:
    sqlite._begin_file(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table theirs (x)")
    with pytest.raises(StoreError, match="tables of another program"):
        Store.open(path)


def test_upgrade_makes_a_backup_first_and_keeps_everything(path: Path, samples: Any) -> None:
    with Store.open(path) as store:
        id_ = samples.completed(store)
    backup = revision.upgrade(path)
    assert backup == path.with_name("store.sqlite.v0.1.0.bak")
    for copy in (path, backup):
        with Store.open(copy) as store:
            assert store.evaluation_by_id(id_).logits().tobytes() == samples.logits().tobytes()
    with pytest.raises(StoreError, match="exists already"):
        revision.upgrade(path)


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
