"""How many samples settings declare, for numbers that others published without their n."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from eval_settings.eval_setting_base import EvalSetting
from registry import registry
from testbed.errors import DefinitionError
from testbed.results.aggregates import TENTH, severities_of
from testbed.results.model_facts import load_if_needed


def declared_sizes(names: Iterable[str]) -> dict[str, int]:
    """The number of samples of each setting that is registered and tells it.

    A setting without a size of its own that takes no part of its data set has as many samples as the setting that
    evaluates the whole of it; one of frames has one per anchor.
    """
    load_if_needed()
    whole = _whole_sizes()
    sizes: dict[str, int] = {}
    for setting in _registered(names):
        size = setting.size
        if size is None and setting.idx_subsample_list is None and setting.limit is None:
            size = whole.get(setting.dataset.name or "")
        if size is not None:
            sizes[setting.name] = size
    return sizes


def sizes_of_parts(names: Iterable[str]) -> dict[str, int]:
    """For attacks and corruptions that others ran on part of the images where the whole took too long, its size.

    Their numbers do not tell which they are of; see `point_rows.published_rows`.
    """
    load_if_needed()
    slow = [
        one.name
        for one in _registered(names)
        if one.shift is not None and (one.shift.is_attack or severities_of(one.name))
    ]
    parts = declared_sizes(f"{name}{TENTH}" for name in slow)
    return {name.removesuffix(TENTH): size for name, size in parts.items()}


def _registered(names: Iterable[str]) -> Iterator[EvalSetting]:
    for name in names:
        with suppress(DefinitionError):  # of a published name that begins like a family's and is none of its settings
            if (setting := registry.find_eval_setting(name)) is not None:
                yield setting


def _whole_sizes() -> dict[str, int]:
    """By data set the size of the split that is evaluated, where a setting of the whole of it declares it."""
    sizes: dict[str, int] = {}
    datasets = registry.datasets
    for setting in map(registry.eval_setting, registry.eval_setting_names()):
        name = setting.dataset.name
        is_part = setting.idx_subsample_list is not None or setting.limit is not None
        if name is None or setting.size is None or is_part:
            continue
        if name in datasets and setting.dataset.split in (None, datasets[name].eval_split):
            sizes.setdefault(name, setting.size)
    return sizes
