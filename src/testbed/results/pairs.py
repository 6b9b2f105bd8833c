"""Two stored models on the same samples and the same noise: whether one is better than the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from testbed.errors import DataError, UnknownNameError, suggestion
from testbed.metrics.intervals import Side
from testbed.metrics.paired import Contrast, accuracy_contrast, contrast
from testbed.metrics.significance import holm
from testbed.records import MetricValue
from testbed.results.numerics import arithmetic_key, arithmetic_words
from testbed.results.precision import Precision
from testbed.results.records import number
from testbed.results.runs import Run, guessing_when_clean, outcomes_of, unknown_answers
from testbed.results.stored import Group, complete_evaluations, is_named, stored_groups
from testbed.store.evaluation import Evaluation
from testbed.store.reader import Reader

# The bound that matters where one is asked for: by how much the first model is better, at least.
SIDES: dict[str, Side] = {"accuracy": "lower", "mscr": "lower", "loss": "upper"}


@dataclass(frozen=True, kw_only=True)
class PairRow:
    """A number of two models on a setting.

    Args:
        runs: the evaluations of the two, run by run.
        contrast: the values, their difference (first less second), and the test.
        holm: the p-value, corrected for the rows of the table of the same metric: a setting is asked about once.
    """

    runs: Sequence[tuple[Run, Run]]
    contrast: Contrast
    holm: float | None = None

    @property
    def evaluation(self) -> Evaluation:
        """The first model's in the first run."""
        return self.runs[0][0].evaluation

    @property
    def reason(self) -> str:
        """Why it is not known which answers are right, so that all is undefined; empty where it is."""
        return unknown_answers(run for pair in self.runs for run in pair)

    @property
    def warnings(self) -> dict[str, str]:
        """By name of a model that it guesses on the clean images, where it does."""
        found = {own[0].evaluation.model: guessing_when_clean(own) for own in zip(*self.runs, strict=True)}
        return {model: warning for model, warning in found.items() if warning}

    @property
    def arithmetic(self) -> str:
        """How the two models computed, in words: once where it is the same."""
        return " and ".join(dict.fromkeys(arithmetic_words(run.evaluation.numerics) for run in self.runs[0]))


def _nothing_of(model: str, evaluations: Sequence[Evaluation], asked: Sequence[str]) -> str:
    """That a model has no complete evaluation where it is asked for, and where it has."""
    there = sorted({one.setting for one in evaluations if one.model == model})
    if there:
        return f"Model '{model}' has no complete evaluation on {', '.join(asked)}. It has some on {', '.join(there)}."
    hint = suggestion(model, sorted({one.model for one in evaluations}))
    return f"Model '{model}' has no complete evaluation. {hint}".rstrip()


def compare_models(
    store: Reader, models: tuple[str, str], precision: Precision, *, settings: Sequence[str], datasets: Sequence[str]
) -> list[PairRow]:
    """How two models differ in accuracy, and under a shift in MSCR and loss, on the settings that both were run on.

    Args:
        settings, datasets: names and globs; all without any.
        precision: of the intervals.
    Raises:
        UnknownNameError: a model has no complete evaluation there, or they have none in common.
        DataError: their samples, draws or seeds differ.
    """
    evaluations = complete_evaluations(store)

    def groups(model: str) -> dict[str, list[Group]]:
        own = stored_groups(
            store, evaluations,
            lambda one: one.model == model and is_named(one.setting, settings) and is_named(one.dataset, datasets),
        )  # fmt: skip
        if not own:
            raise UnknownNameError(_nothing_of(model, evaluations, (*settings, *datasets)))
        return _by_setting(own)

    first, second = (groups(model) for model in models)
    common = [setting for setting in first if setting in second]
    if not common:
        raise UnknownNameError(
            f"No setting was evaluated with both '{models[0]}' ({', '.join(first)}) and '{models[1]}' "
            f"({', '.join(second)}). Evaluate both on one: python eval.py --models {' '.join(models)} --eval-settings "
            f"{next(iter(first))}"
        )
    pairs = [pair for setting in common for pair in _alike(first[setting], second[setting])]
    rows = [row for ours, theirs in pairs for row in _rows(_paired(ours, theirs), precision)]
    return _corrected(rows)


def pair_record(row: PairRow) -> dict[str, Any]:
    """A row as a JSON-able record."""
    evaluation, shift, found = row.evaluation, row.evaluation.shift, row.contrast
    return {
        "eval_setting": evaluation.setting,
        "epsilon": shift.epsilon if shift else None,
        "metric": found.difference.name,
        "models": [run.evaluation.model for run in row.runs[0]],
        "numerics": [dict(run.evaluation.numerics) for run in row.runs[0]],
        "values": list(found.values),
        "difference": number(found.difference),
        "p_value": found.p_value,
        "p_value_holm": row.holm,
        "test": found.test,
        "num_differing": found.num_differing,
        "n": evaluation.n,
        "num_draws": evaluation.num_draws,
        "warnings": row.warnings,
        "seeds": [max(first.seed, second.seed) for first, second in row.runs],
    }


