#!/usr/bin/env python
"""Draws models on any two settings, with the line that is fitted to some of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import click
from plotting.drawing.command import LOW_ACCURACY_OPTION, figure_of_models

from testbed.cli import run

if TYPE_CHECKING:
    from plotting.drawing.comparison import Comparison


@figure_of_models
@click.argument("x")
@click.argument("y")
@LOW_ACCURACY_OPTION
def main(comparison: Comparison, out: Path, *, x: str, y: str, with_low_accuracy: bool) -> list[Path]:
    """Draw the accuracy of models on setting Y over that on setting X, or on means of settings such as avg_corruptions.

    \b
    Example:
      python plotting/plot_x_vs_y.py val imagenet-sketch --with-published imagenet-testbed --highlight resnet50
    """
    from plotting.drawing.shift_figure import save_panels
    from plotting.drawing.shift_panels import panels_of
    from plotting.drawing.style import plain

    from testbed.shift_pairs import ShiftPair, pair_of

    pair = pair_of(x, y) or ShiftPair(name=f"{y}-over-{x}", title=y, x=x, y=y)
    found = panels_of(comparison, [pair], with_low_accuracy=with_low_accuracy)
    shift = plain(y) if pair.title == y else f"{pair.title}, {plain(y)},"
    return save_panels(found, comparison.path(out, f"{y}-over-{x}"), title=f"Accuracy on {shift} over {plain(x)}")


if __name__ == "__main__":
    run(main)
