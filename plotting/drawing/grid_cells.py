"""A grid of models and settings as a coloured picture: every cell an accuracy, hatched where there is none."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from plotting.drawing.setting_columns import Column, groups_of
from plotting.drawing.style import COLUMN, GREY, SMALL, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LARGEST, SMALLEST = 0.24, 0.075  # inches: the side of a cell in a small grid, and in one of hundreds of models
COMFORTABLE = 14.0  # inches that large cells may take
NUMBERED = 0.15  # inches: a narrower cell holds no number
BESIDE, ABOVE = 0.7, 0.2  # inches: what stands around the cells and their names, the first with the bar of colours
BAR, LONGEST_BAR = 0.1, 3.0  # inches: its width, and its length where the cells are higher
LETTERS = 64  # of a name, at most
LETTER = 0.6  # width of one, over its height
PIXELS, LONGEST = 40e6, 20e3  # of the PNG, at most: all, and those of a side
WIDE = 1.45  # a cell with a number, over its height
DARK = 47.0  # percent below which white text has more contrast than black


@dataclass(frozen=True)
class Grid:
    """What is drawn.

    Args:
        values: percent; a row per entry and a column per setting, both in the order of the picture; NaN where missing.
        is_flagged: of the same shape, whether a value is marked as suspect.
        columns: of `values`.
    """

    values: pd.DataFrame
    is_flagged: pd.DataFrame
    columns: Sequence[Column]

    @property
    def cell(self) -> tuple[float, float]:
        """Width and height of a cell in inches."""
        rows, columns = self.values.shape
        height = float(np.clip(COMFORTABLE / rows, SMALLEST, LARGEST))
        width = float(np.clip(COMFORTABLE / columns, SMALLEST, LARGEST))
        if self.has_numbers:
            side = min(height, COMFORTABLE / (WIDE * columns))
            return WIDE * side, side
        return min(width, 2 * height), min(height, 2 * width)

    @property
    def has_numbers(self) -> bool:
        """Whether there are so few cells that each has room for its number."""
        rows, columns = self.values.shape
        return NUMBERED * max(rows, WIDE * columns) <= COMFORTABLE

    @property
    def names(self) -> list[str]:
        """Of the entries, as they are shown."""
        return [plain(str(entry), LETTERS) for entry in self.values.index]

    @property
    def labels(self) -> list[str]:
        """Of the columns, as they are shown."""
        return [plain(column.label, LETTERS) for column in self.columns]

    @property
    def letter_size(self) -> float:
        """Of names, in points."""
        return min(SMALL, min(self.cell) * 72 * 0.85)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the figure in inches, without the caption."""
        (rows, columns), (width, height) = self.values.shape, self.cell
        letter = LETTER * self.letter_size / 72
        beside = letter * max(map(len, self.names)) + BESIDE
        above = letter * max(map(len, self.labels)) + ABOVE
        turned = [name for name, span in groups_of(self.columns).items() if not _wrapped(name, span, width)]
        below = LETTER * SMALL / 72 * max(map(len, turned), default=3)
        return max(COLUMN, columns * width + beside), rows * height + above + below

    @property
    def resolution(self) -> float:
        """Dots per inch of the PNG, so that it stays a picture that can be opened."""
        width, height = self.size
        return float(min(300.0, np.sqrt(PIXELS / (width * height)), LONGEST / max(width, height)))


def grid_of(points: pd.DataFrame, columns: Sequence[Column]) -> Grid:
    """The points as a grid: settings without any left out, models by the first clean setting that they have.

    Args: points: of `testbed.results.points.model_points`.
    """
    values = points.pivot(index="entry", columns="eval_setting", values="value")
    flags = points.assign(flag=points["flag"].notna()).pivot(index="entry", columns="eval_setting", values="flag")
    there = [column for column in columns if column.setting in values]
    names = [column.setting for column in there]
    values = values[names].astype(float)
    clean = values.bfill(axis=1).iloc[:, 0]
    place = values.notna().to_numpy().argmax(axis=1)  # models without the first setting stand below those with it
    order = np.lexsort((values.index.to_numpy(str), -clean.to_numpy(), place))
    return Grid(values.iloc[order], flags[names].iloc[order].fillna(False).astype(bool), there)


def draw_grid(figure: Figure, grid: Grid) -> None:
    """Draws the cells, the names around them and what the columns have in common."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.patches import Rectangle

    axes: Any = figure.subplots()
    (rows, columns), (width, height) = grid.values.shape, grid.cell
    look: dict[str, Any] = {"facecolor": "white", "hatch": "//////", "edgecolor": "#BFBFBF", "linewidth": 0}
    axes.add_patch(Rectangle((-0.5, -0.5), columns, rows, zorder=0, **look))
    scale = ScalarMappable(Normalize(0, 100), "cividis")
    colours = scale.to_rgba(np.ma.masked_invalid(grid.values), bytes=True)  # once, and not for every pixel
    axes.imshow(colours, aspect=height / width, interpolation="none")
    y, x = np.nonzero(grid.is_flagged.to_numpy())
    axes.plot(x, y, linestyle="none", marker="x", color="#D55E00", markersize=height * 72 * 0.5,
              markeredgewidth=height * 72 * 0.12)  # fmt: skip
    if grid.has_numbers:
        _write_numbers(axes, grid, height)
    _name(axes, grid)
    _mark_groups(axes, grid, width)
    length = min(1.0, LONGEST_BAR / (rows * height))
    place = (1 + BAR / (columns * width), 1 - length, BAR / (columns * width), length)  # from the top of the cells
    bar = figure.colorbar(scale, cax=axes.inset_axes(place))
    bar.set_label("accuracy (%)")
    bar.outline.set_visible(False)


def _write_numbers(axes: Axes, grid: Grid, height: float) -> None:
    size = min(SMALL, height * 72 * 0.5)
    for (row, column), value in np.ndenumerate(grid.values.to_numpy()):
        if not np.isnan(value):
            text = f"{value:.1f}" if value < 99.95 else "100"
            axes.text(column, row, text, fontsize=size, ha="center", va="center_baseline",
                      color="black" if value > DARK else "white")  # fmt: skip


def _name(axes: Axes, grid: Grid) -> None:
    rows, columns = grid.values.shape
    axes.set_xticks(range(columns), grid.labels, rotation=90, fontsize=grid.letter_size)
    axes.set_yticks(range(rows), grid.names, fontsize=grid.letter_size)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=1.5)
    axes.spines[:].set_visible(False)


def _mark_groups(axes: Axes, grid: Grid, width: float) -> None:
    """A line between groups of columns, and below each what it has in common."""
    transform = axes.get_xaxis_transform()
    for name, span in groups_of(grid.columns).items():
        first, last = span
        axes.axvline(last - 0.5, color="white", linewidth=1.5)
        axes.plot([first - 0.35, last - 0.65], [0, 0], transform=transform, color=GREY, linewidth=0.8, clip_on=False)
        wrapped = _wrapped(name, span, width)
        axes.annotate(
            wrapped or name, ((first + last - 1) / 2, 0), xycoords=transform, xytext=(0, -3),
            textcoords="offset points", rotation=0 if wrapped else 90, ha="center", va="top", fontsize=SMALL,
        )  # fmt: skip


def _wrapped(name: str, span: tuple[int, int], width: float) -> str:
    """The name of a group in lines that are no longer than its columns are wide together; empty if it has no such."""
    letters = int((span[1] - span[0]) * width * 72 / (LETTER * SMALL))
    lines = textwrap.wrap(name, max(1, letters), break_long_words=False)
    return "\n".join(lines) if max(map(len, lines)) <= letters else ""
