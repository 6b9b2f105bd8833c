#!/usr/bin/env python
"""Draws the accuracy of every model under each corruption and severity as a coloured table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plotting.drawing.command import figure_of_corruptions

from testbed.cli import run

if TYPE_CHECKING:
    from plotting.drawing.corruption_table import Corruptions


@figure_of_corruptions
def main(stored: Corruptions, out: Path) -> list[Path]:
    """Draw a heat map of corruption x severity for every model of a data set.

    What was not evaluated is hatched, and named under the figure. The last column has all severities together.

    \b
    Example:
      python plotting/corruption_heatmap.py --logdir results/log --dataset digits --metric q --out figures
    """
    from plotting.drawing.corruption_cells import draw_tables, tables_size
    from plotting.drawing.corruption_table import half_width_sentence
    from plotting.drawing.style import new_figure, save

    caption = (
        f"{stored.label[0].upper()}{stored.label[1:]} on {stored.source_words}: "
        f"{stored.sample_words}. Darker is "
        f"{'larger' if stored.metric == 'q' else 'smaller'}. Last column: all severities together, or of a corruption "
        f"without severities.{half_width_sentence(stored.table)}{stored.missing_sentence}{stored.undefined_sentence}"
    )
    width, height = tables_size(stored)
    with new_figure(width=width, height=height) as figure:
        draw_tables(figure, stored)
        return save(figure, stored.table, stored.path(out, "corruption-heatmap"), caption=caption)


if __name__ == "__main__":
    run(main)
