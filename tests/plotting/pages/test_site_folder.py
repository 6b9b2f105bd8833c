"""The folder of a site is written whole or not at all, and no other folder is touched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from plotting.pages.folder import check_folder, write_folder

from testbed.errors import DataError

FILES = [("index.html", b"one"), ("model/a.html", b"two")]


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_new_or_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("new", "deeper/new", "empty"):
        write_folder(tmp_path / name, FILES)
        assert _contents(tmp_path / name).items() >= dict(FILES).items()


def test_a_folder_with_other_files_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    for override in (False, True):
        with pytest.raises(DataError, match="holds other files"):
            write_folder(folder, FILES, override=override)
    assert _contents(folder) == {"thesis.tex": b"years of work"}


def test_a_file_or_a_link_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    for name in ("file", "link"):
        with pytest.raises(DataError, match="is no folder"):
            check_folder(tmp_path / name, override=True)


def test_a_site_is_replaced_as_a_whole_and_only_when_asked(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    write_folder(folder, [*FILES, ("old.html", b"old")])
    with pytest.raises(DataError, match="--override"):
        write_folder(folder, FILES)
    write_folder(folder, [("index.html", b"three")], override=True)
    assert set(_contents(folder)) == {"index.html", "site.json"}
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_what_somebody_put_beside_the_pages_is_not_lost(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    write_folder(folder, FILES)
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match=r"lost: thesis\.tex\. Move it elsewhere"):
        write_folder(folder, FILES, override=True)
    assert _contents(folder)["thesis.tex"] == b"years of work"
    (folder / "thesis.tex").rename(folder / ".DS_Store")
    write_folder(folder, FILES, override=True)
    assert ".DS_Store" not in _contents(folder)


def test_a_failure_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    write_folder(folder, FILES)
    before = _contents(folder)

    def breaking() -> Iterator[tuple[str, bytes]]:
        yield "index.html", b"new"
        raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError):
        write_folder(folder, breaking(), override=True)
    assert _contents(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_two_files_of_one_name_are_an_error_whatever_their_case(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"A\.html"):
        write_folder(tmp_path / "site", [("a.html", b""), ("A.html", b"")])
    assert list(tmp_path.iterdir()) == []
