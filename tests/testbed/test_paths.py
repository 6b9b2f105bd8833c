from pathlib import Path

import pytest

from testbed.errors import DataError
from testbed.paths import cache_folder, cache_root, data_root, replacing


def test_roots_follow_their_variables(monkeypatch, tmp_path):
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path / "sets"))
    assert cache_root() == tmp_path / "home"
    assert data_root() == tmp_path / "sets"


def test_roots_without_variables(monkeypatch):
    for name in ("TESTBED_HOME", "TESTBED_DATA"):
        monkeypatch.delenv(name, raising=False)
    assert cache_root().name == "robustness-testbed"
    assert cache_root().is_absolute()
    assert data_root() == Path("data")


def test_a_folder_that_cannot_be_made_names_the_variable(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="Set TESTBED_HOME"):
        cache_folder(tmp_path / "file", "bank")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    target = tmp_path / "result"
    target.write_text("old")

    def interrupted():
        with replacing(target) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "old"
    with replacing(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
        inode = temporary.stat().st_ino
    assert target.read_text() == "new"
    assert target.stat().st_ino == inode  # moved, not copied
    assert list(tmp_path.iterdir()) == [target]
