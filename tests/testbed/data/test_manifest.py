import hashlib
import os
import shutil

import pytest

from testbed.data import manifest as manifest_module
from testbed.data.manifest import manifest
from testbed.errors import DataError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))
    (tmp_path / "set" / "a").mkdir(parents=True)
    (tmp_path / "set" / "a" / "1.png").write_bytes(b"one")
    (tmp_path / "set" / "a" / "2.png").write_bytes(b"second")
    return tmp_path / "set"


PATHS = ("a/1.png", "a/2.png")


def test_rows_are_path_size_and_content(folder):
    assert manifest(folder, PATHS) == [
        ("a/1.png", 3, hashlib.sha256(b"one").hexdigest()),
        ("a/2.png", 6, hashlib.sha256(b"second").hexdigest()),
    ]


def test_a_file_is_read_again_only_after_a_change(folder, monkeypatch):
    first = manifest(folder, PATHS)
    read = []
    original = manifest_module.file_sha256
    monkeypatch.setattr(manifest_module, "file_sha256", lambda path: read.append(path.name) or original(path))
    assert manifest(folder, PATHS) == first
    assert read == []
    (folder / "a" / "1.png").write_bytes(b"eno")  # the same size
    os.utime(folder / "a" / "1.png", ns=(0, 12345))
    assert manifest(folder, PATHS)[0][2] == hashlib.sha256(b"eno").hexdigest()
    assert read == ["1.png"]


def test_a_copy_elsewhere_has_the_same_manifest(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    assert manifest(tmp_path / "copy", PATHS) == manifest(folder, PATHS)


def test_splits_of_one_folder_do_not_forget_each_other(folder, monkeypatch):
    manifest(folder, PATHS[:1])
    manifest(folder, PATHS[1:])
    monkeypatch.setattr(manifest_module, "file_sha256", lambda path: pytest.fail(f"{path} was read again"))
    assert len(manifest(folder, PATHS)) == 2


def test_a_damaged_memory_is_not_trusted(folder, tmp_path):
    first = manifest(folder, PATHS)
    (remembered,) = (tmp_path / "home" / "hashes").iterdir()
    digit = first[0][2][:8]
    other = remembered.read_text().replace(digit, digit[::-1])
    for text in ("", "[1]", '{"a/1.png": 3}', '{"a/1.png": [3]}', other):
        remembered.write_text(text)
        assert manifest(folder, PATHS) == first


def test_an_unreadable_file_is_named(folder):
    with pytest.raises(DataError, match=r"Cannot read .*3\.png"):
        manifest(folder, ("a/3.png",))
