"""The coloured table of the matrix: what is bold, what is grey, and that black text can be read on all of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from plotting.drawing.matrix_table import MATCHED, draw_matrix, table_height
from plotting.drawing.style import PAGE, new_figure

LEVELS = (0.0, 0.004, 0.01)
CELLS = pd.DataFrame(
    [
        (test, train, 100.0 - 8 * x * y, 0.0123 if x else np.nan, x == 1)
        for y, test in enumerate(LEVELS)
        for x, train in enumerate(LEVELS)
    ],
    columns=["test_eps", "train_eps", "acc_percent", "ci95_percent", "is_best"],
)
MSCR = pd.DataFrame({"train_eps": LEVELS, "mscr_percent": [-0.126, 0.0, 0.09], "ci95_percent": [0.007, 0.005, np.nan]})


@pytest.fixture
def axes() -> Iterator[Axes]:
    with new_figure(width=PAGE, height=table_height(CELLS)) as figure:
        draw_matrix(figure, CELLS, MSCR, epsilon_min=0.004, unit="units of the data")
        yield figure.axes[0]


def boxes(axes: Axes) -> dict[tuple[float, float], Rectangle]:
    found = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    return {(patch.get_x() + 0.5, patch.get_y() + 0.5): patch for patch in found}


def luminance(box: Rectangle) -> float:
    """Relative luminance of the filling, W3C's WCAG 2."""
    channels = np.array(box.get_facecolor()[:3])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_every_cell_shows_its_mean_over_its_half_width(axes: Axes) -> None:
    texts = [text.get_text() for text in axes.texts]
    assert texts[:5] == ["100.000", "100.000", "± 0.012", "100.000", "± 0.012"]  # the first has no half width
    assert texts[-5:] == ["\N{MINUS SIGN}0.126", "± 0.007", "+0.000", "± 0.005", "+0.090"]


def test_what_is_best_is_bold(axes: Axes) -> None:
    bold = [text.get_position()[0] for text in axes.texts if text.get_fontweight() == "bold"]
    assert bold == [1.0] * 3


def test_matched_noise_is_grey_and_nothing_else_is(axes: Axes) -> None:
    grey = [place for place, box in boxes(axes).items() if box.get_facecolor() == to_rgba(MATCHED)]
    assert grey == [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]


def test_darker_is_a_larger_error(axes: Axes) -> None:
    """Errors 0, 16 and 16 percent: an error of nothing has the lightest colour of all."""
    assert luminance(boxes(axes)[1, 0]) > luminance(boxes(axes)[2, 1]) == luminance(boxes(axes)[1, 2])


def test_black_text_has_the_contrast_that_small_text_needs(axes: Axes) -> None:
    assert min((luminance(box) + 0.05) / 0.05 for box in boxes(axes).values()) > 4.5  # WCAG 2, level AA


def test_half_the_separation_bears_its_name(axes: Axes) -> None:
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "ε$_{min}$", "0.01"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "ε$_{min}$", "0.01", "MSCR (%)"]
