"""Results for people: an aligned table, and under it one sentence per model that a report could quote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

from testbed.corruption_words import corruption_sentences, is_corrupted
from testbed.metrics.intervals import Side
from testbed.records import MetricValue, Shift
from testbed.results import COMPARISONS, Result, Run, by_fit
from testbed.results.runs import guessing_when_clean, has_shared_draws
from testbed.store.evaluation import Evaluation
from testbed.visible import visible

NORM_SYMBOLS = {"linf": "L∞", "l2": "L2", "l1": "L1"}
WIDTH = 116
SHARED_DRAWS = "all samples share the noise of a draw, so the intervals are about these draws alone"
SHOWN = 3  # settings in a sentence
FORMER = "of a former definition: today's has no results yet"
FEW_RUNS = 5  # so few fitted models do not show how much models vary
ACCURACIES = ("top1", "top5", "balanced_accuracy", "worst_class_accuracy")
HEADER = ("model", "setting", "n", "top-1 %", "MSCR %", "loss %", "recovery %")


def results_table(results: Sequence[Result]) -> str:
    """The table of all results: model, setting, n, top-1, MSCR, loss and recovery, each with its 95 % interval."""
    return aligned_table([HEADER, *(_row(result) for result in results)], num_names=2)


def aligned_table(rows: Sequence[Sequence[str]], *, num_names: int) -> str:
    """Rows under a header, which is the first: so many columns of names to the left, numbers to the right."""
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.ljust if column < num_names else str.rjust for column in range(len(widths))]
    lines = ["  ".join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in [lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _row(result: Result) -> tuple[str, ...]:
    evaluation = result.evaluation
    distinct = len({run.evaluation.id for run in result.runs})
    seeds = "" if distinct == 1 else f" ({distinct} runs)"
    draws = "" if evaluation.num_draws == 1 else f" x {evaluation.num_draws}"
    draws += "" if distinct == 1 else f" x {distinct}"
    cells = [interval_cell(result.accuracies["top1"]) if result.accuracies else evaluation.status]
    cells += [interval_cell(result.comparisons[name]) if name in result.comparisons else "" for name in COMPARISONS]
    return (result.name, evaluation.setting + seeds, f"{evaluation.n}{draws}", *cells)


def interval_cell(value: MetricValue, side: Side = "both") -> str:
    """A number with its interval, or with the one bound that was asked for."""
    if value.value is None:
        return "undefined"
    shown = f"{value.value:.2f}"
    if side == "both":
        return shown if value.ci_low is None else f"{shown} [{value.ci_low:.2f}, {value.ci_high:.2f}]"
    bound, sign = (value.ci_low, ">=") if side == "lower" else (value.ci_high, "<=")
    return shown if bound is None else f"{shown} ({sign} {bound:.2f})"


def report_text(results: Sequence[Result], separations: Mapping[str, Mapping[str, Any]]) -> str:
    """The table, and sentences for every model under noise, attacks and corruptions.

    Args:
        results: of one command.
        separations: by name of a setting, the separation that its noise level is half of, as its definition keeps it.
    """
    telling: dict[tuple[str, bool], Result] = {}
    for result in results:
        shift = result.evaluation.shift
        if result.comparisons and not is_corrupted(result):
            kind = result.evaluation.model, shift is not None and shift.is_attack
            telling[kind] = _more_telling(telling.get(kind), result, separations)
    sentences = [sentence(result, separations.get(result.evaluation.setting)) for result in telling.values()]
    sentences += corruption_sentences(results)
    lines = [results_table(results), *own_metrics_lines(results)]
    return "\n".join([*lines, *(f"\n{fill(text, WIDTH)}" for text in sentences if text)])


def own_metrics_lines(results: Sequence[Result]) -> list[str]:
    """A line per evaluation that has other metrics than accuracies: those of its setting, or that users registered."""
    found = []
    for result in results:
        if len({run.evaluation.id for run in result.runs}) > 1 or result.evaluation.status != "complete":
            continue
        own = [
            value
            for value in result.evaluation.metrics()
            if value.name not in ACCURACIES or (value.name == "top1" and value.value is None)
        ]
        shown = [f"{value.name} {interval_cell(value)} ({value.reason or f'n = {value.n}'})" for value in own]
        line = f"{result.name} on {result.evaluation.setting}: {', '.join(shown)}"
        found += [fill(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)] if shown else []
    return found


def _more_telling(known: Result | None, other: Result, separations: Mapping[str, Mapping[str, Any]]) -> Result:
    """Of a model's results of one kind the one that costs most; those at a separation-based level go first."""
    if known is None:
        return other

    def rank(result: Result) -> tuple[bool, float]:
        return result.evaluation.setting in separations, result.comparisons["loss"].value or 0.0

    return max(known, other, key=rank)


