#!/usr/bin/env python
"""Draws all models on all settings as one coloured grid."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plotting.drawing.command import figure_of_models

from testbed.cli import run

if TYPE_CHECKING:
    from plotting.drawing.comparison import Comparison


@figure_of_models
@click.option("--aggregated", "is_aggregated", is_flag=True, help="One column for all severities of a corruption.")
@click.option("--eval-settings", multiple=True, metavar="NAME...", help="Only these settings, by name or glob.")
@click.option("--label-space", "space", metavar="NAME", help="Only settings with these classes. [default: a grid each]")
def main(
    comparison: Comparison, out: Path, *, is_aggregated: bool, eval_settings: Sequence[str], space: str | None
) -> list[Path]:
    """Draw a heat map of accuracies: a row per model, a column per setting.

    The best model on clean images stands first. Settings of one kind of shift stand together. What was not evaluated is
    hatched; a cross marks published numbers that are suspect. There is a grid for each set of classes.

    \b
    Examples:
      python plotting/grid.py --with-published imagenet-testbed --out figures
      python plotting/grid.py --with-published imagenet-testbed --aggregated --models 'resnet*' --out figures
    """
    from plotting.drawing.grids import draw_space, spaces_to_draw

    found = spaces_to_draw(comparison, eval_settings, space)
    return [path for name, settings in found.items()
            for path in draw_space(comparison, out, name, settings, is_aggregated=is_aggregated)]  # fmt: skip


if __name__ == "__main__":
    run(main)
