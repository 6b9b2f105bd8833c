#!/usr/bin/env python
"""Trains a registered network on a data set: saves its weights, and a card that tells how they were made."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click

sys.path.insert(0, str(Path(__file__).resolve().parent / "src"))

from testbed.cli import ManyCommand, data_root_option, no_download_option, run
from testbed.training.recipe import DEFAULT_RECIPE, RECIPES, Keep, Noise, Optimizer


def recipe_option(flags: str, *, help: str, **details: Any) -> Callable[[Any], Any]:
    """An option whose default is the recipe's value; that of the default recipe is shown."""
    field = flags.split("/")[0].removeprefix("--").replace("-", "_")
    shown = str(getattr(RECIPES[DEFAULT_RECIPE], field))
    return click.option(flags, default=None, show_default=shown, help=help, **details)


@click.command(cls=ManyCommand, context_settings={"show_default": True})
@click.option("--model", required=True, metavar="NAME", help="A registered model that names its network (arch).")
@click.option("--dataset", required=True, metavar="NAME", help="A registered data set with a split to learn from.")
@click.option(
    "--seed", "seeds", type=click.IntRange(min=0), multiple=True, default=(0,), metavar="N...",
    help="Of first parameters, order, shifts and noise; several train a network each, into one file.",
)  # fmt: skip
@click.option(
    "--recipe", type=click.Choice(list(RECIPES)), default=DEFAULT_RECIPE,
    help=f"Values for the options from here on; the defaults shown are those of {DEFAULT_RECIPE}.",
)  # fmt: skip
@recipe_option("--epochs", type=int, help="Passes over the training images.")
@recipe_option("--learning-rate", type=float, help="The highest rate.")
@recipe_option("--batch-size", type=int, help="Images per step.")
@recipe_option("--optimizer", type=click.Choice(get_args(Optimizer)), help="AdamW, or SGD with momentum 0.9.")
@recipe_option("--weight-decay", type=float, help="Of the optimizer; AdamW's is decoupled from the gradient.")
@recipe_option("--max-shift", type=int, metavar="PX", help="Images move by up to so many pixels.")
@recipe_option("--flip/--no-flip", help="Mirror every second image, at random.")
@recipe_option("--noise", type=click.Choice(get_args(Noise)), help="On every image, anew each epoch.")
@recipe_option("--epsilon", type=float, help="Radius of uniform-linf, pixels in [0, 1].")
@recipe_option("--sigma", type=float, help="Deviation of gaussian, pixels in [0, 1].")
@recipe_option("--keep", type=click.Choice(get_args(Keep)), help="The epoch that is best on validation, or the last.")
@recipe_option(
    "--validation-fraction", type=float, help="Part of the fit split to choose by where there is no validation split."
)
@click.option("--out", type=click.Path(path_type=Path), help="The weights. [default: in checkpoints]")
@click.option("--override", is_flag=True, help="Replace existing weights.")
@click.option("--device", default="cpu", help="cpu, cuda or cuda:N; only a CPU gives the same network every time.")
@data_root_option
@no_download_option
@click.option("--plugin", "plugins", multiple=True, metavar="PATH...", help="Files or folders with more definitions.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def main(**options: Any) -> int:
    """Train a network on a data set's fit split, and keep the epoch that is best on its validation split.

    A recipe is a set of values for the options that follow it; each that is given goes before the recipe's. The test
    split is counted once, at the end, for the card.

    \b
    Example:
      python train.py --model digits-resnet --dataset digits --noise uniform-linf --epsilon 0.1
      python train.py --model wrn-28-10 --dataset cifar10 --recipe mscr-cifar10 --epsilon 0.02 --device cuda

    Exit codes: 0 done, 1 the output cannot be printed, 2 the request is wrong, 130 interrupted (nothing is written).
    """
    from testbed.commands.train import run_training

    return run_training(**options)


if __name__ == "__main__":
    run(main)
