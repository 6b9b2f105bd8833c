"""Scatter plots of effective robustness, with where standard models lie, and how closely two numbers go together."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from plotting.drawing.labels import label_points
from plotting.drawing.relatives import JACKKNIFE_WORDS, relatives
from plotting.drawing.scatter import draw_models
from plotting.drawing.shifts import FEW
from plotting.drawing.style import GREY, SMALL

from testbed.metrics.correlation import correlation

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from testbed.records import MetricValue

ACROSS = 4  # panels in a row of a page
HEIGHT = 1.6  # inches of a panel
MARGIN = 0.06  # of an axis, beyond the outermost models
BAND = "#EBEBEB"
PEARSON_WORDS = f"Pearson's correlation with its 95 % interval, {JACKKNIFE_WORDS}"
BARS = ("x_low", "x_high", "y_low", "y_high")


def panels(figure: Figure, count: int) -> list[Axes]:
    """So many axes in rows, the last row as full as there are panels left."""
    across = min(ACROSS, count)
    down = math.ceil(count / across)
    return [figure.add_subplot(down, across, number + 1) for number in range(count)]


def panel_height(count: int) -> float:
    """Inches that rows of so many panels take."""
    return HEIGHT * math.ceil(count / ACROSS) + 0.15


def draw_rho(
    axes: Axes, table: pd.DataFrame, highlighted: Collection[str], *, x_half: float | None, y_half: float | None
) -> None:
    """Draws a point for every model, and where those of the lines would lie; bars of highlighted ones, or of a few.

    Args:
        table: of `plotting.drawing.shifts.Robustness.against`.
        highlighted: labels of the models to name.
        x_half, y_half: half the prediction interval of standard models, in percentage points; None without an axis of
            effective robustness.
    """
    marked = table["entry"].isin(highlighted).to_numpy(np.bool_)
    for half, line, span in ((x_half, axes.axvline, axes.axvspan), (y_half, axes.axhline, axes.axhspan)):
        if half is not None:
            span(-half, half, facecolor=BAND, zorder=0, linewidth=0)
            line(0, color=GREY, linewidth=0.5, zorder=1)
    shown = table.copy()
    if len(table) > FEW:
        shown.loc[~marked, list(BARS)] = np.nan
    draw_models(axes, shown, is_highlighted=marked)
    if len(table):
        spread(axes, table)


def spread(axes: Axes, table: pd.DataFrame, *, margin: float = MARGIN) -> None:
    """Sets the limits to all points, with a margin as a share of what they span; bars may be cut."""
    for column, set_limits in (("x", axes.set_xlim), ("y", axes.set_ylim)):
        low, high = float(table[column].min()), float(table[column].max())
        room = margin * ((high - low) or 1.0)
        set_limits(low - room, high + room)


def name_models(axes: Axes, table: pd.DataFrame, highlighted: Collection[str]) -> None:
    """Writes the names of the highlighted models, once the axes have their final place."""
    rows = table[table["entry"].isin(highlighted)]
    if len(rows):
        label_points(axes, rows["x"], rows["y"], rows["entry"].tolist(), avoid=table[["x", "y"]].to_numpy(np.float64))


def pearson(table: pd.DataFrame) -> MetricValue:
    """Pearson's correlation of the two axes, its interval by `relatives`."""
    return correlation(table["x"], table["y"], kind="pearson", groups=relatives(table))


def correlation_words(value: MetricValue) -> str:
    """The correlation with interval and number of models, for a title: `r = 0.53 [0.38, 0.66], n = 186`."""
    if value.value is None:
        return f"no correlation, n = {value.n:,}"
    interval = "" if value.ci_low is None else f" [{value.ci_low:.2f}, {value.ci_high:.2f}]"
    return f"r = {value.value:.2f}{interval}, n = {value.n:,}".replace("-", "\N{MINUS SIGN}")


def label_sides(figure: Figure, x: str, y: str) -> None:
    """Labels the lowest panel of each column and the first of each row."""
    for number, axes in enumerate(figure.axes):
        if number >= len(figure.axes) - ACROSS:
            axes.set_xlabel(x, fontsize=SMALL)
        if number % ACROSS == 0:
            axes.set_ylabel(y, fontsize=SMALL)


def entitle(axes: Axes, title: str, value: MetricValue) -> None:
    """A title, and the correlation below it."""
    axes.set_title(f"{title}\n{correlation_words(value)}", fontsize=SMALL, linespacing=1.25)
