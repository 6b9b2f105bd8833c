#!/usr/bin/env python
"""Draws effective robustness on natural shifts against what models do under common corruptions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plotting.drawing.command import figure_of_models
from plotting.drawing.shift_choice import against_option, shift_options

from testbed.cli import run

if TYPE_CHECKING:
    from plotting.drawing.comparison import Comparison
    from plotting.drawing.shift_choice import Choice


@figure_of_models
@click.option("--of", "synthetic", default="corruptions", show_default=True, metavar="NAME",
              help="The synthetic shift; imagenet-c-in-memory and stylized are others.")  # fmt: skip
@against_option
@shift_options
def main(comparison: Comparison, out: Path, *, synthetic: str, against: str, choice: Choice) -> list[Path]:
    """Draw the effective robustness of models on natural shifts against that under common corruptions.

    \b
    Example:
      python plotting/effective_against_corruptions.py --with-published imagenet-testbed --against accuracy
    """
    from plotting.drawing.against import draw_against

    return draw_against(comparison, out, synthetic=synthetic, against=against, choice=choice)


if __name__ == "__main__":
    run(main)
