#!/usr/bin/env python
"""Draws what the number of draws of the noise changes about accuracy and MSCR."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plotting.drawing.command import figure_command

from testbed.cli import run
from testbed.errors import TestbedError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray
    from plotting.drawing.stored import Stored

    from testbed.records import MetricValue

    Correct = NDArray[np.bool_]

K = (1, 2, 3, 5, 8, 10, 15, 20, 30, 40, 50)  # Siedel et al. 2022, figure 4


@figure_command
def main(stored: Stored, out: Path) -> list[Path]:
    """Draw accuracy and MSCR at half the minimal class separation over the number k of draws of the noise.

    They are computed from the first k of the stored draws, and come with 95 % intervals. Where there are several runs,
    the standard deviation of a single run's MSCR is drawn as well.

    \b
    Example:
      python plotting/effect_of_k.py --logdir results/log --dataset digits --out figures
    """
    from plotting.drawing.style import add_legend, draw_curves, log_counts, new_figure, plain, save

    table = over_first_draws(stored)
    labels = {model: plain(model) for model in stored.models if model in set(table["model"])}
    mscr = table[table["metric"] == "mscr"]
    panels = {"top-1\naccuracy (%)": table[table["metric"] == "top1"], "MSCR (%)": mscr}
    if (table["runs"] > 1).any():
        panels["sd of MSCR\nover runs (pp)"] = mscr.assign(value=mscr["sd"], ci_low=None, ci_high=None)
    caption = (
        f"From the first k draws of the noise, on {stored.dataset} under {stored.noise_words} at ε$_{{min}}$: "
        f"{stored.sample_words}. {bar_words(table)}; models stand a little apart.{stored.separation_sentence}"
    )
    with new_figure(height=1.5 * len(panels)) as figure:
        for axes, (label, rows) in zip(figure.subplots(len(panels), sharex=True), panels.items(), strict=True):
            draw_curves(axes, rows, "k", labels)
            axes.set_ylabel(label)
        log_counts(axes, "draws of the noise k", table["k"])
        add_legend(figure)
        return save(figure, table, stored.path(out, "effect-of-k"), caption=caption)


def bar_words(table: pd.DataFrame) -> str:
    """What the bars are, for a caption. Args: table: of `over_first_draws`."""
    runs = table["runs"]
    spread, exception = " of the spread of the runs (Student's t)", ", over samples where there is a single run"
    if (runs > 1).all():
        exception = ""
    elif (runs == 1).all():
        spread, exception = "", ", over samples"
    return f"Bars are 95 % intervals{spread}{exception}"


def over_first_draws(stored: Stored) -> pd.DataFrame:
    """Accuracy and MSCR at half the minimal class separation from the first k draws of every model.

    Returns: `model`, `k`, `metric`, `value`, `ci_low`, `ci_high` and `method`, `sd` of single runs, `runs`; percent.
    Raises: TestbedError: there is one draw only, with the command for more; or it is not known which answers are right.
    """
    import pandas as pd
    from plotting.drawing.stored import number

    from testbed.results import correct
    from testbed.results.runs import unknown_answers

    epsilon_min, rows = stored.require_separation(), []
    for model in stored.models:
        runs = stored.runs.get((model, epsilon_min), [])
        if reason := unknown_answers(runs):
            raise TestbedError(f"Accuracies of {model} on {stored.dataset} are undefined, because {reason}.")
        answers = [(correct(run.clean)[0], correct(run.evaluation)) for run in runs if run.clean is not None]
        most = min((len(noisy) for _, noisy in answers), default=0)
        for k in sorted({*(k for k in K if k < most), most} - {0}):
            first = [(clean, noisy[:k]) for clean, noisy in answers]
            for name, (metric, sd) in _metrics(first).items():
                rows.append({"model": model, "k": k, "metric": name, **number(metric), "sd": sd, "runs": len(runs)})
    table = pd.DataFrame(rows)
    if table["k"].max() == 1:
        more = stored.command("--draws", str(max(K)))
        raise TestbedError(f"The effect of the number of draws takes more than one draw. Evaluate more: {more}")
    return table


def _metrics(runs: Sequence[tuple[Correct, Correct]]) -> dict[str, tuple[MetricValue, float]]:
    """Accuracy and MSCR with the standard deviation of single runs, from (n,) when clean and (draws, n) of each run."""
    import numpy as np
    from plotting.drawing.over_runs import metrics_over_runs

    from testbed.metrics.comparison import mscr
    from testbed.metrics.factors import Factors
    from testbed.metrics.published import mscr_of_means
    from testbed.metrics.runs import accuracy_of_runs

    if len(runs) == 1:
        ((clean, noisy),) = runs
        accuracy = accuracy_of_runs("top1", noisy.mean(axis=0, keepdims=True), Factors(num_draws=len(noisy)))
        return {"top1": (accuracy, np.nan), "mscr": (mscr(clean, noisy), np.nan)}
    before, after = (100 * np.array([part.mean() for part in parts]) for parts in zip(*runs, strict=True))
    metrics = metrics_over_runs(before, after)
    sds = {"top1": after.std(ddof=1), "mscr": mscr_of_means(before, after).std(ddof=1)}
    return {name: (metric, float(sds[name])) for name, metric in metrics.items()}


if __name__ == "__main__":
    run(main)
