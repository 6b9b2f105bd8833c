#!/usr/bin/env python
"""Writes how closely effective robustness on one shift goes along with that on another, as CSV and LaTeX."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plotting.drawing.command import figure_of_models
from plotting.drawing.shift_choice import MEASURES, shift_options

from testbed.cli import run

if TYPE_CHECKING:
    from plotting.drawing.comparison import Comparison
    from plotting.drawing.shift_choice import Choice


@figure_of_models
@click.option("--of", "measure", type=click.Choice(MEASURES), default=MEASURES[0], show_default=True,
              help="The number of each shift that is correlated with that of another.")  # fmt: skip
@shift_options
def main(comparison: Comparison, out: Path, *, measure: str, choice: Choice) -> list[Path]:
    """Write Pearson's and Spearman's correlations between shifts, with intervals and numbers of models.

    \b
    Example:
      python plotting/correlation_table.py --with-published imagenet-testbed --out results/tables
    """
    from plotting.drawing.correlations import correlations_of, latex_of
    from plotting.drawing.latex import write_latex
    from plotting.drawing.shifts import NATURAL, SYNTHETIC, need, robustness

    from testbed.tables import write_table

    found = robustness(comparison, choice, (*NATURAL, *SYNTHETIC))
    need(2, found.pairs)
    found.check_highlight()
    table = correlations_of(found, measure)
    path = comparison.path(out, f"correlations-of-{measure}")
    write_table(table, csv := path.with_name(f"{path.name}.csv"), override=True)
    return [write_latex(latex_of(found, table, measure), path.with_name(f"{path.name}.tex")), csv]


if __name__ == "__main__":
    run(main)
