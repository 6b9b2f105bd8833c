"""Which stored evaluations belong together: the runs of a model on a setting, with their clean parents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from sqlalchemy import select

from testbed.results.numerics import names_with_numerics, network_key, numerics_key
from testbed.results.runs import Run
from testbed.store import digests
from testbed.store.evaluation import Evaluation
from testbed.store.reader import Reader
from testbed.store.schema import metrics

Group = tuple[Run, ...]


def is_named(name: str, patterns: Sequence[str]) -> bool:
    """Whether a name is among names and globs; without any, every one is. A name with brackets is itself, too."""
    return not patterns or any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def complete_evaluations(store: Reader) -> list[Evaluation]:
    """The complete evaluations of today's definitions, by model, setting and seeds."""
    return store.list_evaluations(status="complete", is_stale=False)


def stored_groups(
    store: Reader, evaluations: Sequence[Evaluation], is_wanted: Callable[[Evaluation], bool]
) -> list[Group]:
    """The runs of each model on each setting that is wanted, in the order of the evaluations.

    Evaluations with other numerics are other groups. A run's clean evaluation is the one it was compared with, else
    that of the clean parent by name with the same fitted model and numerics of the network; None where there is none.
    """
    references, by_id = _references(store), {evaluation.id: evaluation for evaluation in evaluations}
    by_name = {_identity(one, one.setting, one.noise_seed): one for one in evaluations}
    groups: dict[tuple[Any, ...], list[Run]] = {}
    for evaluation in filter(is_wanted, evaluations):
        parent = evaluation.shift.clean_eval_setting if evaluation.shift else ""
        own, without_noise = (_identity(evaluation, parent, seed) for seed in (evaluation.noise_seed, 0))
        clean = by_id.get(references.get(evaluation.id, -1)) or by_name.get(own) or by_name.get(without_noise)
        run = Run(seed=seed_of(evaluation), evaluation=evaluation, clean=clean)
        key = (evaluation.model_fingerprint, evaluation.setting_fingerprint, numerics_key(evaluation))
        groups.setdefault(key, []).append(run)
    return [tuple(runs) for runs in groups.values()]


def seed_of(evaluation: Evaluation) -> int:
    """The seed of its run; 0 where nothing is drawn at random."""
    return max(evaluation.fit_seed, evaluation.noise_seed)


def model_names(groups: Sequence[Group]) -> Mapping[int, str]:
    """By the id of each group's first evaluation its model's name, with the numerics that tell two groups apart."""
    return names_with_numerics([group[0].evaluation for group in groups])


def _identity(evaluation: Evaluation, setting: str, noise_seed: int) -> tuple[Any, ...]:
    """What an evaluation of a model on a clean setting is known by."""
    return (evaluation.model_fingerprint, setting, evaluation.fit_seed, noise_seed, network_key(evaluation))


def _references(store: Reader) -> dict[int, int]:
    """By the id of a shifted evaluation that of the clean one it was compared with."""
    columns = metrics.c["evaluation_id", "reference_evaluation_id"]
    is_comparison = metrics.c.reference_evaluation_id.is_not(None)
    wanted = select(*columns).where(is_comparison).distinct()
    with store.reading() as connection:
        digests.check(connection, metrics, is_comparison)
        return {row.evaluation_id: row.reference_evaluation_id for row in connection.execute(wanted)}
