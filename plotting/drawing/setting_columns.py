"""Settings as columns of a grid: what each is called there, and which stand together, by their shift."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from testbed.errors import UnknownNameError, suggestion
from testbed.metrics.corruption import COMMON, EXTRA
from testbed.records import Shift
from testbed.report import NORM_SYMBOLS
from testbed.results.aggregates import TENTH, parts_of
from testbed.results.corruption_choice import IN_MEMORY, ON_DISK, family_words
from testbed.store import published
from testbed.store.reader import Reader

CLEAN, OTHER_SETS, UNKNOWN = "clean", "other data sets", "of unknown shift"
_BENCHMARK = {name: position for position, name in enumerate((*COMMON, *EXTRA))}


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known of a setting.

    Args:
        name: of the setting.
        dataset: whose samples it evaluates; empty where that is not known.
        shift: how it departs from its clean parent, if it says.
    """

    name: str
    dataset: str
    shift: Shift | None


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a grid.

    Args:
        setting: or the mean of several, by its name.
        label: what tells it apart within its group.
        group: what the columns beside it have in common.
    """

    setting: str
    label: str
    group: str


def known_settings(store: Reader, sources: Sequence[str]) -> list[Known]:
    """All settings that have results in the store or in the published sources."""
    own = [one for one in store.list_settings() if one.num_evaluations]
    found = {one.name: Known(name=one.name, dataset=one.dataset, shift=one.shift) for one in own}
    with store.reading() as connection:
        names = published.list_published_settings(connection, sources)
    return [*found.values(), *_registered([name for name in names if name not in found])]


def _registered(names: Iterable[str]) -> list[Known]:
    """What the definitions say of settings of these names, which somebody else evaluated."""
    from registry import registry
    from testbed.definitions import load_definitions

    load_definitions()
    found = []
    for name in names:
        try:
            setting = registry.eval_setting(name)
        except UnknownNameError:
            found.append(Known(name=name, dataset="", shift=None))
            continue
        found.append(Known(name=name, dataset=setting.dataset.name or "", shift=setting.shift))
    return found


def spaces_of(settings: Iterable[Known]) -> dict[str, list[Known]]:
    """The settings by the classes that their data are labelled with: only those can have models in common.

    Returns: by label space; by data set where its classes are nobody else's; '' has settings of unknown data.
    """
    from registry import registry
    from testbed.definitions import load_definitions

    load_definitions()
    spaces: dict[str, list[Known]] = {}
    for setting in settings:
        known = registry.datasets.get(setting.dataset)
        space = known.label_space if known is not None and known.label_space else setting.dataset
        spaces.setdefault(space, []).append(setting)
    return dict(sorted(spaces.items()))


def chosen(settings: Sequence[Known], patterns: Sequence[str]) -> list[Known]:
    """Those of these names and globs; all without any. Raises: UnknownNameError: a pattern fits none."""
    names = [setting.name for setting in settings]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern) and pattern not in names:
            hint = suggestion(pattern, names) or "See db.py --list-eval-settings-db."
            raise UnknownNameError(f"No setting that has results is named '{pattern}'. {hint}")
    is_wanted = [not patterns or any(name == p or fnmatch.fnmatchcase(name, p) for p in patterns) for name in names]
    return [setting for setting, wanted in zip(settings, is_wanted, strict=True) if wanted]


def columns_of(settings: Sequence[Known], *, is_aggregated: bool = False) -> list[Column]:
    """A column for every setting, those of one kind of shift beside each other, clean ones first.

    Args:
        settings: of one label space.
        is_aggregated: severities of a corruption are one column, their mean.
    """
    home = _home(settings)
    names = {setting.name for setting in settings}
    ranked = sorted(settings, key=lambda one: (*_rank(one, home), one.name))
    columns: dict[str, Column] = {}
    for one in ranked:
        label, name = _label(one), one.name
        if is_aggregated and (mean := _mean_of(one, names)):
            label, name = one.shift.name if one.shift else label, mean
        columns.setdefault(name, Column(setting=name, label=label, group=_group(one, home)))
    return list(columns.values())


def _home(settings: Iterable[Known]) -> str:
    """The data set that most settings are of."""
    counts = Counter(setting.dataset for setting in settings)
    return min(counts, key=lambda name: (-counts[name], name), default="")


def _mean_of(setting: Known, names: Collection[str]) -> str | None:
    """The mean that a setting's severity goes into, if the other severities are among the names too."""
    if setting.shift is None or setting.shift.severity is None:
        return None
    mean = setting.name.replace(f".{setting.shift.severity}_", "_", 1)
    parts = parts_of(mean)
    return mean if setting.name in parts and all({part, f"{part}{TENTH}"} & set(names) for part in parts) else None


def _group(setting: Known, home: str) -> str:
    shift = setting.shift
    if shift is None:
        return UNKNOWN if not setting.dataset else CLEAN if setting.dataset == home else OTHER_SETS
    if shift.family.startswith(IN_MEMORY):
        return f"corruptions {family_words(shift.family)}"
    if shift.is_attack:
        return "attacks"
    if shift.family.startswith("uniform-") and shift.norm in NORM_SYMBOLS:
        shared = ", shared offsets" if shift.family.endswith("-shared") else ""
        return f"uniform {NORM_SYMBOLS[shift.norm]} noise{shared}"
    return shift.family.replace("-", " ")


def _rank(setting: Known, home: str) -> tuple[int, str, int, str, float]:
    """Clean, other data sets, corruptions as the benchmark orders them, noise by level, attacks."""
    shift = setting.shift
    if shift is None:
        kind = (CLEAN, OTHER_SETS, UNKNOWN).index(_group(setting, home))
        return (9 if kind == 2 else kind, setting.dataset, len(setting.name), "", 0.0)
    if shift.family.startswith(IN_MEMORY):
        kind = 3 if shift.family.startswith(ON_DISK) else 4
        return (kind, shift.family, _BENCHMARK.get(shift.name, len(_BENCHMARK)), shift.name, shift.severity or 0.0)
    kind = 7 if shift.is_attack else 6 if shift.family.startswith("uniform-") else 5 if shift.norm else 2
    return (kind, shift.family, 0, "", -1.0 if shift.epsilon is None else shift.epsilon)


def _label(setting: Known) -> str:
    """The corruption and its severity, which the group tells the rest of; else the whole name."""
    shift = setting.shift
    if shift is None or not shift.family.startswith(IN_MEMORY):
        return setting.name
    return shift.name if shift.severity is None else f"{shift.name} {shift.severity}"


def groups_of(columns: Sequence[Column]) -> Mapping[str, tuple[int, int]]:
    """The first column of each group and the one behind its last."""
    spans: dict[str, tuple[int, int]] = {}
    for position, column in enumerate(columns):
        first, _ = spans.get(column.group, (position, position))
        spans[column.group] = (first, position + 1)
    return spans
