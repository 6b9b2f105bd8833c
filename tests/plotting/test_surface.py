"""The surface over test and training noise: its points, its bars, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from plotting.drawing.style import new_figure
from plotting.drawing.surface import draw_surface, require_surface

from testbed.errors import TestbedError

Drawn = Callable[[str], dict[str, Path]]
LEVELS = (0.0, 0.004, 0.01)
CELLS = pd.DataFrame(
    [(test, train, 90 + i - j, float(i), 0.5 * j) for i, test in enumerate(LEVELS) for j, train in enumerate(LEVELS)],
    columns=["test_eps", "train_eps", "acc_percent", "std_percent", "ci95_percent"],
)


def test_bars_are_the_half_widths_and_the_line_joins_cells_of_one_level() -> None:
    with new_figure(width=4, height=3) as figure:
        draw_surface(figure, CELLS, epsilon_min=0.004, unit="units of the data")
        axes = figure.axes[0]
        lines = [np.array(line.get_data_3d()).T for line in axes.lines]  # type: ignore[attr-defined]
        names = [label.get_text() for label in axes.get_xticklabels()]
    bars, equal = lines[:-1], lines[-1]
    assert [(x, y, low, high) for (x, y, low), (_, _, high) in bars][:3] == [
        (0, 0, 90, 90), (1, 0, 88.5, 89.5), (2, 0, 87, 89),
    ]  # fmt: skip
    assert equal.tolist() == [[0, 0, 90], [1, 1, 90], [2, 2, 90]]
    assert names == ["0", "ε$_{min}$", "0.01"]


def test_a_missing_cell_is_named() -> None:
    with pytest.raises(TestbedError, match=r"1 of the 9 cells .* tested at 0.01 and fitted at 0.004\."):
        require_surface(CELLS.drop(7), dataset="points")


def test_one_training_level_is_no_surface() -> None:
    with pytest.raises(TestbedError, match="3 and 1 are stored of points"):
        require_surface(CELLS[CELLS["train_eps"] == 0], dataset="points")


def test_the_numbers_of_the_figure_are_those_of_the_matrix(drawn: Drawn) -> None:
    surface, matrix = drawn("accuracy_surface"), drawn("accuracy_matrix")
    assert surface["csv"].read_bytes() == matrix["csv"].read_bytes()
    assert surface["png"].read_bytes().startswith(b"\x89PNG")
    assert surface["pdf"].read_bytes().startswith(b"%PDF")