def _corrected(rows: Sequence[PairRow]) -> list[PairRow]:
    """Each metric for itself: accuracy, MSCR and loss of a setting answer one question, which is not asked thrice."""
    p_values: dict[str, list[float]] = {}
    for row in rows:
        if row.contrast.p_value is not None:
            p_values.setdefault(row.contrast.difference.name, []).append(row.contrast.p_value)
    corrected = {name: iter(holm(of_metric)) for name, of_metric in p_values.items()}
    return [
        row if row.contrast.p_value is None else replace(row, holm=float(next(corrected[row.contrast.difference.name])))
        for row in rows
    ]


def _by_setting(groups: Iterable[Group]) -> dict[str, list[Group]]:
    found: dict[str, list[Group]] = {}
    for group in groups:
        found.setdefault(group[0].evaluation.setting, []).append(group)
    return found


def _alike(first: Sequence[Group], second: Sequence[Group]) -> list[tuple[Group, Group]]:
    """The runs of two models on a setting, those together that were computed in the same way; else the only ones.

    Raises: DataError: a model was evaluated several times, and it cannot be told which to compare.
    """
    if len(first) == len(second) == 1:
        return [(first[0], second[0])]
    ours, theirs = ({arithmetic_key(one[0].evaluation.numerics): one for one in groups} for groups in (first, second))
    if len(ours) < len(first) or len(theirs) < len(second) or not (common := [key for key in ours if key in theirs]):
        twice = max(first, second, key=len)[0][0].evaluation
        raise DataError(
            f"'{twice.model}' was evaluated on '{twice.setting}' with several numerics (device, batch size, "
            "precision), and none alone is that of the other model. Put those that are to be compared into a database "
            "of their own: eval.py --db-url."
        )
    return [(ours[key], theirs[key]) for key in common]


def _paired(first: Group, second: Group) -> list[tuple[Run, Run]]:
    """The runs of both models, seed by seed.

    Raises: DataError: their seeds, draws or samples differ.
    """
    ours: Mapping[int, Run] = {run.seed: run for run in first}
    theirs: Mapping[int, Run] = {run.seed: run for run in second}
    if ours.keys() != theirs.keys():
        ours, theirs = _spread(ours, theirs), _spread(theirs, ours)
    a, b = first[0].evaluation, second[0].evaluation
    who = f"'{a.model}' and '{b.model}' on '{a.setting}'"
    if ours.keys() != theirs.keys():
        raise DataError(
            f"{who} have other seeds: {_listed(ours)} and {_listed(theirs)}. Evaluate both with the same: python "
            f"eval.py --models {a.model} {b.model} --eval-settings {a.setting} --seeds {_listed({*ours, *theirs}, ' ')}"
        )
    pairs = [(ours[seed], theirs[seed]) for seed in sorted(ours)]
    for one, other in pairs:
        draws = (one.evaluation.num_draws, other.evaluation.num_draws)
        if draws[0] != draws[1]:
            raise DataError(
                f"{who} have {draws[0]} and {draws[1]} draws of the noise. Evaluate both with as many: python "
                f"eval.py --models {a.model} {b.model} --eval-settings {a.setting} --draws {max(draws)}"
            )
        if one.evaluation.sample_ids() != other.evaluation.sample_ids():
            raise DataError(
                f"{who} have other samples in seed {max(one.seed, other.seed)}. Evaluate both with the same --seeds "
                "and --limit."
            )
    return pairs


def _spread(runs: Mapping[int, Run], others: Mapping[int, Run]) -> Mapping[int, Run]:
    """A run in which nothing is drawn at random stands beside every run of the other model."""
    single = runs.get(0) if len(runs) == 1 else None
    evaluation = single.evaluation if single else None
    is_fixed = evaluation is not None and evaluation.shift is None and evaluation.num_draws == 1
    return dict.fromkeys(others, single) if single and is_fixed else runs


def _listed(runs: Iterable[int], separator: str = ", ") -> str:
    return separator.join(map(str, sorted(runs)))


def _rows(runs: list[tuple[Run, Run]], precision: Precision) -> list[PairRow]:
    is_shifted = all(run.clean is not None for pair in runs for run in pair)
    names = ("accuracy", "mscr", "loss") if is_shifted else ("accuracy",)
    if reason := unknown_answers(run for pair in runs for run in pair):
        return [PairRow(runs=runs, contrast=_undefined(name, runs[0][0].evaluation.n, reason)) for name in names]
    fits: dict[tuple[int, int], list[tuple[Run, Run]]] = {}
    for pair in runs:
        fits.setdefault((pair[0].evaluation.fit_seed, pair[1].evaluation.fit_seed), []).append(pair)
    first, second = (
        outcomes_of([[pair[index] for pair in fit] for fit in fits.values()], precision) for index in (0, 1)
    )

    def row(name: str) -> PairRow:
        a, b = (replace(one, factors=one.factors.of(side=precision.side(SIDES[name]))) for one in (first, second))
        if name == "accuracy":
            return PairRow(runs=runs, contrast=accuracy_contrast(a.shifted, b.shifted, a.factors))
        return PairRow(runs=runs, contrast=contrast(name, a, b))

    return [row(name) for name in names]


def _undefined(name: str, n: int, reason: str) -> Contrast:
    difference = MetricValue(name=name, value=None, n=n, reason=reason)
    return Contrast(difference=difference, values=(None, None), p_value=None, test="", num_differing=None)
