"""Figures of models on pairs of settings: a panel for each pair, with the line that is fitted to it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from plotting.drawing.labels import label_points
from plotting.drawing.scatter import LINE, draw_identity, draw_line, draw_models, label_kinds, scale_axes
from plotting.drawing.shift_panels import Panel, Panels
from plotting.drawing.style import COLUMN, GREY, PAGE, SMALL, add_legend, new_figure, plain, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHTS = {1: 2.9, 2: 2.7, 3: 2.05}  # inches of a panel, by how many stand in a row
NAME = {1: 38, 2: 38, 3: 28}  # letters of a model's name there
SETTING, LONGEST = 44, 80  # letters of a setting's name on an axis and in the caption


def save_panels(found: Panels, path: Path, *, title: str) -> list[Path]:
    """Draws a panel for each pair, and writes the files of the figure.

    Args:
        path: without an ending.
        title: what is shown, which starts the caption.
    """
    names = (
        "" if len(found.panels) == 1 else f"Settings: {', '.join(plain(one.pair.y, LONGEST) for one in found.panels)}. "
    )
    across = {1: 1, 2: 2, 4: 2}.get(len(found.panels), 3)
    down = math.ceil(len(found.panels) / across)
    with new_figure(width=COLUMN if across == 1 else PAGE, height=HEIGHTS[across] * down) as figure:
        grid = figure.subplots(down, across, squeeze=False).ravel()
        for axes in grid[len(found.panels) :]:
            axes.remove()
        for axes, panel in zip(grid, found.panels, strict=False):
            _draw(axes, panel, found)
        label_kinds(grid[0], found.table)
        _label_lines(grid[0], found)
        add_legend(figure)
        unnamed = _label_models(figure, found, NAME[across])
        return save(figure, found.table, path, caption=f"{title}: {found.caption} {unnamed}{names}")


def _draw(axes: Axes, panel: Panel, found: Panels) -> None:
    scale_axes(axes, panel.scale, panel.drawn)
    draw_identity(axes)
    draw_models(axes, panel.drawn, is_highlighted=found.comparison.is_highlighted(panel.drawn))
    if panel.effective is not None:
        draw_line(axes, panel.effective)
    if len(found.panels) == 1:
        axes.set_xlabel(f"{plain(panel.pair.x, SETTING)} (%)\n{panel.images('x')}")
        named = "" if panel.pair.title == panel.pair.y else f"{plain(panel.pair.title, SETTING)}\n"
        axes.set_ylabel(f"{named}{plain(panel.pair.y, SETTING)} (%)\n{panel.images('y')}")
    else:
        axes.set_title(plain(panel.pair.title, SETTING), fontsize=SMALL, pad=3)
        axes.set_xlabel(f"{plain(panel.pair.x, SETTING)} (%), {panel.images('x')}", fontsize=SMALL)
        axes.set_ylabel(f"accuracy (%), {panel.images('y')}", fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)


def _label_lines(axes: Axes, found: Panels) -> None:
    if any(panel.effective is not None for panel in found.panels):
        axes.plot([], [], color=LINE, label="fitted line")
    axes.plot([], [], color=GREY, linestyle=":", linewidth=0.8, label="y = x")


def _label_models(figure: Figure, found: Panels, length: int) -> str:
    """Writes the names of highlighted models; last, as what is drawn later moves the panels.

    Returns: a sentence on names that have no place, empty without any.
    """
    if found.comparison.highlight:
        figure.draw_without_rendering()
    left_out = 0
    for axes, panel in zip(figure.axes, found.panels, strict=False):
        is_marked = found.comparison.is_highlighted(panel.drawn)
        if is_marked.any():
            rows = panel.drawn[is_marked]
            points = panel.drawn[["x", "y"]].to_numpy(np.float64)
            left_out += label_points(axes, rows["x"], rows["y"], list(rows["entry"]), avoid=points, length=length,
                                     is_laid_out=True)  # fmt: skip
    return f"{left_out:,} names of large points have no free place. " if left_out else ""
