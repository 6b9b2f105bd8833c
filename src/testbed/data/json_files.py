"""JSON files that others wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from testbed.errors import DataError, reading


def read_json(path: Path, kind: type, *, remedy: str = "Get the file again.") -> Any:
    """What a JSON file holds.

    Args:
        path: of the file, in UTF-8.
        kind: type that it should be of.
        remedy: a sentence that ends the message of errors.
    Raises: DataError: it cannot be read, has numbers or text that JSON has not, or holds something of another type.
    """
    with reading(path, kind="JSON", remedy=remedy):
        content = json.loads(path.read_text(encoding="utf-8-sig"), parse_constant=_refuse)
        json.dumps(content, ensure_ascii=False).encode()  # an escape may name half a character
    if not isinstance(content, kind):
        raise DataError(f"{path} holds a {type(content).__name__} where a {kind.__name__} belongs. {remedy}")
    return content


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")
