#!/usr/bin/env python
"""Draws the accuracy of several models over the severity of each corruption."""

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
    """Draw curves over severity for several models, with 95 % intervals: a panel for each corruption, on shared axes.

    \b
    Example:
      python plotting/corruption_curves.py --logdir results/log --dataset digits --models 'digits-*' --out figures
    """
    from plotting.drawing.corruption_panels import draw_panels, panels_of, panels_size
    from plotting.drawing.style import add_legend, new_figure, save

    caption = (
        f"{stored.label[0].upper()}{stored.label[1:]} on {stored.source_words}, over severity: "
        f"{stored.sample_words}. "
        f"Bands are 95 % intervals; beside each name its clean accuracy.{stored.missing_sentence}"
        f"{stored.undefined_sentence}"
    )
    names = panels_of(stored)
    width, height = panels_size(len(names))
    with new_figure(width=width, height=height) as figure:
        draw_panels(figure, stored, names)
        add_legend(figure)
        return save(figure, stored.table, stored.path(out, "corruption-curves"), caption=caption)


if __name__ == "__main__":
    run(main)
