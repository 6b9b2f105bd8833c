"""The coloured table of a matrix of accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from plotting.drawing.style import FONT_SIZE, PAGE, SMALL, light_blues

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

ROW_HEIGHT = 0.3  # inches
LABELS = 1.6  # inches beside the columns: levels to the left, the scale of the colours to the right
GAP = 0.25  # rows between the accuracies and MSCR
MATCHED = "#C8C8C8"  # fitted and tested at one level


def table_height(cells: pd.DataFrame) -> float:
    """Inches that the table takes with its labels."""
    return float(ROW_HEIGHT * (cells["test_eps"].nunique() + 1 + GAP) + 0.5)


def draw_matrix(figure: Figure, cells: pd.DataFrame, mscr: pd.DataFrame, *, epsilon_min: float, unit: str) -> None:
    """Draws a cell for every mean with its half width, coloured by its error rate, and MSCR below them.

    Args:
        figure: as wide as a page.
        cells, mscr: of `plotting.drawing.matrix`.
        epsilon_min: the level that is named so.
        unit: of the levels.
    """
    from matplotlib.ticker import LogLocator

    tests, trains = sorted(set(cells["test_eps"])), sorted(set(cells["train_eps"]))
    bottom = len(tests) + GAP
    axes, scale = figure.subplots(), _scale(100 - cells["acc_percent"])
    digits, mscr_digits = _digits(cells["ci95_percent"]), _digits(mscr["ci95_percent"])
    size = _text_size(len(trains), max(digits, mscr_digits))
    for cell in cells.to_dict("records"):
        error = max(100 - cell["acc_percent"], scale.norm.vmin or 0)
        colour = MATCHED if cell["train_eps"] == cell["test_eps"] else scale.to_rgba(error)
        place = trains.index(cell["train_eps"]), float(tests.index(cell["test_eps"]))
        texts = f"{cell['acc_percent']:.{digits}f}", f"± {cell['ci95_percent']:.{digits}f}"
        _draw_cell(axes, place, texts, colour, size=size, is_bold=cell["is_best"])
    for cell in mscr.to_dict("records"):
        place = trains.index(cell["train_eps"]), bottom
        texts = f"{cell['mscr_percent']:+.{mscr_digits}f}", f"± {cell['ci95_percent']:.{mscr_digits}f}"
        _draw_cell(axes, place, texts, "white", size=size)
    _label(axes, tests, trains, bottom, epsilon_min=epsilon_min, unit=unit)
    ticks = LogLocator(subs=(1, 2, 3, 4, 5, 6, 8))
    bar = figure.colorbar(scale, ax=axes, aspect=30, pad=0.01, format="{x:g}", ticks=ticks)
    bar.minorticks_off()
    bar.set_label("error rate (%)")
    bar.outline.set_visible(False)


def _draw_cell(
    axes: Axes, place: tuple[float, float], texts: tuple[str, str], colour: Any, *, size: float, is_bold: bool = False
) -> None:
    """A rectangle of the size 1 around `place`, and in it a number over its half width, which one run has not."""
    from matplotlib.patches import Rectangle

    x, y = place
    value, half_width = (text.replace("-", "\N{MINUS SIGN}") for text in texts)
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white", linewidth=0.8))
    weight = "bold" if is_bold else "normal"
    is_alone = "nan" in half_width
    axes.text(x, y - (0 if is_alone else 0.18), value, fontsize=size, fontweight=weight, ha="center", va="center")
    if not is_alone:
        axes.text(x, y + 0.24, half_width, fontsize=size * SMALL / FONT_SIZE, ha="center", va="center")


def _label(
    axes: Axes, tests: Sequence[float], trains: Sequence[float], bottom: float, *, epsilon_min: float, unit: str
) -> None:
    def name(level: float) -> str:
        return "ε$_{min}$" if level == epsilon_min else f"{level:g}"

    axes.set_xlim(-0.5, len(trains) - 0.5)
    axes.set_ylim(bottom + 0.5, -0.5)
    axes.set_xticks(range(len(trains)), [name(level) for level in trains])
    axes.set_yticks([*range(len(tests)), bottom], [*map(name, tests), "MSCR (%)"])
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(f"fitted at noise level ε ({unit})")
    axes.set_ylabel("tested at noise level ε")


def _scale(errors: pd.Series[float]) -> ScalarMappable:
    """From light to middle blue over the logarithm of the error rate."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    positive = errors[errors > 0]
    low, high = (positive.min(), positive.max()) if len(positive) else (0.1, 1.0)
    return ScalarMappable(LogNorm(low, max(high, low * 1.1)), light_blues())


def _digits(half_widths: pd.Series[float]) -> int:
    """Decimals that show two digits of a usual half width, one to three."""
    usual = half_widths.median()
    return 2 if np.isnan(usual) or usual == 0 else int(np.clip(1 - np.floor(np.log10(usual)), 1, 3))


def _text_size(columns: int, digits: int) -> float:
    """Points at which a percentage with so many decimals fits a column."""
    return min(FONT_SIZE, (PAGE - LABELS) / columns * 72 / (0.65 * (digits + 4)))
