#!/usr/bin/env python
"""Draws relative robustness against effective robustness: what an intervention does for the model it is made to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plotting.drawing.command import figure_of_models
from plotting.drawing.shift_choice import shift_options

from testbed.cli import run

if TYPE_CHECKING:
    from plotting.drawing.comparison import Comparison
    from plotting.drawing.shift_choice import Choice


@figure_of_models
@click.option("--baselines", type=click.Path(path_type=Path), metavar="FILE",
              help="A CSV with the columns model,baseline: what each model was made from.")  # fmt: skip
@shift_options
def main(comparison: Comparison, out: Path, *, baselines: Path | None, choice: Choice) -> list[Path]:
    """Draw how much more accurate under shifts models are than their baselines, against effective robustness.

    \b
    Example:
      python plotting/relative_against_effective.py --with-published imagenet-testbed --highlight resnet50_augmix
    """
    from plotting.drawing.quadrants import draw_quadrants, tables_of
    from plotting.drawing.rho_panels import label_sides, name_models, panel_height, panels
    from plotting.drawing.scatter import label_kinds
    from plotting.drawing.shifts import NATURAL, RHO, robustness
    from plotting.drawing.style import PAGE, SMALL, add_legend, new_figure, plain, save

    found = robustness(comparison, choice, NATURAL)
    table = tables_of(found, baselines)
    caption = (
        "Relative robustness τ, the accuracy under a shift less that of the model's baseline, against effective "
        f"robustness ρ. {found.model_words(table)} {found.line_words} Bars of τ: 95 % intervals. {found.band_words} "
        "Numbers count the models of a quadrant: an intervention is of use in the upper right one. "
        f"{found.image_words}"
    )
    with new_figure(width=PAGE, height=panel_height(len(found.pairs))) as figure:
        for axes, pair in zip(panels(figure, len(found.pairs)), found.pairs, strict=True):
            draw_quadrants(axes, table[table["shift"] == pair.name], found, pair.name)
            axes.set_title(plain(pair.title), fontsize=SMALL)
        label_sides(figure, RHO, "relative robustness τ (pp)")
        label_kinds(figure.axes[0], table)
        add_legend(figure)
        for axes, pair in zip(figure.axes, found.pairs, strict=True):
            name_models(axes, table[table["shift"] == pair.name], found.highlighted)
        return save(figure, table, comparison.path(out, "relative-against-effective"), caption=caption)


if __name__ == "__main__":
    run(main)
