"""Correlations between shifts as a table, and how LaTeX sets it: Pearson's below the diagonal, Spearman's above."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from plotting.drawing.latex import Table, escape, stacked
from plotting.drawing.relatives import JACKKNIFE_WORDS, relatives
from plotting.drawing.shift_choice import MEASURES
from plotting.drawing.shifts import Robustness

from testbed.metrics.correlation import Kind, correlation

if TYPE_CHECKING:
    import pandas as pd

    from testbed.shift_pairs import ShiftPair

KINDS: tuple[Kind, ...] = ("pearson", "spearman")
DASH = "--"


def correlations_of(found: Robustness, measure: str) -> pd.DataFrame:
    """A row per two shifts and kind of correlation: value, ci_low, ci_high, n models, num_groups, method, reason.

    Args: measure: 'effective-robustness', or 'accuracy' under the shift.
    """
    import pandas as pd

    column = "rho" if measure == MEASURES[0] else "y"
    values = {
        pair.name: found.of(pair.name)[["entry", "model", "family", "model_type", column]] for pair in found.pairs
    }
    rows: list[dict[str, Any]] = []
    for first, second in combinations(found.pairs, 2):
        both = values[first.name].merge(values[second.name][["entry", column]], on="entry")
        x, y = (both[f"{column}_{side}"].to_numpy(np.float64) for side in ("x", "y"))
        for kind in KINDS:
            value = correlation(x, y, kind=kind, groups=relatives(both))
            rows.append({
                "first": first.name, "second": second.name, "measure": measure, "kind": kind, "value": value.value,
                "ci_low": value.ci_low, "ci_high": value.ci_high, "n": value.n,
                "num_groups": value.detail.get("num_groups"), "method": value.method, "reason": value.reason,
            })  # fmt: skip
    return pd.DataFrame(rows).astype({**dict.fromkeys(("value", "ci_low", "ci_high"), float), "num_groups": "Int64"})


def latex_of(found: Robustness, table: pd.DataFrame, measure: str) -> Table:
    """The table of correlations as LaTeX sets it. Args: table: of `correlations_of`."""
    known = {(row["first"], row["second"], row["kind"]): row for row in table.to_dict("records")}
    body = []
    for row, second in enumerate(found.pairs):
        cells = [_cell(known, row, column, found.pairs) for column in range(len(found.pairs))]
        body.append(
            [[escape(_title(second)), *(value for value, _ in cells)], ["", *(interval for _, interval in cells)]]
        )
    counts = f"{table['n'].min()}" if table["n"].nunique() == 1 else f"{table['n'].min()} to {table['n'].max()}"
    what = "effective robustness" if measure == MEASURES[0] else "accuracies"
    caption = (
        f"Correlation of {what} between shifts over {counts} models: Pearson's below the diagonal, Spearman's above. "
        f"In brackets 95 % intervals, {JACKKNIFE_WORDS}. {found.model_words(found.table)}"
    )
    caption += f" {found.line_words}" if measure == MEASURES[0] else ""
    return Table(
        columns="l" + "r" * len(found.pairs), body=body,
        header=[["", *(stacked(_title(pair)) for pair in found.pairs)]],
        caption=escape(caption), label=f"tab:correlations-{measure}",
    )  # fmt: skip


def _cell(known: dict[Any, Any], row: int, column: int, pairs: Any) -> tuple[str, str]:
    """A correlation and its interval."""
    if row == column:
        return "", ""
    first, second = sorted((row, column))
    found = known[pairs[first].name, pairs[second].name, KINDS[row < column]]
    if np.isnan(found["value"]):
        return DASH, ""
    interval = "" if np.isnan(found["ci_low"]) else f"[{_number(found['ci_low'])}, {_number(found['ci_high'])}]"
    return _number(found["value"]), rf"{{\tiny {interval}}}" if interval else ""


def _number(value: float) -> str:
    return escape(f"{value:.2f}".replace("-", "\N{MINUS SIGN}"))


def _title(pair: ShiftPair) -> str:
    """What a shift is called in a table: without what its figure says in brackets."""
    return pair.title.partition(" (")[0]
