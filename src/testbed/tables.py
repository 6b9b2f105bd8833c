"""The long table of results as files, and as the grid that the ImageNet Testbed publishes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import DataError, TestbedError
from testbed.paths import replacing

if TYPE_CHECKING:
    import pandas as pd

# What else may tell two rows of a grid apart, beside the model's name.
_DISTINCTIONS = ("label_space", "source", "protocol", "input_size")
_NUMERICS = "numerics_fingerprint"
_NEIGHBOURHOODS = r"pm[1-9]\d*"  # pm-k accuracies over more than the frame itself


def wide(table: pd.DataFrame, *, metric: str = "top1") -> pd.DataFrame:
    """A grid of one metric: a row per model, a column per setting, both by name; percent, missing where not measured.

    A setting of video frames has its accuracy over whole neighbourhoods (`pm10`) in the place of top-1, as published.

    Stale and incomplete evaluations are left out, and runs with other seeds are averaged. Label space, source, protocol
    and input size become columns behind the model's where the table has more than one of them, and numerics where a
    model was evaluated on one setting with several, so that no cell mixes any.

    Args:
        table: as `testbed.results.table` gives it.
    """
    import pandas as pd

    is_fit = table["status"].isin(["complete", "published"]) & ~table["is_stale"].fillna(False)
    headline = table["metric"].where(~table["metric"].str.fullmatch(_NEIGHBOURHOODS), "top1")
    rows = table[(headline == metric) & is_fit]
    is_frames = rows["metric"] != metric
    rows = rows[is_frames | ~rows["eval_setting"].isin(set(rows.loc[is_frames, "eval_setting"]))]
    keys = ["model", *(name for name in _DISTINCTIONS if rows[name].nunique(dropna=False) > 1)]
    if (rows.groupby([*keys, "eval_setting"], dropna=False)[_NUMERICS].nunique(dropna=False) > 1).any():
        keys.append(_NUMERICS)
    means = rows.groupby([*keys, "eval_setting"], dropna=False, sort=True)["value"].mean()
    grid = means.unstack("eval_setting") if len(means) else pd.DataFrame(index=pd.Index([], name="model"))
    grid = grid.reset_index()
    grid.columns.name = None
    return grid


def write_table(table: pd.DataFrame, path: Path, *, override: bool = False) -> None:
    """Writes a table as its file name ends: .csv, .json (a list of objects) or .parquet.

    A missing value is an empty cell in CSV and null elsewhere; numbers are written with all their digits. The file is
    there whole or not at all.

    Raises:
        DataError: the file is there and `override` is not given, it cannot be written, or its ending is another.
        TestbedError: pyarrow, which writes parquet, is not installed.
    """
    write = _WRITERS.get(path.suffix)
    if write is None:
        raise DataError(f"{path} does not tell a format. Give a file name that ends in {', '.join(_WRITERS)}.")
    if path.exists() and not override:
        raise DataError(f"{path} is there already. Give --override to replace it, or another file.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:
            write(table, part)
            with open(part, "rb") as stream:
                os.fsync(stream.fileno())
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}. Give another file.") from error


def _write_csv(table: pd.DataFrame, path: Path) -> None:
    table.to_csv(path, index=False, lineterminator="\n")


def _write_json(table: pd.DataFrame, path: Path) -> None:
    names = list(table.columns)
    columns = [_plain(table[name]) for name in names]
    encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False).encode
    lines = (encode(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True))
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("[\n" + ",\n".join(lines) + "\n]\n")


def _write_parquet(table: pd.DataFrame, path: Path) -> None:
    try:
        table.to_parquet(path, engine="pyarrow", index=False)
    except ImportError as error:
        raise TestbedError("Writing .parquet needs pyarrow: pip install pyarrow. Or give a .csv or .json.") from error


_WRITERS: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    ".csv": _write_csv,
    ".json": _write_json,
    ".parquet": _write_parquet,
}


def _plain(column: pd.Series[Any]) -> list[Any]:
    """The values as Python's own, None where there is none."""
    values = column.to_numpy(dtype=object, copy=True)
    values[column.isna().to_numpy()] = None
    plain: list[Any] = values.tolist()
    return plain
