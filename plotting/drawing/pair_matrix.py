"""The matrix of scatter plots of every shift against every other: plots below the names, correlations above them."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from plotting.drawing.rho_panels import correlation_words, draw_rho, pearson
from plotting.drawing.style import PAGE, plain
from plotting.drawing.wrapping import wrapped

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from plotting.drawing.shifts import Robustness

    from testbed.records import MetricValue

LETTERS = 0.62  # of their size wide, at most
HIGHEST = 1.4  # inches of a row
PATIENCE = 12  # letters that a word may have before it is broken


def matrix_height(count: int) -> float:
    """Inches of a matrix of so many shifts, as wide as a page."""
    return min(PAGE, HIGHEST * count)


def tables_of(found: Robustness) -> pd.DataFrame:
    """A row per model and pair of shifts, as `Robustness.against` gives it, with the names of both shifts."""
    import pandas as pd

    return pd.concat(
        [
            found.against(first.name, second.name).assign(x_shift=first.name, y_shift=second.name)
            for first, second in combinations(found.pairs, 2)
        ],
        ignore_index=True,
    )


def draw_pairs(figure: Figure, found: Robustness, table: pd.DataFrame) -> None:
    """Draws the matrix, the first plot first. Args: table: of `tables_of`."""
    names = [pair.name for pair in found.pairs]
    grid: Any = figure.subplots(len(names), len(names), squeeze=False, gridspec_kw={"wspace": 0, "hspace": 0})
    size = PAGE / len(names) * 72
    for row, second in enumerate(names):
        for column, first in enumerate(names):
            axes = grid[row, column]
            if row == column:
                _empty(axes, _wrapped(found.pairs[row].title), size / PATIENCE / LETTERS)
                continue
            low, high = (first, second) if column < row else (second, first)
            rows = table[(table["x_shift"] == low) & (table["y_shift"] == high)]
            if column < row:
                draw_rho(axes, rows, found.highlighted, x_half=found.half_width(first),
                         y_half=found.half_width(second))  # fmt: skip
                _number(axes, is_left=column == 0, is_lowest=row == len(names) - 1)
            else:
                value = pearson(rows)
                _empty(axes, _lines(value), size / PATIENCE / LETTERS, shade=value.value)
    _plots_first(figure)


def _plots_first(figure: Figure) -> None:
    """The legend is made of the first axes, so those with models come first."""
    for axes in list(figure.axes):
        if not axes.has_data():
            figure.delaxes(axes)
            figure.add_axes(axes)


def _wrapped(title: str) -> str:
    return "\n".join(map(plain, wrapped(title, PATIENCE)))


def _lines(value: MetricValue) -> str:
    """The correlation, its interval and n, each on a line."""
    words = correlation_words(value)
    return words.removeprefix("r = ").replace(" [", "\n[").replace(", n", "\nn")


def _empty(axes: Axes, text: str, size: float, *, shade: float | None = None) -> None:
    """Axes with nothing but text, the darker the further a correlation is from 0."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    if shade is not None:
        axes.set_facecolor(_colour(shade))
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=min(size, 7.0))


def _colour(correlation: float) -> Any:
    """From orange over white to blue, light enough for black text."""
    from matplotlib import colormaps

    return colormaps["PuOr"](0.5 + 0.3 * correlation)


def _number(axes: Axes, *, is_left: bool, is_lowest: bool) -> None:
    """Numbers on the outer axes alone."""
    axes.tick_params(labelleft=is_left, labelbottom=is_lowest, labelsize=5, length=2)
    axes.locator_params(nbins=3)
