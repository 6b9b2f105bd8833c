#!/usr/bin/env python
"""Writes the accuracies of models on settings with their intervals, and which are best, as CSV and LaTeX."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plotting.drawing.command import figure_of_models

from testbed.cli import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plotting.drawing.comparison import Comparison


@figure_of_models
@click.option(
    "--eval-settings",
    multiple=True,
    metavar="NAME...",
    help="Columns: settings or means of settings. [default: the paper's that are stored, else clean ones]",
)
@click.option("--effective-robustness", "with_rho", is_flag=True,
              help="Add a column of effective robustness behind each of the paper's shifts.")  # fmt: skip
def main(comparison: Comparison, out: Path, *, eval_settings: Sequence[str], with_rho: bool) -> list[Path]:
    """Write a table of models by settings, the best in each column in bold and those that may be best in italics.

    \b
    Example:
      python plotting/model_table.py --with-published imagenet-testbed --models 'resnet50*' --effective-robustness
    """
    from plotting.drawing.latex import write_latex
    from plotting.drawing.model_columns import columns_of, latex_of, table_of

    from testbed.tables import write_table

    columns = columns_of(comparison, eval_settings)
    table = table_of(comparison, columns, with_rho=with_rho)
    path = comparison.path(out, "models")
    write_table(table, csv := path.with_name(f"{path.name}.csv"), override=True)
    return [write_latex(latex_of(comparison, table), path.with_name(f"{path.name}.tex")), csv]


if __name__ == "__main__":
    run(main)
