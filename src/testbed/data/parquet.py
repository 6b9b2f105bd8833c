"""Images in .parquet files as hubs publish them: a column of encoded images, and one of their classes.

The package `pyarrow` reads them, a group of rows at a time.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.data.contained_images import ContainedImages
from testbed.data.decoding import decode
from testbed.errors import DataError, reading

IMAGES, LABELS = "image", "label"
_NUM_KEPT = 2  # groups of rows in memory, of some hundred images as they are encoded


class _RowGroup(NamedTuple):
    file: Path
    number: int


class EncodedImages(ContainedImages[_RowGroup, list[bytes]]):
    """The images of .parquet files, one file after the other; and `labels`, for each the list of its classes.

    Raises: DataError: a file cannot be read or lacks a column, or pyarrow is not installed.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        groups: list[_RowGroup] = []
        counts: list[int] = []
        self.labels: list[tuple[int, ...]] = []
        for path in files:
            with _opened(path) as parquet, _reading(path):
                counts += [parquet.metadata.row_group(number).num_rows for number in range(parquet.num_row_groups)]
                groups += [_RowGroup(path, number) for number in range(parquet.num_row_groups)]
                self.labels += [_classes(entry, path) for entry in parquet.read(columns=[LABELS])[LABELS].to_pylist()]
        super().__init__(groups, counts, read=_read, image=_decoded, num_kept=_NUM_KEPT)


def _read(group: _RowGroup) -> list[bytes]:
    with _opened(group.file) as parquet, _reading(group.file):
        rows = parquet.read_row_group(group.number, columns=[IMAGES])[IMAGES].to_pylist()
    return [row["bytes"] if isinstance(row, dict) else row for row in rows]


def _decoded(images: list[bytes], position: int) -> NDArray[np.uint8]:
    return np.asarray(decode(io.BytesIO(images[position]), color_mode="RGB"))


def _classes(entry: Any, path: Path) -> tuple[int, ...]:
    entries = entry if isinstance(entry, list) else [entry]
    if not entries or not all(isinstance(one, int) for one in entries):
        raise DataError(f"{path} has the label {entry!r}, which is no list of classes. Get the file again.")
    return tuple(dict.fromkeys(entries))


def _opened(path: Path) -> Any:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise DataError(f"Reading {path} needs the package 'pyarrow'. Install it: pip install pyarrow.") from error
    with _reading(path):
        file = ParquetFile(path)
    if missing := {IMAGES, LABELS} - set(file.schema_arrow.names):
        raise DataError(f"{path} has no column {', '.join(sorted(missing))}. Get the file again.")
    return file


def _reading(path: Path) -> AbstractContextManager[None]:
    return reading(path, kind="a parquet file", remedy="Get the file again.")
