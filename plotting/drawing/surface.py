"""The surface of accuracies over test noise and training noise, in three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from plotting.drawing.style import GREY, PALETTE, SMALL, light_blues

from testbed.errors import TestbedError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 4.8, 3.6  # inches
ELEVATION, AZIMUTH = 24, 40  # degrees; the corner where most accuracy is lost comes to the front
BOX = (1.15, 1.15, 0.75)  # sides
LEAST = 2  # levels of each axis


def require_surface(cells: pd.DataFrame, *, dataset: str) -> None:
    """Raises: TestbedError: there are too few levels for a surface, or some of its cells are not stored."""
    tests, trains = cells["test_eps"].nunique(), cells["train_eps"].nunique()
    if min(tests, trains) < LEAST:
        raise TestbedError(
            f"A surface takes {LEAST} test levels and {LEAST} training levels at least, but {tests} and {trains} are "
            f"stored of {dataset}. Evaluate models that were fitted on noise, such as random-forest-mscr-linf."
        )
    if len(cells) < tests * trains:
        there = set(zip(cells["test_eps"], cells["train_eps"], strict=True))
        test, train = next(
            (test, train) for test in sorted(set(cells["test_eps"])) for train in sorted(set(cells["train_eps"]))
            if (test, train) not in there
        )  # fmt: skip
        raise TestbedError(
            f"{tests * trains - len(cells)} of the {tests * trains} cells of the surface are not stored, the first is "
            f"tested at {test:g} and fitted at {train:g}. Evaluate all models at all levels, or choose some with "
            f"--models."
        )


def draw_surface(figure: Figure, cells: pd.DataFrame, *, epsilon_min: float, unit: str) -> None:
    """Draws mean accuracies as a surface, the half width of each as a bar, and the line of equal noise on it.

    Args:
        cells: of `plotting.drawing.matrix`; every test level with every training level.
        epsilon_min: the level that is named so.
        unit: of the levels, which stand evenly spaced.
    """
    from matplotlib import rc_context

    grid = cells.pivot(index="test_eps", columns="train_eps")
    means, half = grid["acc_percent"], grid["ci95_percent"].to_numpy(np.float64)
    tests, trains = list(means.index), list(means.columns)
    heights = means.to_numpy(np.float64)
    with rc_context({"grid.linewidth": 0.4}):
        axes: Any = figure.add_subplot(projection="3d", computed_zorder=False)
    x, y = np.meshgrid(np.arange(len(trains)), np.arange(len(tests)))
    axes.plot_surface(x, y, heights, cmap=light_blues().reversed(), rstride=1, cstride=1, edgecolor=GREY,
                      linewidth=0.3, shade=False, zorder=1)  # fmt: skip
    for place in np.ndindex(heights.shape):
        ends = heights[place] + np.array([-1, 1]) * half[place]
        axes.plot([x[place]] * 2, [y[place]] * 2, ends, color="black", linewidth=0.8, zorder=2)
    equal = [(trains.index(level), tests.index(level)) for level in trains if level in tests]
    if len(equal) > 1:
        across, along = np.array(equal).T
        axes.plot(across, along, heights[along, across], color=PALETTE[1], marker="s", markersize=2.5, zorder=3)
    _label(axes, tests, trains, epsilon_min=epsilon_min, unit=unit)


def _label(axes: Any, tests: Sequence[float], trains: Sequence[float], *, epsilon_min: float, unit: str) -> None:
    def name(level: float) -> str:
        return "ε$_{min}$" if level == epsilon_min else f"{level:g}"

    axes.set_xticks(range(len(trains)), [name(level) for level in trains])
    axes.set_yticks(range(len(tests)), [name(level) for level in tests])
    axes.set_xlabel(f"fitted at noise level ε ({unit})", labelpad=2)
    axes.set_ylabel(f"tested at noise level ε ({unit})", labelpad=2)
    axes.set_zlabel("top-1 accuracy (%)", labelpad=0)
    axes.tick_params(labelsize=SMALL, pad=-1)
    axes.view_init(ELEVATION, AZIMUTH)
    axes.set_box_aspect(BOX, zoom=0.95)
