#!/usr/bin/env python
"""Draws effective robustness on every shift against that on every other."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plotting.drawing.command import figure_of_models
from plotting.drawing.shift_choice import shift_options

from testbed.cli import run

if TYPE_CHECKING:
    from plotting.drawing.comparison import Comparison
    from plotting.drawing.shift_choice import Choice


@figure_of_models
@shift_options
def main(comparison: Comparison, out: Path, *, choice: Choice) -> list[Path]:
    """Draw the effective robustness of models on every shift against that on every other, and their correlations.

    \b
    Example:
      python plotting/effective_pairs.py --with-published imagenet-testbed --shifts imagenetv2 objectnet corruptions
    """
    from plotting.drawing.pair_matrix import draw_pairs, matrix_height, tables_of
    from plotting.drawing.rho_panels import PEARSON_WORDS
    from plotting.drawing.scatter import label_kinds
    from plotting.drawing.shifts import NATURAL, need, robustness
    from plotting.drawing.style import PAGE, add_legend, new_figure, save

    found = robustness(comparison, choice, (*NATURAL, "corruptions"))
    need(2, found.pairs)
    table = tables_of(found)
    caption = (
        f"Effective robustness ρ on one shift against that on another, both axes in percentage points. "
        f"{found.model_words(table)} {found.line_words} {found.band_words} Numbers: {PEARSON_WORDS}, and the "
        f"number of models. {found.image_words}{found.highlight_words}"
    )
    with new_figure(width=PAGE, height=matrix_height(len(found.pairs))) as figure:
        draw_pairs(figure, found, table)
        label_kinds(figure.axes[0], table)
        add_legend(figure)
        return save(figure, table, comparison.path(out, "effective-pairs"), caption=caption)


if __name__ == "__main__":
    run(main)
