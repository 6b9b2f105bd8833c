"""Which stored evaluations under noise a question is about, and which it would need that are not there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from testbed.errors import DataError
from testbed.records import NORMS, Norm
from testbed.results.stored import Group, complete_evaluations, is_named, seed_of, stored_groups
from testbed.store.evaluation import Evaluation
from testbed.store.reader import Reader

SEPARATION_BASED = ("mscr", "mscr-without-conflicting")  # names of shifts at half the minimal class separation


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Models under uniform noise.

    Args:
        models, datasets: names and globs; all without any.
        norms: of the noise; any without one.
        epsilon: its level; None for half the minimal class separation.
    """

    models: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    norms: tuple[Norm, ...] = ()
    epsilon: float | None = None

    def __post_init__(self) -> None:
        if self.epsilon is None:
            return
        if not 0 < self.epsilon < math.inf:
            raise DataError(f"The noise level is {self.epsilon}. It must be a positive number.")
        if float(f"{self.epsilon:g}") != self.epsilon:
            raise DataError(f"The noise level {self.epsilon} has too many digits for a name. Ask for {self.epsilon:g}.")

    def is_about(self, evaluation: Evaluation) -> bool:
        """Whether an evaluation, under noise or not, is of such a model and data set."""
        return is_named(evaluation.model, self.models) and is_named(evaluation.dataset, self.datasets)

    def is_of(self, dataset: str, norm: str) -> bool:
        """Whether a data set and norm are asked for."""
        return is_named(dataset, self.datasets) and norm in (self.norms or NORMS)

    def has(self, evaluation: Evaluation) -> bool:
        """Whether an evaluation is an answer. Levels of six digits are those of their names."""
        shift = evaluation.shift
        if shift is None or shift.is_attack or shift.epsilon is None:
            return False
        if not self.is_of(evaluation.dataset, shift.norm or ""):
            return False
        if not is_named(evaluation.model, self.models):
            return False
        return (
            shift.name in SEPARATION_BASED
            if self.epsilon is None
            else math.isclose(shift.epsilon, self.epsilon, rel_tol=1e-9)
        )


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What the store has on a question.

    Args:
        groups: the runs of each model on each setting, compared with clean ones.
        missing: by setting, the models that must be evaluated on it first.
        seeds: of all runs of these models and data sets that are stored.
    """

    groups: Sequence[Group]
    missing: dict[str, list[str]]
    seeds: tuple[int, ...] = ()


def answers(store: Reader, levels: Levels) -> Answers:
    """The stored runs that a question is about.

    What is there without a clean evaluation is missing. So is a level of the user's choice for every model and data set
    that were evaluated together at all, in the norms that are asked for, else in those of their noise, else in linf.
    """
    evaluations = complete_evaluations(store)
    found = stored_groups(store, evaluations, levels.has)
    groups = [group for group in found if all(run.clean for run in group)]
    missing: dict[str, list[str]] = {}
    for group in found:
        if group not in groups:
            missing.setdefault(group[0].evaluation.setting, []).append(group[0].evaluation.model)
    if levels.epsilon is not None:
        there = {(_pair(group[0].evaluation), _noise(group[0].evaluation)) for group in found}
        for (model, dataset), noises in _evaluated(filter(levels.is_about, evaluations)).items():
            asked = [noise for noise in noises if _of_norm(noise, levels.norms)] or levels.norms or ("linf",)
            for noise in asked:
                if ((model, dataset), noise) not in there:
                    norm, dash, kind = noise.partition("-")
                    missing.setdefault(f"{dataset}-noise-{norm}-{levels.epsilon:g}{dash}{kind}", []).append(model)
    seeds = sorted({seed_of(evaluation) for evaluation in evaluations if levels.is_about(evaluation)})
    return Answers(groups=groups, missing=missing, seeds=tuple(seeds))


def _evaluated(evaluations: Iterable[Evaluation]) -> dict[tuple[str, str], list[str]]:
    """By model and data set, the uniform noise that they were evaluated under: 'linf', 'linf-shared'."""
    found: dict[tuple[str, str], list[str]] = {}
    for evaluation in evaluations:
        noises = found.setdefault(_pair(evaluation), [])
        if (noise := _noise(evaluation)) not in noises and _of_norm(noise, ()):
            noises.append(noise)
    return found


def _pair(evaluation: Evaluation) -> tuple[str, str]:
    return evaluation.model, evaluation.dataset


def _noise(evaluation: Evaluation) -> str:
    """The norm of uniform noise, and what its settings' names end in."""
    shift = evaluation.shift
    return "" if shift is None or shift.is_attack else shift.family.removeprefix("uniform-")


def _of_norm(noise: str, norms: Sequence[Norm]) -> bool:
    return noise.partition("-")[0] in (norms or NORMS)
