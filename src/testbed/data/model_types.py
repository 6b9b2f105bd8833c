"""Published lists of models as they lie on disk: the ImageNet Testbed's types, and what timm's were pretrained on."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path

from testbed.data.published import GRID, TIMM, read_rows
from testbed.errors import DataError
from testbed.fingerprint import file_sha256
from testbed.model_types import PublishedType, pretraining_words, type_by_pretraining

# By the two columns of a list, what source it is of, and how a type is made of the second column.
_LISTS: Mapping[tuple[str, ...], tuple[str, Callable[[str], str | None]]] = {
    ("model", "type"): (GRID, lambda words: words or None),
    ("model", "pretrain"): (TIMM, type_by_pretraining),
}


def is_list_of_types(path: Path) -> bool:
    """Whether a CSV file is one of the two lists of models, by its columns; False for one that cannot be read."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            return tuple(next(csv.reader(stream), ())) in _LISTS
    except (OSError, UnicodeError, csv.Error):
        return False


def read_types(path: Path, *, source: str | None = None) -> list[PublishedType]:
    """The types of the models of a list, in the order of the file.

    Args:
        path: a CSV file of the columns `model` and `type`, or timm's `model` and `pretrain`.
        source: name to import them under; that of the numbers that they belong to. That of the format if None.
    Raises: DataError: a model stands there twice or has no type, or the file cannot be read.
    """
    header, rows = read_rows(path)
    name, type_of = _LISTS[tuple(header)]
    sha256 = file_sha256(path)
    found: dict[str, PublishedType] = {}
    for model, words in rows:
        if not model or model in found:
            raise DataError(f"{path}: the model '{model}' {'stands there twice' if model else 'is missing in a row'}.")
        model_type = type_of(words)
        if model_type is None:
            known = f" Known: {', '.join(pretraining_words())}." if words else ""
            raise DataError(f"{path}: '{model}' has '{words}' under '{header[1]}', which tells no type.{known}")
        found[model] = PublishedType(
            source=source or name, source_sha256=sha256, model=model, model_type=model_type
        )  # fmt: skip
    return list(found.values())
