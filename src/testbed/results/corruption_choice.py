"""Which of the stored settings of corruptions belong into one report: one family of shifts, and one set of samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from testbed.errors import UnknownNameError, suggestion
from testbed.results.stored import Group, is_named
from testbed.store.evaluation import Evaluation

# Families of shifts, which are never mixed. Those with other parameters or another output go on with `-` and a variant.
IN_MEMORY, ON_DISK = "common-corruption", "common-corruption-on-disk"


@dataclass(frozen=True, kw_only=True)
class SampleSet:
    """Stored runs on the same samples of a data set.

    Args:
        name: of the data set, with `@limitN` where only so many of its samples were evaluated.
        groups: the runs of each model on each setting.
        left_out: by name of other sets of the data set, which are not reported, the number of their settings.
    """

    name: str
    groups: Sequence[Group]
    left_out: Mapping[str, int]


def family_of(*, is_on_disk: bool, variant: str = "") -> str:
    """The family of shifts of corrupted images that were read from disk, or else made in memory.

    Args: variant: what the names of the settings go on with behind `_in-memory-` or `_on-disk-`; empty for nothing.
    """
    return "-".join(filter(None, [ON_DISK if is_on_disk else IN_MEMORY, variant]))


def family_words(family: str) -> str:
    """How the images of a family were corrupted: 'simulated in memory, variant mnist28'."""
    kind, variant = _kind(family), _variant(family)
    words = "read from disk" if kind == ON_DISK else "simulated in memory"
    return f"{words}, variant {variant}" if variant else words


def check_family(family: str, evaluations: Iterable[Evaluation]) -> None:
    """Raises: UnknownNameError: only other variants of the family are stored, which the message names."""
    families = {one.shift.family for one in evaluations if one.shift}
    stored = sorted(_variant(known) for known in families if _kind(known) == _kind(family))
    variant = _variant(family)
    if not stored or variant in stored:
        return
    which = f"variant '{variant}'" if variant else "the plain settings without a variant"
    hint = f"{suggestion(variant, stored)} " if variant and suggestion(variant, stored) else ""
    named = ", ".join(f"--variant {known}" if known else "the plain ones" for known in stored)
    raise UnknownNameError(
        f"No complete evaluation is of {which} of corruptions {family_words(_kind(family))}. {hint}Stored: {named}."
    )


def sample_sets(groups: Iterable[Group], datasets: Sequence[str] = ()) -> list[SampleSet]:
    """The set of samples of each data set that is reported: the whole one, else that of the largest limit.

    Args: datasets: names and globs; all without any. One with a limit is also found by its own name, `digits@limit50`.
    """
    by_dataset: dict[str, dict[str, list[Group]]] = {}
    for group in groups:
        by_dataset.setdefault(_dataset(group), {}).setdefault(_set_name(group), []).append(group)
    found = []
    for dataset, sets in by_dataset.items():
        usual = max(sets, key=lambda name: (name == dataset, sets[name][0][0].evaluation.n))
        others = {name: _num_settings(there) for name, there in sets.items() if name != usual}
        found += [
            SampleSet(name=name, groups=there, left_out=others if name == usual else {})
            for name, there in sets.items()
            if name in datasets or (name == usual and is_named(dataset, datasets))
        ]
    return found


def is_of(group: Group, datasets: Sequence[str]) -> bool:
    """Whether runs are on one of the data sets, or on one with a limit that is named so. Args: as `sample_sets`."""
    return is_named(_dataset(group), datasets) or _set_name(group) in datasets


def _kind(family: str) -> str:
    """The family without its variant; empty for one of other shifts."""
    return next((kind for kind in (ON_DISK, IN_MEMORY) if f"{family}-".startswith(f"{kind}-")), "")


def _variant(family: str) -> str:
    return family.removeprefix(_kind(family)).removeprefix("-")


def _dataset(group: Group) -> str:
    """The data set that runs are compared with, which corrupted files on disk may not be."""
    clean = group[0].clean
    return group[0].evaluation.dataset if clean is None else clean.dataset


def _set_name(group: Group) -> str:
    """The data set, with the limit that a setting of not all samples has in its name."""
    evaluation = group[0].evaluation
    limit = f"@limit{evaluation.n}"
    return _dataset(group) + (limit if evaluation.setting.endswith(limit) else "")


def _num_settings(groups: Iterable[Group]) -> int:
    return len({group[0].evaluation.setting for group in groups})
