"""Results for people: an aligned table, and under it one sentence per model that a report could quote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from testbed.records import MetricValue
from testbed.results import COMPARISONS, Result

NORM_SYMBOLS = {"linf": "L∞", "l2": "L2", "l1": "L1"}
WIDTH = 116
HEADER = ("model", "setting", "n", "top-1 %", "MSCR %", "loss %", "recovery %")


def results_table(results: Sequence[Result]) -> str:
    """The table of all results: model, setting, n, top-1, MSCR, loss and recovery, each with its 95 % interval."""
    rows = [HEADER, *(_row(result) for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    aligned = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
    return "\n".join([aligned[0], "  ".join("-" * width for width in widths), *aligned[1:]])


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Names to the left, numbers to the right."""
    return [
        cell.ljust(w) if column < 2 else cell.rjust(w) for column, (cell, w) in enumerate(zip(row, widths, strict=True))
    ]


def _row(result: Result) -> tuple[str, ...]:
    evaluation = result.evaluation
    distinct = len({run.evaluation.id for run in result.runs})
    seeds = "" if distinct == 1 else f" ({distinct} runs)"
    draws = "" if evaluation.num_draws == 1 else f" x {evaluation.num_draws}"
    draws += "" if distinct == 1 else f" x {distinct}"
    cells = [_cell(result.accuracies["top1"]) if result.accuracies else evaluation.status]
    cells += [_cell(result.comparisons[name]) if name in result.comparisons else "" for name in COMPARISONS]
    return (evaluation.model, evaluation.setting + seeds, f"{evaluation.n}{draws}", *cells)


def _cell(value: MetricValue) -> str:
    if value.value is None:
        return "undefined"
    return f"{value.value:.2f} [{value.ci_low:.2f}, {value.ci_high:.2f}]"


def report_text(results: Sequence[Result], separations: Mapping[str, Mapping[str, Any]]) -> str:
    """The table, and a sentence for every model under noise.

    Args:
        results: of one command.
        separations: by name of a setting, the separation that its noise level is half of, as its definition keeps it.
    """
    telling: dict[str, Result] = {}
    for result in results:
        if result.comparisons:
            telling[result.evaluation.model] = _more_telling(telling.get(result.evaluation.model), result, separations)
    sentences = [sentence(result, separations.get(result.evaluation.setting)) for result in telling.values()]
    return "\n".join([results_table(results), *(f"\n{fill(text, WIDTH)}" for text in sentences)])


def _more_telling(known: Result | None, other: Result, separations: Mapping[str, Mapping[str, Any]]) -> Result:
    """Of a model's results under noise the one at a separation-based level, else the one at the highest level."""
    if known is None:
        return other

    def rank(result: Result) -> tuple[bool, float]:
        shift = result.evaluation.shift
        return result.evaluation.setting in separations, (shift.epsilon or 0.0) if shift else 0.0

    return max(known, other, key=rank)


def separation_words(separation: Mapping[str, Any]) -> str:
    """A separation in words: its value, and what it is the separation of."""
    grey_levels = separation["min_distance"] * 255
    is_whole = abs(grey_levels - round(grey_levels)) < 1e-9
    value = f"{round(grey_levels)}/255" if is_whole else f"{separation['min_distance']:.6g}"
    splits = " + ".join(separation["splits"])
    return f"the minimal class separation {value} of all {separation['num_points']:,} samples ({splits})"


def sentence(result: Result, separation: Mapping[str, Any] | None) -> str:
    """What a report may say of a model under noise: n, the level and its source, the bound, and what is left open.

    Args:
        result: the model on a noise setting, with its comparisons.
        separation: that the noise level is half of; None for a level that the user chose.
    """
    evaluation, loss, shift = result.evaluation, result.comparisons["loss"], result.evaluation.shift
    if shift is None or shift.epsilon is None:
        return ""
    level = f"within {shift.epsilon:.4f} on {evaluation.n} samples of {evaluation.dataset}"
    source = f", half of {separation_words(separation)}" if separation else " (a level of the user's choice)"
    noise = f"under uniform {NORM_SYMBOLS[shift.norm or 'linf']} noise {level}{source}"
    if loss.value is None:
        return f"{evaluation.model}: what is lost {noise} is undefined, because {loss.reason}."
    draws = sum(run.evaluation.num_draws for run in result.runs)
    return (
        f"{evaluation.model} loses {loss.value:.2f} % of the images that it classifies right when clean, with 95 % "
        f"confidence between {loss.ci_low:.2f} and {loss.ci_high:.2f} % (n = {loss.n}, {draws} draws each), "
        f"{noise}{_worst_class(result)}; not tested: other norms and levels, corruptions, attacks, other data."
    )


def _worst_class(result: Result) -> str:
    worst = result.accuracies["worst_class_accuracy"]
    if worst.value is None:
        return ""
    return f"; its worst class there is '{worst.detail['class']}', {worst.value:.1f} % right (n = {worst.n})"
