#!/usr/bin/env python
"""Draws the matrix of accuracies over test noise and training noise as a coloured table."""

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
@click.option("--published", type=click.Path(path_type=Path), metavar="FILE",
              help="Compare with the means, deviations and half widths of a published matrix, a CSV.")  # fmt: skip
def main(stored: Stored, out: Path, *, published: Path | None) -> list[Path]:
    """Draw the accuracies of models that were fitted at several noise levels, each tested at several.

    A row is a test level, a column a training level, the last row MSCR. The numbers are means over runs with the
    published half width, 1.96 standard deviations over the root of the number of runs, and stand in two CSV files.

    \b
    Example:
      python plotting/accuracy_matrix.py --dataset 2d-b --shared --models 'random-forest*' --out results/mscr-2d
    """
    from plotting.drawing.corruption_table import half_width_sentence
    from plotting.drawing.matrix import accuracy_cells, mscr_cells
    from plotting.drawing.matrix_table import draw_matrix, table_height
    from plotting.drawing.published import compared, joint_picture, read_published
    from plotting.drawing.style import PAGE, new_figure, plain, save

    from testbed.tables import write_table

    epsilon_min, models = stored.require_separation(), stored.model_by_training_level()
    cells, mscr = accuracy_cells(stored.table, resplit=stored.resplit), mscr_cells(stored.table)
    if published is not None:
        theirs, their_mscr = read_published(published)
        cells, mscr = compared(cells, theirs, "acc_percent"), compared(mscr, their_mscr, "mscr_percent")
        print(joint_picture(cells, mscr))
        cells, mscr = cells.drop(columns="std_ratio"), mscr.drop(columns="std_ratio")
    correction = " and corrected for re-splits of one data set (Nadeau & Bengio)" if stored.resplit else ""
    spread = (
        f"Small: 1.96 standard deviations over the root of the number of runs, as published. Bold: the best of a row "
        f"and all that a t-test, paired over runs{correction}, does not tell from it (5 %, Holm)."
    )
    if cells["runs"].max() == 1:
        of_samples = stored.metrics("top1").rename(columns={"epsilon": "test_eps", "training_epsilon": "train_eps"})
        cells = cells.merge(of_samples[["test_eps", "train_eps", "ci_low", "ci_high"]], how="left")
        spread = (
            "Bold: the largest of a row; a single run does not tell how far another would be from it."
            f"{half_width_sentence(of_samples)}"
        )
    caption = (
        f"Top-1 accuracy in percent on {stored.dataset} of {plain(models[min(models)])} and of the same fitted on "
        f"noise; {stored.noise_words}: {stored.sample_words}. {spread} Grey: fitted and tested at one level. MSCR is "
        f"the relative change of the mean from ε = 0 to ε$_{{min}}$.{stored.separation_sentence}"
    )
    path = stored.path(out, "accuracy-matrix")
    with new_figure(width=PAGE, height=table_height(cells)) as figure:
        draw_matrix(figure, cells, mscr, epsilon_min=epsilon_min, unit=stored.unit)
        written = save(figure, cells, path, caption=caption)
    written.append(path.with_name(f"{path.name}-mscr.csv"))
    write_table(mscr, written[-1], override=True)
    return written


if __name__ == "__main__":
    run(main)
