"""JSON that others wrote: what is read from it can be stored and printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.data.json_files import read_json
from testbed.errors import DataError


def _written(folder: Path, content: bytes) -> Path:
    (folder / "index.json").write_bytes(content)
    return folder / "index.json"


@pytest.mark.parametrize(
    "content", ['{"é": [1, 2.5, null, "日本"]}'.encode(), '\ufeff{"é": [1, 2.5, null, "日本"]}'.encode()]
)
def test_json_is_read_in_utf_8_with_or_without_a_mark(tmp_path: Path, content: bytes) -> None:
    assert read_json(_written(tmp_path, content), dict) == {"é": [1, 2.5, None, "日本"]}


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"\xff\xfe{\x00}\x00", b"[" * 100_000, b'{"a": "\\ud800"}', b'{"a": NaN}', b'{"a": -Infinity}',
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
def test_what_is_no_json_is_one_line(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError, match=r"Cannot read .*index\.json as JSON \(.+\)\. Write it again\.$"):
        read_json(_written(tmp_path, content), dict, remedy="Write it again.")


def test_another_type_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds a list where a dict belongs"):
        read_json(_written(tmp_path, b"[]"), dict)
