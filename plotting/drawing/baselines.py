"""Which models others were made from by an intervention, as the user says."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


def read_baselines(path: Path) -> dict[str, str]:
    """Baselines by model, of a CSV with the columns `model` and `baseline`.

    Raises: DataError: the file cannot be read, or lacks a column.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read ({error}). Give a CSV with the columns model,baseline.") from error
    if not rows or not {"model", "baseline"} <= set(rows[0]):
        raise DataError(f"{path} has no rows with the columns model,baseline. Give a CSV that has them.")
    return {row["model"]: row["baseline"] for row in rows if row["model"] and row["baseline"]}


def with_baselines(table: pd.DataFrame, given: Mapping[str, str]) -> pd.DataFrame:
    """The table with `baseline`: what is given, else what it has."""
    given_ones = table["model"].map(dict(given)).astype(object)
    return table.assign(baseline=given_ones.where(given_ones.notna(), table["baseline"]))
