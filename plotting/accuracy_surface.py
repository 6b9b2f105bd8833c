#!/usr/bin/env python
"""Draws the surface of accuracies over test noise and training noise."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plotting.drawing.command import figure_command

from testbed.cli import run

if TYPE_CHECKING:
    from plotting.drawing.stored import Stored


@figure_command
def main(stored: Stored, out: Path) -> list[Path]:
    """Draw accuracy over test noise and training noise as a surface, with the spread over runs at every point.

    The numbers are those of `accuracy_matrix.py`, which is easier to read exactly; the surface shows the shape.

    \b
    Example:
      python plotting/accuracy_surface.py --dataset 2d-b --shared --models 'random-forest*' --out figures
    """
    from plotting.drawing.matrix import accuracy_cells
    from plotting.drawing.style import new_figure, plain, save
    from plotting.drawing.surface import HEIGHT, WIDTH, draw_surface, require_surface

    epsilon_min, models = stored.require_separation(), stored.model_by_training_level()
    cells = accuracy_cells(stored.table, resplit=stored.resplit)
    require_surface(cells, dataset=stored.dataset)
    spread = "A single run does not tell how far another would be from it."
    if cells["runs"].max() > 1:
        spread = "Black bars: 1.96 standard deviations over the root of the number of runs, as published."
    caption = (
        f"Top-1 accuracy on {stored.dataset} of {plain(models[min(models)])} and of the same fitted on noise; "
        f"{stored.noise_words}: {stored.sample_words}. Levels stand evenly spaced, and colour repeats the height. "
        f"{spread} Squares: fitted and tested at one level.{stored.separation_sentence}"
    )
    with new_figure(width=WIDTH, height=HEIGHT) as figure:
        draw_surface(figure, cells, epsilon_min=epsilon_min, unit=stored.unit)
        return save(figure, cells, stored.path(out, "accuracy-surface"), caption=caption)


if __name__ == "__main__":
    run(main)