def separation_words(separation: Mapping[str, Any]) -> str:
    """A separation in words: its value, and what it is the separation of."""
    grey_levels = separation["min_distance"] * 255
    is_whole = abs(grey_levels - round(grey_levels)) < 1e-9
    value = f"{round(grey_levels)}/255" if is_whole else f"{separation['min_distance']:.6g}"
    splits = " + ".join(separation["splits"])
    samples = "samples that equal none of another class" if "num_excluded" in separation else "samples"
    return f"the minimal class separation {value} of all {separation['num_points']:,} {samples} ({splits})"


def sentence(result: Result, separation: Mapping[str, Any] | None) -> str:
    """What a report may say of a model under noise or attack: n, level, where that is from, bound, what is left open.

    Args:
        result: the model on a noise setting, with its comparisons.
        separation: that the noise level is half of; None for a level that the user chose.
    """
    evaluation, loss, shift = result.evaluation, result.comparisons["loss"], result.evaluation.shift
    if shift is None or shift.epsilon is None:
        return ""
    source = f", half of {separation_words(separation)}" if separation else " (a level of the user's choice)"
    noise = f"under {noise_words(shift)} on {samples_words(result)} of {evaluation.dataset}{source}"
    if loss.value is None:
        return f"{result.name}: what is lost {noise} is undefined, because {loss.reason}."
    if guesses := guessing_when_clean(result.runs):
        return f"{result.name} {noise}: {guesses}."
    return (
        f"{result.name} loses {loss.value:.2f} % of the images that it classifies right when clean, with 95 % "
        f"confidence between {loss.ci_low:.2f} and {loss.ci_high:.2f} % (n = {loss.n}, {draws_words(result.runs)}), "
        f"{noise}{_worst_class(result)}{_cautions(result)}; not tested: {not_tested(shift)}, other data."
    )


def samples_words(result: Result) -> str:
    """How many samples a result is of; of re-splits how many distinct ones, and how many each run tests."""
    n, top1 = result.evaluation.n, result.accuracies.get("top1")
    if top1 is None or top1.n == n:
        return f"{n} samples"
    return f"{top1.n} distinct samples ({n} in each run)"


def not_tested(shift: Shift) -> str:
    """What a statement about noise or an attack says nothing of, beside other data."""
    if shift.is_attack:
        return "stronger attacks, other norms and levels, noise, corruptions"
    return "other norms and levels, corruptions, attacks"


def noise_words(shift: Shift) -> str:
    """Noise or an attack with its norm and level: 'uniform L∞ noise within 0.2176'."""
    if shift.family == "gaussian":
        return f"Gaussian noise of standard deviation {shift.epsilon:.4f}"
    if shift.norm == "l0":
        return f"uniform noise on {100 * (shift.epsilon or 0):.4g} % of the values"
    if shift.is_attack:
        return f"{shift.name.upper()}, an attack in {NORM_SYMBOLS[shift.norm or 'linf']} within {shift.epsilon:.4f}"
    shared = ", the same offsets for all samples," if shift.family == f"uniform-{shift.norm}-shared" else ""
    return f"uniform {NORM_SYMBOLS[shift.norm or 'linf']} noise{shared} within {shift.epsilon:.4f}"


