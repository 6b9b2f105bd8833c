"""Scatter plots of models on two settings: axes on a scale of accuracies, points by what a model was trained with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from plotting.drawing.style import GREY, PALETTE

from testbed.metrics.scales import scale_named

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from testbed.results.effective import Effective

MARGIN = 0.06  # of an axis, beyond the outermost values
EDGE = 1e-4  # percent: bars are drawn to here where the scale has no place for 0 and 100 %
FEWEST_TICKS = 4
GAP, WIDEST_GAP = 0.11, 0.25  # of an axis: the least distance of two ticks, and one that more ticks would fill
POINT, HIGHLIGHTED = 3.2, 5.5  # sizes of markers in points
LINE = "#444444"
OPACITY = 0.3  # of bars and bands
POINTS, LINES, FOREGROUND = 3.0, 4.0, 5.0  # what is drawn over what; bars lie under all points

# Round numbers of percent, the roundest first; those of the first groups also where a gap between ticks is wide, others
# only where an axis has less than a handful.
ROUND = 4
_TICKS: tuple[Sequence[float], ...] = (
    (0.01, 0.1, 1, 10, 50, 90, 99, 99.9, 99.99),
    (20, 30, 40, 60, 70, 80),
    (5, 95, 2, 98, 0.5, 99.5, 0.2, 99.8),
    tuple(range(5, 100, 5)),
    tuple(range(1, 100)),
    tuple(np.arange(0.5, 100, 0.5).tolist()),
    tuple(np.round(np.arange(0.1, 100, 0.1), 1).tolist()),
)


# Models that were trained on few images or on simple features: below the accuracies that lines are fitted to.
LOW_ACCURACY = frozenset(
    {"LOW_ACCURACY_CNN", "LINEAR_PIXELS", "NEAREST_NEIGHBORS", "RANDOM_FEATURES", "RANDOM_FORESTS"}
)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Models that are drawn alike. Args: words: for the legend; types: `model_type` of the models."""

    words: str
    types: frozenset[str]
    color: str
    marker: str


# In the paper's words, and in the order in which later ones are drawn over earlier ones.
KINDS = (
    Kind(words="type not known", types=frozenset(), color=GREY, marker="P"),
    Kind(words="low accuracy", types=LOW_ACCURACY, color=PALETTE[3], marker="v"),
    Kind(words="standard training", types=frozenset({"STANDARD"}), color=PALETTE[0], marker="o"),
    Kind(words="trained with more data", types=frozenset({"MORE_DATA"}), color=PALETTE[2], marker="^"),
    Kind(words="adversarially trained", types=frozenset({"LP_ADV"}), color=PALETTE[4], marker="D"),
    Kind(words="other robustness intervention", types=frozenset({"ROBUST_INTV"}), color=PALETTE[1], marker="s"),
)  # fmt: skip


def scale_axis(axes: Axes, side: Literal["x", "y"], scale: str, values: ArrayLike) -> None:
    """Puts an axis on a scale, around `values` in percent, with ticks at round numbers, each where it belongs."""
    places = scale_named(scale)

    def forward(percent: Any) -> NDArray[np.float64]:
        return places.of_percent(percent if scale == "linear" else np.clip(percent, EDGE, 100 - EDGE))

    given: Any = {"functions": (forward, places.to_percent)}
    (axes.set_xscale if side == "x" else axes.set_yscale)("function", **given)
    placed = places.of_percent(np.asarray(values, np.float64))
    placed = placed[np.isfinite(placed)]
    low, high = (placed.min(), placed.max()) if len(placed) else (-1.0, 1.0)
    room = MARGIN * ((high - low) or 0.5)
    bottom, top = places.to_percent([low - room, high + room]).tolist()
    (axes.set_xlim if side == "x" else axes.set_ylim)(bottom, top)
    axis = axes.xaxis if side == "x" else axes.yaxis
    axis.set_ticks(ticks(bottom, top, scale=scale))
    axis.set_major_formatter("{x:g}")


def scale_axes(axes: Axes, scale: str, table: pd.DataFrame) -> None:
    """Both axes on a scale, around the columns `x` and `y` in percent and their intervals."""
    sides: tuple[Literal["x", "y"], ...] = ("x", "y")
    for side in sides:
        scale_axis(axes, side, scale, table[[side, f"{side}_low", f"{side}_high"]].astype(np.float64))


