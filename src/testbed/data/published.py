"""Published tables of results as they lie on disk: the ImageNet Testbed's grid and timm's results files."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import count
from pathlib import Path
from typing import Literal, get_args

from testbed.errors import DataError
from testbed.fingerprint import file_sha256
from testbed.records import PublishedResult
from testbed.visible import visible

GRID, TIMM = "imagenet-testbed", "timm"  # names of the two formats; also of source and protocol, unless told otherwise

# What the files of timm's `results` folder evaluate, by the end of their name; the names are those of the grid where
# it has the same data.
TIMM_SETTINGS = {
    "imagenet": "val",
    "imagenet-real": "imagenet-real",
    "imagenet-a": "imagenet-a",
    "imagenet-a-clean": "val-on-imagenet-a-classes",
    "imagenet-r": "imagenet-r",
    "imagenet-r-clean": "val-on-imagenet-r-classes",
    "imagenetv2-matched-frequency": "imagenetv2-matched-frequency-format-val",  # the form that is published
    "sketch": "imagenet-sketch",
}
_TIMM_COLUMNS = ("model", "img_size", "top1", "top5")
_CLEAN = "val"
# Severity 1 of the corruptions in memory: cells that equal the clean accuracy to the last digit, which no severity
# above 1 has. A severity counted from 0 looks to have been read as "no corruption".
_SUSPECT = re.compile(r".+\.1_in-memory")
SAME_AS_CLEAN = "equals the clean accuracy exactly"
_ANCHORED = re.compile(r".+_(pm[1-9]\d*)")  # columns of anchors that are right with all frames around them

Unit = Literal["percent", "fraction"]
UNITS = get_args(Unit)

Rows = Sequence[Sequence[str]]
Result = Callable[..., PublishedResult]  # all but what a cell decides is filled in


def read_published(
    path: Path,
    *,
    source: str | None = None,
    protocol: str | None = None,
    eval_setting: str | None = None,
    unit: Unit | None = None,
) -> list[PublishedResult]:
    """Every cell of a published table, in percent: an empty one has no value, and 0 is 0.

    Args:
        path: a CSV file. Either the ImageNet Testbed's grid (`model`, then a column of top-1 accuracies per setting),
            or a results file of timm (a row per model and `img_size`, with `top1` and `top5`).
        source: name to import it under; that of the format if None.
        protocol: how the numbers were made; that of the format if None.
        eval_setting: what a results file of timm evaluates; told by its name if None.
        unit: of the cells; percent if None, unless every cell could be a fraction.
    Raises: DataError: no such file, neither of the two formats, a cell that is none of its unit, or no cell above 1
        and no unit told.
    """
    header, rows = read_rows(path)
    is_timm = set(_TIMM_COLUMNS) <= set(header)
    if not is_timm and (header[0] != "model" or len(header) < 2 or "img_size" in header):
        raise DataError(
            f"{path} is neither a grid ('model', then one column per setting) nor a results file of timm (with "
            f"{', '.join(_TIMM_COLUMNS)}): its columns are {', '.join(header)[:200]}."
        )
    if eval_setting is not None and not is_timm:
        raise DataError(f"{path} is a grid, whose columns name the settings. Leave out --eval-setting {eval_setting}.")
    name = TIMM if is_timm else GRID
    result = partial(PublishedResult, source=source or name, source_sha256=file_sha256(path), protocol=protocol or name)
    if is_timm:
        results = list(_timm(path, header, rows, eval_setting or _timm_setting(path), result))
    else:
        results = list(_grid(path, header, rows, result))
    return _in_percent(path, results, unit)


def _in_percent(path: Path, results: list[PublishedResult], unit: Unit | None) -> list[PublishedResult]:
    values = [one.value for one in results if one.value is not None]
    largest = max(values, default=None)
    if unit is None and largest is not None and largest <= 1:
        raise DataError(
            f"{path} has no number above {largest:g}: its accuracies look like fractions. Tell their unit with "
            "--unit fraction, or --unit percent where they are that low."
        )
    if unit != "fraction":
        return results
    if largest is not None and largest > 1:
        raise DataError(f"{path} has the number {largest:g}, which is no fraction. Leave out --unit, or give percent.")
    return [one if one.value is None else replace(one, value=_times_100(one.value)) for one in results]


def _times_100(fraction: float) -> float:
    return float(Decimal(repr(fraction)) * 100)  # 0.565 is 56.5, which binary arithmetic misses


def read_rows(path: Path) -> tuple[list[str], Rows]:
    """The columns of a CSV file and its rows, all as long. Raises: DataError: it cannot be read, or is none."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            header, *rows = [row for row in csv.reader(stream) if row] or [[""]]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Check the path.") from error
    except (UnicodeError, csv.Error) as error:
        raise DataError(f"{path} is not a CSV file: {error}. Give a CSV file.") from error
    if len(set(header)) < len(header):
        raise DataError(f"{path} names a column twice. Each setting may have one column.")
    for number, row in zip(count(2), rows, strict=False):
        if len(row) != len(header):
            raise DataError(f"{path}: row {number} has {len(row)} cells, but there are {len(header)} columns.")
        _check_shown(path, number, row)
    _check_shown(path, 1, header)
    return header, rows