def draws_words(runs: Sequence[Run]) -> str:
    """How many draws of the noise each image has, in how many fitted models: '10 draws each'."""
    fits = by_fit(runs)
    num_draws = sum(run.evaluation.num_draws for run in fits[0])
    draws = "1 draw each" if num_draws == 1 else f"{num_draws} draws each"
    if len(fits) == 1:
        return draws
    where = "with {} fitted models" if runs[0].evaluation.test_fraction is None else "in {} re-splits of the data"
    return f"{draws} {where.format(len(fits))}"


def clean_parent_words(group: Sequence[Run]) -> str | None:
    """What 'clean' is accuracy on, where that is not the data set as it is: a model may have both numbers."""
    shifted, clean = group[0].evaluation, group[0].clean
    if clean is None or clean.setting == shifted.dataset:
        return None
    return f"{shifted.setting}: 'clean' is accuracy on {clean.setting}, not on {shifted.dataset} as it is"


def undefined_words(reasons: Mapping[str, str]) -> list[str]:
    """A sentence for each reason why it is not known which answers are right, with the settings that it holds for."""
    named: dict[str, list[str]] = {}
    for setting, reason in reasons.items():
        named.setdefault(reason, []).append(setting)
    return [f"Undefined on {_listed(names)}, because {reason}." for reason, names in named.items()]


def former_words(evaluations: Iterable[Evaluation]) -> list[str]:
    """A sentence for each model whose results are of a former definition, of it or of the settings, which it names."""
    settings: dict[str, set[str]] = {}
    for evaluation in evaluations:
        if not evaluation.is_current:
            settings.setdefault(evaluation.model, set()).add(evaluation.setting)
    return [f"{model} on {_listed(sorted(names))}: {FORMER}." for model, names in settings.items()]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def clipping_words(evaluation: Evaluation) -> str | None:
    """That clipping shortens the noise, where it did; None for other noise.

    By how much depends on the pixels, which are not at hand where results are printed, so no number is given. Noise in
    the L-infinity ball that is clipped keeps its radius wherever one pixel is far enough from 0 and 1.
    """
    shift, noise = evaluation.shift, evaluation.setting_spec.get("perturbation_fn_gpu")
    if shift is None or not shift.family.startswith(("gaussian", "uniform-l2", "uniform-l1")):
        return None
    if not isinstance(noise, dict) or noise.get("boundary") != "clip":
        return None
    return (
        "the noise is clipped to [0, 1] after it is drawn, so it is shorter than its level says in images with values "
        "near 0 or 1"
    )


def clipping_lines(groups: Iterable[Sequence[Run]]) -> list[str]:
    """A sentence for each setting among groups of runs whose noise clipping shortens."""
    found = {group[0].evaluation.setting: clipping_words(group[0].evaluation) for group in groups}
    return [f"{setting}: {words}." for setting, words in found.items() if words]


def few_runs_words(num_fits: int) -> str | None:
    """What intervals over so few fitted models do not tell; None where they are enough, or one."""
    from scipy.special import stdtrit

    if not 1 < num_fits < FEW_RUNS:
        return None
    ours, more = (-stdtrit(runs - 1, 0.025) / runs**0.5 for runs in (num_fits, 10))
    return (
        f"{num_fits} runs tell little of how much fitted models vary: what they vary widens an interval about "
        f"{ours / more:.1f} times as much as over ten runs"
    )


def few_runs_lines(groups: Iterable[Sequence[Run]]) -> list[str]:
    """A sentence for each number of fitted models among groups of runs that is too small to tell how models vary."""
    found = map(few_runs_words, sorted({len(by_fit(group)) for group in groups}))
    return [f"{words}." for words in found if words]


def _cautions(result: Result) -> str:
    """What the intervals of a result do not say, behind a semicolon each."""
    said = [SHARED_DRAWS] if has_shared_draws(result.runs) else []
    more = clipping_words(result.evaluation), few_runs_words(len(by_fit(result.runs)))
    return "".join(f"; {one}" for one in (*said, *filter(None, more)))


def _worst_class(result: Result) -> str:
    worst = result.accuracies["worst_class_accuracy"]
    if worst.value is None:
        return ""
    return f"; its worst class there is '{worst.detail['class']}', {worst.value:.1f} % right (n = {worst.n})"
