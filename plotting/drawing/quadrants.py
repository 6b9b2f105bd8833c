"""Relative against effective robustness: in which of the four quadrants models lie."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from plotting.drawing.baselines import read_baselines, with_baselines
from plotting.drawing.rho_panels import BAND, spread
from plotting.drawing.scatter import draw_models
from plotting.drawing.shifts import FEW
from plotting.drawing.style import GREY, SMALL

from testbed.errors import DataError
from testbed.results.relative import with_tau

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from plotting.drawing.shifts import Robustness


CORNERS = 0.17  # of an axis, which leaves room for the counts
COUNT_BOX = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.7}


def tables_of(found: Robustness, baselines: Path | None) -> pd.DataFrame:
    """A row per shift and model with a baseline: x is rho, y is tau, each with its interval; with `baseline`.

    Raises: DataError: no model has a baseline that is there.
    """
    import pandas as pd

    given = {} if baselines is None else read_baselines(baselines)
    tables = []
    for pair in found.pairs:
        whole = with_tau(with_baselines(found.effective[pair.name].table, given))
        rows = whole[whole["entry"].isin(found.of(pair.name)["entry"]) & whole["tau"].notna() & whole["rho"].notna()]
        rows = rows.drop(columns=["x", "x_low", "x_high", "x_n", "y", "y_low", "y_high", "y_n"])
        names = {"rho": "x", "rho_low": "x_low", "rho_high": "x_high", "tau": "y", "tau_low": "y_low",
                 "tau_high": "y_high"}  # fmt: skip
        tables.append(rows.rename(columns=names).assign(shift=pair.name))
    table = pd.concat(tables, ignore_index=True)
    if table.empty:
        raise DataError(
            "No model that is shown has a baseline among the models with both settings. Name baselines with "
            "--baselines FILE, a CSV with the columns model,baseline."
        )
    return table


def draw_quadrants(axes: Axes, table: pd.DataFrame, found: Robustness, shift: str) -> None:
    """Draws a point for every model, and how many lie in each quadrant. Args: table: of `tables_of`, of one shift."""
    marked = table["entry"].isin(found.highlighted).to_numpy(np.bool_)
    half = found.half_width(shift)
    axes.axvspan(-half, half, facecolor=BAND, zorder=0, linewidth=0)
    axes.axvline(0, color=GREY, linewidth=0.5, zorder=1)
    axes.axhline(0, color=GREY, linewidth=0.5, zorder=1)
    shown = table.copy()
    if len(table) > FEW:
        shown.loc[~marked, ["x_low", "x_high"]] = np.nan
    draw_models(axes, shown, is_highlighted=marked)
    if len(table) == 0:
        return
    spread(axes, table, margin=CORNERS)
    x, y = (table[name].to_numpy(np.float64) for name in ("x", "y"))
    for right in (False, True):
        for up in (False, True):
            count = int(np.sum(((x > 0) == right) & ((y > 0) == up)))
            axes.text(0.98 if right else 0.02, 0.98 if up else 0.02, f"{count}", transform=axes.transAxes,
                      ha="right" if right else "left", va="top" if up else "bottom", fontsize=SMALL, zorder=8,
                      bbox=COUNT_BOX)  # fmt: skip
