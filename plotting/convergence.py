#!/usr/bin/env python
"""Draws how mean accuracy and MSCR settle as runs are added."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plotting.drawing.command import figure_command

from testbed.cli import run
from testbed.errors import TestbedError

if TYPE_CHECKING:
    import pandas as pd
    from plotting.drawing.stored import Stored

FIRST = 3  # runs; the interval of two is so wide that it would hide all others
MAX_POINTS = 20  # of a curve
PANELS = {"top1": "mean top-1\naccuracy (%)", "mscr": "MSCR (%)"}


@figure_command
def main(stored: Stored, out: Path) -> list[Path]:
    """Draw mean accuracy and MSCR at half the minimal class separation over the number of runs, with 95 % intervals.

    \b
    Example:
      python plotting/convergence.py --logdir results/log --dataset digits --out figures
    """
    from plotting.drawing.style import add_legend, draw_curves, log_counts, new_figure, plain, save

    table = running_means(stored)
    labels = {model: plain(model) for model in stored.models if model in set(table["model"])}
    caption = (
        f"Means over the first runs, in the order of their seeds, on {stored.dataset} under {stored.noise_words} at "
        f"ε$_{{min}}$: {stored.sample_words}. Bars are 95 % intervals of the spread of the runs (Student's t), not of "
        f"the samples; models stand a little apart.{stored.separation_sentence}"
    )
    with new_figure(height=3.2) as figure:
        panels = figure.subplots(len(PANELS), sharex=True)
        for axes, (metric, label) in zip(panels, PANELS.items(), strict=True):
            draw_curves(axes, table[table["metric"] == metric], "runs", labels)
            axes.set_ylabel(label)
        log_counts(axes, "number of runs", table["runs"])
        add_legend(figure)
        return save(figure, table, stored.path(out, "convergence"), caption=caption)


def running_means(stored: Stored) -> pd.DataFrame:
    """Accuracy and MSCR at half the minimal class separation over the first 3, 4, ... runs of every model.

    Raises: TestbedError: no model has three runs, with the command for more.
    """
    import pandas as pd
    from plotting.drawing.over_runs import metrics_over_runs
    from plotting.drawing.stored import number

    rows = []
    stored.require_separation()
    for model, noisy in stored.table[stored.table["is_separation"]].sort_values("seed").groupby("model"):
        for runs in counts(len(noisy)):
            first = noisy[:runs]
            for name, metric in metrics_over_runs(first["clean_accuracy"], first["accuracy"]).items():
                rows.append({"model": model, "runs": runs, "metric": name, **number(metric)})
    if not rows:
        more = stored.command("--seeds", *map(str, range(10)))
        raise TestbedError(f"Convergence over runs takes at least three runs of a model. Evaluate more: {more}")
    return pd.DataFrame(rows)


def counts(num_runs: int) -> list[int]:
    """Numbers of runs to show, evenly spaced in their logarithm."""
    import numpy as np

    if num_runs < FIRST:
        return []
    return sorted({round(count) for count in np.geomspace(FIRST, num_runs, MAX_POINTS)})


if __name__ == "__main__":
    run(main)
