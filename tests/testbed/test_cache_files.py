"""Files of the cache are believed as long as they are what was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.cache_files import read_cached, tell_once, write_cached

CONTENT = {"names": ["a", "\u00e4"], "size": 16, "share": 0.1, "none": None}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tell_once.cache_clear()
    write_cached(tmp_path / "kept.json", CONTENT)
    return tmp_path / "kept.json"


def test_what_was_written_is_read_without_a_word(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_cached(file) == CONTENT
    assert read_cached(file.with_name("another.json")) is None
    assert capsys.readouterr() == ("", "")


def test_no_flipped_bit_gives_other_content(file: Path) -> None:
    whole = file.read_bytes()
    for place in range(len(whole)):
        for bit in range(8):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            assert read_cached(file, is_quiet=True) in (None, CONTENT), f"bit {bit} of byte {place}"


@pytest.mark.parametrize("damage", [b"", b"\xff", b"{", b"[]", b"1", b"{}", b"[" * 100_000, b'{"size": 17}'])
def test_damage_is_told_of_once(file: Path, capsys: pytest.CaptureFixture[str], damage: bytes) -> None:
    file.write_bytes(damage)
    assert read_cached(file) is None
    assert read_cached(file) is None
    out, told = capsys.readouterr()
    assert out == ""
    assert told.count(str(file)) == len(told.splitlines()) == 1


def test_an_earlier_version_is_believed_where_it_can_be_told_from_damage(file: Path) -> None:
    file.write_text('{"earlier": 1}')
    assert read_cached(file) is None
    assert read_cached(file, is_earlier=lambda kept: "earlier" in kept) == {"earlier": 1}
