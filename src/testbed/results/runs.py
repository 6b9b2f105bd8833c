"""The runs of a model on a setting: what they share, and what they say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed.errors import DataError
from testbed.metrics.comparison import NETTED, Outcomes, change
from testbed.metrics.published import mscr_over_runs
from testbed.metrics.runs import accuracies_of_runs
from testbed.records import MetricValue
from testbed.results.own import (
    accuracies,
    clean_correct,
    correct,
    guessing,
    undefined,
    undefined_comparisons,
    with_class_names,
    without_labels,
)
from testbed.results.precision import Precision
from testbed.store.evaluation import Evaluation


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a model on a setting: the seed as it was asked for, and the clean evaluation it is compared with."""

    seed: int
    evaluation: Evaluation
    clean: Evaluation | None


@dataclass(frozen=True, kw_only=True)
class Result:
    """A model on a setting, over all its runs.

    Args:
        runs: one or more, in the order of their seeds.
        accuracies: over all runs, by name; empty where a run is not complete.
        comparisons: MSCR, loss and recovery by name, and over runs that fit a model each MSCR with the published
            intervals; empty for a clean setting or where a run is not complete.
        label: of the model, where its name does not tell it from another result.
    """

    runs: tuple[Run, ...]
    accuracies: Mapping[str, MetricValue]
    comparisons: Mapping[str, MetricValue]
    label: str = ""

    @property
    def name(self) -> str:
        """Of the model, as tables and sentences have it."""
        return self.label or self.evaluation.model

    @property
    def evaluation(self) -> Evaluation:
        """The first run's evaluation, which stands for what all runs share."""
        return self.runs[0].evaluation


def result_of(runs: Sequence[Run]) -> Result:
    """The runs of one model on one setting, compared with their clean parents where all are complete."""
    if any(run.evaluation.status != "complete" for run in runs):
        return Result(runs=tuple(runs), accuracies={}, comparisons={})
    pairs = [(run.evaluation, run.clean) for run in runs if run.clean and run.clean.status == "complete"]
    return Result(
        runs=tuple(runs),
        accuracies=accuracies_over_runs([run.evaluation for run in runs]),
        comparisons=_compared(pairs) if len(pairs) == len(runs) else {},
    )


def _compared(pairs: Sequence[tuple[Evaluation, Evaluation]]) -> dict[str, MetricValue]:
    try:
        return compare_runs(pairs)
    except DataError as error:
        return {value.name: value for value in undefined_comparisons(pairs[0][0].n, str(error))}


def accuracies_over_runs(evaluations: Sequence[Evaluation]) -> dict[str, MetricValue]:
    """The accuracies of a model on a setting over its runs; those of a single one as they are stored.

    Runs of one fitted model differ in their noise alone: their draws are pooled. Runs that fit a model each are random
    models, whose spread is in the interval.
    """
    fits = by_fit([Run(seed=0, evaluation=evaluation, clean=None) for evaluation in evaluations])
    first = fits[0][0].evaluation
    if len(fits) == len(fits[0]) == 1:
        return {value.name: value for value in first.metrics()}
    ranks, num_classes = [_ranks(fit) for fit in fits], len(first.class_names)
    if len(fits) == 1:
        found = accuracies(ranks[0], first.targets(), num_classes=num_classes, sequences=first.sequences())
    else:
        targets = np.array([fit[0].evaluation.targets() for fit in fits])
        factors = Precision().factors([fit[0].evaluation for fit in fits])
        found = accuracies_of_runs(ranks, targets, factors, num_classes=num_classes)
    return with_class_names(undefined(found, *evaluations), first.class_names)


def compare_runs(runs: Sequence[tuple[Evaluation, Evaluation]]) -> dict[str, MetricValue]:
    """MSCR, loss and recovery of a model on a shifted setting over its runs, each (shifted, clean).

    As in `accuracies_over_runs`, draws are pooled and fitted models are random. Over several of these, MSCR also comes
    with the published intervals.
    """
    fits = by_fit([Run(seed=0, evaluation=shifted, clean=clean) for shifted, clean in runs])
    found = outcomes_of(fits, Precision())
    changes = {name: change(name, found) for name in NETTED} | published_intervals(found)
    return undefined(changes, *(one for pair in runs for one in pair))


def outcomes_of(fits: Sequence[Sequence[Run]], precision: Precision) -> Outcomes:
    """Which images are right, clean and shifted, with each fitted model; a run without a clean parent is its own.

    Args:
        fits: the runs of each fitted model, whose draws are pooled.
        precision: of the intervals.
    Raises:
        DataError: a sample is in no cluster, or not in the clean evaluation.
        StoreError: an evaluation is not stored as a whole.
    """
    pairs = [(_clean_correct(fit[0]), np.concatenate([correct(run.evaluation) for run in fit])) for fit in fits]
    return Outcomes.of_runs(pairs, precision.factors([fit[0].evaluation for fit in fits]))


def published_intervals(outcomes: Outcomes) -> dict[str, MetricValue]:
    """MSCR with the intervals of the papers, by name, where there are several runs that fit a model."""
    if len(outcomes.clean) == 1:
        return {}
    found = mscr_over_runs(100 * outcomes.clean.mean(-1), 100 * outcomes.shifted.mean(-1))
    del found["mscr"]  # ours knows the images, too
    return found


def by_fit(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs of distinct evaluations of a model on a setting, in groups that share the model that was fitted.

    A model that draws at random itself is another one in every run: each has a clean evaluation of its own.
    """
    fits: dict[tuple[int, int | None], list[Run]] = {}
    for run in {run.evaluation.id: run for run in runs}.values():
        fits.setdefault((run.evaluation.fit_seed, None if run.clean is None else run.clean.id), []).append(run)
    return list(fits.values())


def unknown_answers(runs: Iterable[Run]) -> str:
    """Why it is not known which answers of runs are right, shifted or clean; empty where it is."""
    both = {one.id: one for run in runs for one in (run.evaluation, run.clean) if one is not None}
    return next(filter(None, map(without_labels, both.values())), "")


def guessing_when_clean(runs: Iterable[Run]) -> str:
    """That a run's model guesses on the clean images, so that what it loses tells nothing; empty where none does."""
    clean = {run.clean.id: run.clean for run in runs if run.clean is not None}
    for evaluation in clean.values():
        if (reason := guessing(evaluation)) is not None:
            return f"what it loses tells nothing, since on '{evaluation.setting}' {reason}"
    return ""


def has_shared_draws(runs: Sequence[Run]) -> bool:
    """Whether all samples share the noise of a draw, and it is one model's: no interval knows the spread of draws."""
    shift = runs[0].evaluation.shift
    return shift is not None and shift.family.endswith("-shared") and len(by_fit(runs)) == 1


def _clean_correct(run: Run) -> NDArray[np.bool_]:
    return correct(run.evaluation)[0] if run.clean is None else clean_correct(run.evaluation, run.clean)


def _ranks(fit: Sequence[Run]) -> NDArray[np.int32]:
    return np.concatenate([run.evaluation.target_ranks() for run in fit])
