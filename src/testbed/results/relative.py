"""Relative robustness: what a model has more than the baseline that it was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


def with_tau(table: pd.DataFrame) -> pd.DataFrame:
    """The table with tau = y - y of the model's baseline, and its interval; missing without a baseline that is there.

    The baseline is the model of the name in `baseline` of the same source, label space and protocol, and where it has
    several of these at several input sizes the one of the model's. The interval takes the two accuracies for
    independent, though both may be of the same images, which `db.py --compare` makes use of.

    Source: Taori et al., NeurIPS 2020, section 3; Newcombe, Statistics in Medicine 17, 1998 (method 10).
    """
    values = np.full((3, len(table)), np.nan)
    for place, has_baseline in enumerate(table["baseline"].notna()):
        if has_baseline:
            row = table.iloc[place]
            values[:, place] = _tau(row, _baseline(table, row))
    return table.assign(tau=values[0], tau_low=values[1], tau_high=values[2])


def _baseline(table: pd.DataFrame, row: pd.Series[Any]) -> pd.Series[Any] | None:
    if _is_missing(row["baseline"]) or row["baseline"] == row["model"]:
        return None
    found = table[table["model"] == row["baseline"]]
    for name in ("source", "label_space", "protocol"):
        found = found[_is_same(found, row, name)]
    sized = found[_is_same(found, row, "input_size")]
    fitting = sized if len(found) > 1 else found
    return fitting.iloc[0] if len(fitting) == 1 else None


def _is_same(found: pd.DataFrame, row: pd.Series[Any], name: str) -> NDArray[np.bool_]:
    return np.array([_same(value, row[name]) for value in found[name]], np.bool_)


def _tau(row: pd.Series[Any], base: pd.Series[Any] | None) -> tuple[float, float, float]:
    if base is None:
        return (np.nan, np.nan, np.nan)
    low, high, base_low, base_high = (
        np.nan if _is_missing(value) else float(value)
        for value in (row["y_low"], row["y_high"], base["y_low"], base["y_high"])
    )
    tau = float(row["y"] - base["y"])
    below = np.hypot(row["y"] - low, base_high - base["y"])
    above = np.hypot(high - row["y"], base["y"] - base_low)
    return tau, tau - below, tau + above


def _is_missing(value: Any) -> bool:
    import pandas as pd

    return bool(pd.isna(value)) or value == ""


def _same(value: Any, other: Any) -> bool:
    return (_is_missing(value) and _is_missing(other)) or (not _is_missing(value) and bool(value == other))