def _check_shown(path: Path, number: int, row: Sequence[str]) -> None:
    """Refuses what would break a line, steer a terminal or turn the direction of the text around it."""
    for cell in row:
        if (shown := visible(cell)) != cell:
            raise DataError(
                f"{path}: row {number} has '{shown}', with characters that are not for show. Take them out."
            )


def _grid(path: Path, header: Sequence[str], rows: Rows, result: Result) -> Iterator[PublishedResult]:
    _check_distinct(path, [row[0] for row in rows], "model")
    for row in rows:
        cells = {setting: _percent(path, row[0], setting, text) for setting, text in zip(header, row, strict=True)
                 if setting != "model"}  # fmt: skip
        for setting, value in cells.items():
            is_suspect = value is not None and value == cells.get(_CLEAN) and _SUSPECT.fullmatch(setting)
            flag = SAME_AS_CLEAN if is_suspect else ""
            metric = anchored[1] if (anchored := _ANCHORED.fullmatch(setting)) else "top1"
            yield result(model=row[0], eval_setting=setting, metric=metric, value=value, flag=flag)


def _timm(
    path: Path, header: Sequence[str], rows: Rows, eval_setting: str, result: Result
) -> Iterator[PublishedResult]:
    model, size, top1, top5 = (header.index(name) for name in _TIMM_COLUMNS)
    _check_distinct(path, [f"{row[model]} at {row[size]} px" for row in rows], "model and input size")
    for row in rows:
        if not re.fullmatch(r"[1-9][0-9]*", row[size]):
            raise DataError(f"{path}: '{row[model]}' has the img_size '{row[size]}'. It must be a number of pixels.")
        for metric, column in (("top1", top1), ("top5", top5)):
            value = _percent(path, row[model], metric, row[column])
            yield result(
                model=row[model], eval_setting=eval_setting, metric=metric, value=value, input_size=int(row[size])
            )


def _timm_setting(path: Path) -> str:
    setting = TIMM_SETTINGS.get(path.stem.removeprefix("results-"))
    if setting is None:
        known = ", ".join(f"results-{name}.csv" for name in TIMM_SETTINGS)
        raise DataError(
            f"The name of {path} does not tell what was evaluated. Give --eval-setting NAME. Known: {known}."
        )
    return setting


def _percent(path: Path, model: str, column: str, text: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 100:
        raise DataError(f"{path}: '{model}' has '{text}' under '{column}'. It must be a percentage, or empty.")
    return value


def _check_distinct(path: Path, names: Sequence[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if not name or name in seen:
            raise DataError(f"{path}: the {what} '{name}' {'stands there twice' if name else 'is missing in a row'}.")
        seen.add(name)
