#!/usr/bin/env python
"""Trains a registered network on a data set: saves its weights, and a card that tells how they were made."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args

import click

sys.path.insert(0, str(Path(__file__).resolve().parent / "src"))

from testbed.cli import ManyCommand, run
from testbed.training.recipe import Noise, Recipe


@click.command(cls=ManyCommand, context_settings={"show_default": True})
@click.option("--model", required=True, metavar="NAME", help="A registered model that names its network (arch).")
@click.option("--dataset", required=True, metavar="NAME", help="A registered data set with a validation split.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of first parameters, order, shifts and noise.")
@click.option("--epochs", type=int, default=Recipe.epochs, help="Passes over the training images.")
@click.option(
    "--learning-rate", type=float, default=Recipe.learning_rate, help="Highest rate of the one-cycle schedule."
)
@click.option("--batch-size", type=int, default=Recipe.batch_size, help="Images per step.")
@click.option("--weight-decay", type=float, default=Recipe.weight_decay, help="Decoupled weight decay of AdamW.")
@click.option(
    "--max-shift", type=int, default=Recipe.max_shift, metavar="PX", help="Images move by up to so many pixels."
)
@click.option(
    "--noise", type=click.Choice(get_args(Noise)), default=Recipe.noise, help="On every image, anew each epoch."
)
@click.option("--epsilon", type=float, default=Recipe.epsilon, help="Radius of uniform-linf, pixels in [0, 1].")
@click.option("--sigma", type=float, default=Recipe.sigma, help="Deviation of gaussian, pixels in [0, 1].")
@click.option("--out", type=click.Path(path_type=Path), help="The weights. [default: checkpoints/MODEL.safetensors]")
@click.option("--override", is_flag=True, help="Replace existing weights.")
@click.option("--device", default="cpu", help="cpu, cuda or cuda:N; only a CPU gives the same network every time.")
@click.option(
    "--data-root", type=click.Path(path_type=Path), envvar="TESTBED_DATA", help="Where data sets lie. [default: data]"
)
@click.option("--plugin", "plugins", multiple=True, metavar="PATH...", help="Files or folders with more definitions.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def main(**options: Any) -> int:
    """Train a network on a data set's fit split, and keep the epoch that is best on its validation split.

    The test split is counted once, at the end, for the card.

    \b
    Example:
      python train.py --model digits-resnet --dataset digits --noise uniform-linf --epsilon 0.1

    Exit codes: 0 done, 2 the request is wrong, 130 interrupted (nothing is written).
    """
    from testbed.commands.train import run_training

    return run_training(**options)


if __name__ == "__main__":
    run(main)
