#!/usr/bin/env python
"""Draws the accuracy of every model over the level of the noise."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plotting.drawing.command import figure_command

from testbed.cli import run

if TYPE_CHECKING:
    from plotting.drawing.stored import Stored


@figure_command
@click.option("--by-training-noise", is_flag=True, help="Name models by the noise level that they were fitted at.")
def main(stored: Stored, out: Path, *, by_training_noise: bool) -> list[Path]:
    """Draw the accuracy of every model over the noise level, with 95 % intervals.

    \b
    Example:
      python plotting/accuracy_over_noise.py --logdir results/log --dataset digits --out figures
    """
    from plotting.drawing.style import add_legend, draw_curves, mark_separation, new_figure, plain, save

    labels = {model: plain(model) for model in stored.models}
    if by_training_noise:
        labels = {model: f"ε$_{{train}}$ = {level:.4g}" for level, model in stored.model_by_training_level().items()}
    table = stored.metrics("top1")
    caption = (
        f"Top-1 accuracy on {stored.dataset} under {stored.noise_words}: {stored.sample_words}. Bars are 95 % "
        f"intervals; models stand a little apart.{stored.separation_sentence}"
    )
    with new_figure(height=2.2) as figure:
        axes = figure.subplots()
        draw_curves(axes, table, "epsilon", labels)
        mark_separation(axes, stored.epsilon_min)
        axes.set_xlabel(f"noise level ε ({stored.unit})")
        axes.set_ylabel("top-1 accuracy (%)")
        add_legend(figure)
        return save(figure, table, stored.path(out, "accuracy-over-noise"), caption=caption)


if __name__ == "__main__":
    run(main)
