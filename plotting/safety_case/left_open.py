"""The part of a report that says what was not tested: told from what is stored, and what no store can know."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
from plotting.safety_case.commands import patterns_of
from plotting.safety_case.document import Section
from plotting.safety_case.evidence import Evidence, dataset_of, shift_of

from testbed.metrics.corruption import COMMON, EXTRA, missing_words
from testbed.metrics.corruption_error import all_severities
from testbed.records import NORMS
from testbed.report import NORM_SYMBOLS
from testbed.results import by_fit
from testbed.results.corruption import DatasetGrids
from testbed.results.corruption_choice import IN_MEMORY, ON_DISK, family_words
from testbed.results.data_facts import DataFacts
from testbed.results.stored import Group, complete_evaluations

SHOWN = 8  # names in a sentence
GREY_LEVEL = 1 / 255
ALWAYS = (
    "Images of other origin than these (other cameras, sites, people, times, preparation), and inputs of no class.",
    "Whether stated confidences are right, and the system around the model.",
)


def left_open(found: Evidence, grids: Sequence[DatasetGrids], facts: Sequence[DataFacts]) -> Section:
    """The section 'What was not tested'."""
    points = [
        *_samples(found, facts), *_runs(found), *_noise(found), *_attacks(found), *_corruptions(grids), *_others(found),
        *_unfinished(found), *ALWAYS,
    ]  # fmt: skip
    return Section(title="What was not tested", points=points)


def _samples(found: Evidence, facts: Sequence[DataFacts]) -> Iterator[str]:
    sizes = {(one.name, one.split): one.n for one in facts}
    for group in found.plain[:1]:
        evaluation = group[0].evaluation
        whole = sizes.get((evaluation.dataset, evaluation.split), evaluation.n)
        if evaluation.n < whole and evaluation.test_fraction is None:
            yield (
                f"Samples: {whole - evaluation.n:,} of the {whole:,} of {evaluation.dataset} ({evaluation.split}) were "
                f"left out of {evaluation.setting}."
            )
        targets = set(np.unique(evaluation.targets()).tolist())
        absent = [name for index, name in enumerate(evaluation.class_names) if index not in targets]
        if absent and max(targets, default=-1) >= 0:
            yield f"Classes without an image: {_listed(absent)}."


def _runs(found: Evidence) -> Iterator[str]:
    fits = max((len(by_fit(group)) for group in found.groups), default=1)
    if fits == 1:
        yield "Training: this one fitted model is what was tested, not others that the same training would give."
    else:
        yield f"Training: {fits} fitted models stand for all that the same training would give."


def _noise(found: Evidence) -> Iterator[str]:
    """Norms without the level of the separation, and the levels that there are: no other is covered."""
    shifts = [shift for group in found.shifted if (shift := shift_of(group)) and not shift.is_attack]
    there = {shift.norm for group in found.at_separation if (shift := shift_of(group))}
    missing = [NORM_SYMBOLS[norm] for norm in NORMS if norm not in there]
    if missing:
        yield f"Noise at half the minimal class separation in {', '.join(missing)}."
    levels = sorted({f"{shift.family} {shift.epsilon:.4g}" for shift in shifts if shift.epsilon is not None})
    if levels:
        yield f"Noise of other kinds and levels than {_listed(levels)}."
    for group in found.at_separation:
        shift = shift_of(group)
        if shift and shift.norm == "linf" and 0 < (shift.epsilon or 0) < GREY_LEVEL:
            yield f"Much: {group[0].evaluation.setting} changes pixels by less than one grey level of 255."


def _attacks(found: Evidence) -> Iterator[str]:
    names = {group[0].evaluation.setting for group in found.shifted if (shift := shift_of(group)) and shift.is_attack}
    if names:
        yield f"Attacks that are stronger than, or other than, {_listed(sorted(names))}."
    else:
        yield "Attacks: what random noise costs is no bound on what an attacker finds."


def _corruptions(grids: Sequence[DatasetGrids]) -> Iterator[str]:
    kinds = {one.family for one in grids}
    for one in grids:
        there = {cell for model in one.models for cell in model.grid.cells}
        if lack := missing_words(there, all_severities(COMMON)):
            yield f"Of the 15 common corruptions, {family_words(one.family)}: {lack}."
        if lack := missing_words(there, all_severities(EXTRA)):
            yield f"Of the 4 held-out corruptions, {family_words(one.family)}: {lack}."
    for family in (IN_MEMORY, ON_DISK):
        if family not in kinds:
            yield f"Common corruptions {family_words(family)}."


def _others(found: Evidence) -> Iterator[str]:
    """Other data sets of the model, and settings of this data set that other models have."""
    complete = complete_evaluations(found.store)
    groups: list[Group] = found.groups
    own = {group[0].evaluation.setting for group in groups}
    same_data = {dataset_of(group) for group in groups} | {group[0].evaluation.dataset for group in groups}
    elsewhere = sorted({one.dataset for one in complete if one.model == found.model} - same_data)
    yield (
        f"Other data: the database also has this model on {_listed(elsewhere)}, which this report leaves out."
        if elsewhere
        else "Natural shifts: the database has this model on no other data set."
    )
    beside = sorted({one.setting for one in complete if one.dataset in same_data} - own)
    if beside:
        names = _listed(patterns_of(beside))
        yield f"Settings of {found.dataset} that the database has of other models alone: {names}."


def _unfinished(found: Evidence) -> Iterator[str]:
    names = sorted({
        f"{one.setting} ({'of a former definition' if one.is_stale else one.status})" for one in found.unfinished
    })  # fmt: skip
    if names:
        yield f"Evaluations that are stored and not used: {_listed(names)}."


def _listed(names: Collection[str]) -> str:
    shown = list(names)[:SHOWN]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(shown) + more
