"""What the store holds on one model and one data set: clean, under noise and attacks, under common corruptions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.errors import TestbedError, UnknownNameError, suggestion
from testbed.records import NORMS, Shift
from testbed.results.corruption_choice import IN_MEMORY
from testbed.results.stored import Group, complete_evaluations, stored_groups
from testbed.store.evaluation import Evaluation
from testbed.store.reader import Reader


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The complete evaluations of today's definitions, in groups of runs.

    Args:
        store: that holds them.
        model, dataset: names; the data set is that of the clean images.
        plain: on settings that are no shift of another one.
        shifted: under noise, attacks and whatever else has a clean parent, with that; half the separation first.
        families: of the common corruptions that are stored, for `testbed.results.corruption`.
        corrupted: under these.
        separations: by setting, the separation that its noise level is half of, as its definition keeps it.
        unfinished: evaluations that are left out as they are not complete, or as their definition has changed.
    """

    store: Reader
    model: str
    dataset: str
    plain: Sequence[Group]
    shifted: Sequence[Group]
    families: Sequence[str]
    corrupted: Sequence[Group]
    separations: Mapping[str, Mapping[str, Any]]
    unfinished: Sequence[Evaluation]

    @property
    def groups(self) -> list[Group]:
        """All of them, in the order of the report."""
        return [*self.plain, *self.shifted, *self.corrupted]

    def separation_of(self, group: Group) -> Mapping[str, Any] | None:
        """The separation that the noise level of a group is half of; None for another level."""
        return self.separations.get(group[0].evaluation.setting)

    @property
    def at_separation(self) -> list[Group]:
        """The groups under noise at half the minimal class separation."""
        return [group for group in self.shifted if self.separation_of(group)]

    @property
    def evaluations(self) -> list[Evaluation]:
        """The evaluations of all groups, each once."""
        found = {run.evaluation.id: run.evaluation for group in self.groups for run in group}
        return list(found.values())


def evidence(store: Reader, model: str, dataset: str | None) -> Evidence:
    """What there is on a model and a data set; on the only one that is stored if None is named.

    Raises:
        UnknownNameError: the model has no complete evaluation, or none on that data set.
        TestbedError: it has some on several data sets, and none is named.
    """
    complete = complete_evaluations(store)
    groups = stored_groups(store, complete, lambda one: one.model == model)
    if not groups:
        raise UnknownNameError(_no_model(store, model, sorted({one.model for one in complete})))
    chosen = _dataset(model, dataset, sorted({dataset_of(group) for group in groups}))
    own = [group for group in groups if dataset_of(group) == chosen]
    corrupted = [group for group in own if _is_corrupted(group)]
    shifted = [group for group in own if group not in corrupted and all(run.clean for run in group)]
    specs = {setting.name: setting.spec.get("separation") for setting in store.list_settings()}
    separations = {name: separation for name, separation in specs.items() if separation}
    others = [one for one in store.list_evaluations(model=model) if one.status != "complete" or one.is_stale]
    return Evidence(
        store=store,
        model=model,
        dataset=chosen,
        plain=[group for group in own if group not in corrupted and group not in shifted],
        shifted=sorted(shifted, key=lambda group: _rank(group, separations)),
        families=list(dict.fromkeys(shift.family for group in corrupted if (shift := shift_of(group)))),
        corrupted=corrupted,
        separations=separations,
        unfinished=[one for one in others if one.dataset == chosen],
    )


def dataset_of(group: Group) -> str:
    """The data set that runs are compared with, which corrupted files on disk may not be."""
    clean = group[0].clean
    return group[0].evaluation.dataset if clean is None else clean.dataset


def shift_of(group: Group) -> Shift | None:
    """How the setting of a group departs from its clean parent."""
    return group[0].evaluation.shift


def _is_corrupted(group: Group) -> bool:
    shift = shift_of(group)
    return shift is not None and shift.family.startswith(IN_MEMORY) and all(run.clean for run in group)


def _rank(group: Group, separations: Collection[str]) -> tuple[bool, bool, int, float, str]:
    """Half the separation first, then other noise by norm and level, then attacks."""
    evaluation, shift = group[0].evaluation, shift_of(group)
    norms: tuple[str, ...] = NORMS
    place = norms.index(shift.norm) if shift and shift.norm in norms else len(norms)
    level = (shift.epsilon or 0.0) if shift else 0.0
    return evaluation.setting not in separations, bool(shift and shift.is_attack), place, level, evaluation.setting


def _no_model(store: Reader, model: str, known: Iterable[str]) -> str:
    names = list(known)
    hint = suggestion(model, names) or f"Stored are: {', '.join(names[:12]) or 'none'}."
    return f"Model '{model}' has no complete evaluation in {store.url}. {hint}"


def _dataset(model: str, wanted: str | None, known: Sequence[str]) -> str:
    if wanted in known:
        return str(wanted)
    if wanted is not None:
        raise UnknownNameError(
            f"Model '{model}' has no complete evaluation on data set '{wanted}', but on {', '.join(known)}. "
            f"{suggestion(wanted, known)}".rstrip()
        )
    if len(known) > 1:
        raise TestbedError(f"Model '{model}' was evaluated on {', '.join(known)}. Choose one with --dataset.")
    return known[0]
