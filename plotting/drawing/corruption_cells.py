"""Coloured tables of corruption x severity, one for each model, on one scale of colours."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from plotting.drawing.corruption_table import Corruptions
from plotting.drawing.style import COLUMN, GREY, PAGE, SMALL, light_blues, plain

from testbed.metrics.corruption import NUM_SEVERITIES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    Places = Mapping[tuple[str, str], float | None]  # by corruption and column, the number or that there is none

ROW, AROUND = 0.17, 0.45  # inches: the height of a row, and what stands above and below a table
ALL = "all"
COLUMNS = (*map(str, range(1, NUM_SEVERITIES + 1)), ALL)
BESIDE = 3  # tables in one row of a page
LETTERS = 16  # of the scale's label that an inch holds


def tables_size(stored: Corruptions) -> tuple[float, float]:
    """Width and height in inches: one table fits a column, three a page."""
    rows, across = len({name for name, _ in stored.wanted}), min(BESIDE, len(stored.models))
    width = COLUMN + (across - 1) / (BESIDE - 1) * (PAGE - COLUMN)
    return width, math.ceil(len(stored.models) / across) * (rows * ROW + AROUND)


def draw_tables(figure: Figure, stored: Corruptions) -> None:
    """Draws a table for every model; cells without a number are hatched."""
    across = min(BESIDE, len(stored.models))
    scale = _scale(stored.table["value"], is_dark_large=stored.metric == "q")
    down = math.ceil(len(stored.models) / across)
    panels = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for axes, model in zip(panels, stored.models, strict=False):
        places = dict.fromkeys(_wanted(stored)) | _numbers(stored.table[stored.table["model"] == model])
        _draw_table(axes, places, scale)
        axes.set_title(plain(model), fontsize=SMALL)
    for axes in panels[len(stored.models) :]:
        axes.remove()
    bar = figure.colorbar(scale, ax=list(panels[: len(stored.models)]), aspect=30, pad=0.01,
                          shrink=1 / down, anchor=(0, 1))  # fmt: skip
    letters = int(LETTERS * tables_size(stored)[1] / down)  # a bar beside few corruptions is short
    bar.set_label("\n".join(textwrap.wrap(stored.label, letters, break_long_words=False, break_on_hyphens=False)))
    bar.outline.set_visible(False)


def _wanted(stored: Corruptions) -> list[tuple[str, str]]:
    """The places of all cells, and of all severities of a corruption together."""
    cells = [(name, ALL if severity is None else str(severity)) for name, severity in stored.wanted]
    together = [(name, ALL) for name, severity in stored.wanted if severity == NUM_SEVERITIES]
    return cells + together


def _numbers(rows: pd.DataFrame) -> dict[tuple[str, str], float | None]:
    """The numbers of a model by their places."""
    defined = rows[rows["value"].notna()]
    columns = [ALL if is_all else str(level) for is_all, level in
               zip(defined["severity"].isna(), defined["severity"], strict=True)]  # fmt: skip
    return dict(zip(zip(defined["corruption"], columns, strict=True), defined["value"], strict=True))


def _draw_table(axes: Axes, places: Places, scale: ScalarMappable) -> None:
    names = list(dict.fromkeys(name for name, _ in places))
    for (name, column), value in places.items():
        _draw_cell(axes, COLUMNS.index(column), names.index(name), value, scale)
    axes.set_xlim(-0.5, len(COLUMNS) - 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xticks(range(len(COLUMNS)), COLUMNS)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0, labelsize=SMALL)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("severity")


def _draw_cell(axes: Axes, x: int, y: int, value: float | None, scale: ScalarMappable) -> None:
    """A rectangle of the size 1 with the number in it; without one it is hatched."""
    from matplotlib.patches import Rectangle

    look: dict[str, Any] = {"facecolor": "white", "hatch": "//////", "edgecolor": GREY, "linewidth": 0}
    if value is not None:
        look = {"facecolor": scale.to_rgba(np.array(value)), "edgecolor": "white", "linewidth": 0.5}
        text = f"{value:.1f}" if value < 99.95 else "100"
        axes.text(x, y, text, fontsize=SMALL, ha="center", va="center_baseline")
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **look))


def _scale(values: pd.Series[float], *, is_dark_large: bool) -> ScalarMappable:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    low, high = (0.0, 1.0) if values.isna().all() else (values.min(), values.max())
    colours = light_blues() if is_dark_large else light_blues().reversed()
    return ScalarMappable(Normalize(low, max(high, low + 0.1)), colours)
