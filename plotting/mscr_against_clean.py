#!/usr/bin/env python
"""Draws the MSCR of every model against its clean accuracy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plotting.drawing.command import figure_command

from testbed.cli import run

if TYPE_CHECKING:
    from plotting.drawing.stored import Stored


@figure_command
def main(stored: Stored, out: Path) -> list[Path]:
    """Draw the MSCR of every model against its clean accuracy, with 95 % intervals of both.

    \b
    Example:
      python plotting/mscr_against_clean.py --logdir results/log --dataset digits --out figures
    """
    import pandas as pd
    from plotting.drawing.style import GREY, add_legend, bars, looks, new_figure, plain, save

    epsilon_min = stored.require_separation()
    mscr = stored.metrics("mscr", epsilon=epsilon_min)
    clean = stored.metrics("top1", epsilon=0.0)
    models = [model for model in stored.models if model in set(mscr["model"])]
    caption = (
        f"MSCR against clean top-1 accuracy on {stored.dataset} under {stored.noise_words} at ε$_{{min}}$: "
        f"{stored.sample_words}. Bars are 95 % intervals.{stored.separation_sentence}"
    )
    with new_figure(height=2.2) as figure:
        axes = figure.subplots()
        for model, look in looks(models).items():
            x, y = clean[clean["model"] == model], mscr[mscr["model"] == model]
            axes.errorbar(x["value"], y["value"], xerr=bars(x), yerr=bars(y), label=plain(model), elinewidth=0.7,
                          linestyle="none", **look)  # fmt: skip
        axes.axhline(0, color=GREY, linewidth=0.6, zorder=0)
        axes.set_xlabel("clean top-1 accuracy (%)")
        axes.set_ylabel("MSCR (%)")
        add_legend(figure)
        table = pd.concat([clean[clean["model"].isin(models)], mscr], ignore_index=True)
        return save(figure, table, stored.path(out, "mscr-against-clean"), caption=caption)


if __name__ == "__main__":
    run(main)