def ticks(low: float, high: float, *, scale: str) -> list[float]:
    """Round numbers from `low` to `high` percent that stand apart on the scale, the roundest first taken."""
    start, end = scale_named(scale).of_percent([low, high]).tolist()
    chosen: dict[float, float] = {}  # the numbers, by where they stand on the axis from 0 to 1
    for step, group in enumerate(_TICKS):
        is_even = step >= ROUND or max(np.diff(sorted((0.0, *chosen, 1.0)))) < WIDEST_GAP
        if len(chosen) >= FEWEST_TICKS and is_even:
            break
        for value in (value for value in (0, *group, 100) if low <= value <= high):
            place = (float(scale_named(scale).of_percent(value)) - start) / (end - start)
            if 0 <= place <= 1 and all(abs(place - other) >= GAP for other in chosen):
                chosen[place] = float(value)
    return sorted(chosen.values())


def draw_models(axes: Axes, table: pd.DataFrame, *, is_highlighted: NDArray[np.bool_] | None = None) -> None:
    """Draws a point with intervals for every model, by type: own ones with a black rim, highlighted ones large, on top.

    Args:
        table: with `x`, `x_low`, `x_high`, the same of `y` (missing where there is no interval), `model_type` and
            `is_own`.
        is_highlighted: by row.
    """
    marked = np.zeros(len(table), np.bool_) if is_highlighted is None else is_highlighted
    is_own = table["is_own"].to_numpy(np.bool_)
    for kind, of_kind in _by_kind(table):
        _draw_bars(axes, table[of_kind], kind.color)
        for own, large in itertools.product((False, True), repeat=2):
            rows = table[of_kind & (is_own == own) & (marked == large)]
            size, rim = HIGHLIGHTED if large else POINT, "black" if own or large else "white"
            axes.plot(rows["x"], rows["y"], linestyle="none", color=kind.color, marker=kind.marker, markersize=size,
                      markeredgecolor=rim, markeredgewidth=0.7 if own else 0.3,
                      zorder=FOREGROUND if large else POINTS + own / 2)  # fmt: skip


def label_kinds(axes: Axes, table: pd.DataFrame) -> None:
    """Puts the kinds of models of a table into the legend of the axes."""
    for kind, _ in _by_kind(table):
        axes.plot([], [], linestyle="none", markersize=POINT + 1, markeredgecolor="white", label=kind.words,
                  color=kind.color, marker=kind.marker)  # fmt: skip


def draw_line(axes: Axes, effective: Effective) -> None:
    """Draws the line or lines with their bands, dashed where no model of the fit is."""
    for number, curve in effective.curve().groupby("line"):
        line = effective.lines[int(str(number))]
        within = curve["x"].between(line.x_low, line.x_high)
        axes.fill_between(curve["x"], curve["y_low"], curve["y_high"], color=LINE, alpha=OPACITY, linewidth=0,
                          zorder=LINES)  # fmt: skip
        axes.plot(curve["x"], curve["y"], color=LINE, linestyle=(0, (3, 2)), linewidth=0.8, zorder=LINES)
        axes.plot(curve["x"][within], curve["y"][within], color=LINE, zorder=LINES)


def draw_identity(axes: Axes) -> None:
    """Draws the line on which nothing is lost, as far as the axes reach."""
    both = [max(axes.get_xlim()[0], axes.get_ylim()[0]), min(axes.get_xlim()[1], axes.get_ylim()[1])]
    if both[0] < both[1]:
        axes.plot(both, both, color=GREY, linestyle=":", linewidth=0.8, zorder=1)


def _by_kind(table: pd.DataFrame) -> Iterator[tuple[Kind, NDArray[np.bool_]]]:
    """The kinds of which there are models, each with which rows are of it."""
    types = table["model_type"].fillna("").to_numpy(dtype=object)
    named = {one: kind for kind in KINDS for one in kind.types}
    kinds = [named.get(one, KINDS[0]) for one in types]
    for kind in KINDS:
        if any(of_kind := np.array([one is kind for one in kinds], np.bool_)):
            yield kind, of_kind


def _draw_bars(axes: Axes, rows: pd.DataFrame, color: str) -> None:
    def lengths(side: str) -> NDArray[np.float64]:
        value, low, high = (rows[name].to_numpy(np.float64) for name in (side, f"{side}_low", f"{side}_high"))
        return np.maximum([value - low, high - value], 0)  # a mean of draws may lie outside by a rounding

    axes.errorbar(rows["x"], rows["y"], xerr=lengths("x"), yerr=lengths("y"), linestyle="none", ecolor=color,
                  elinewidth=0.5, alpha=OPACITY, zorder=2)  # fmt: skip
