"""Accuracies over several settings by one name, such as `avg_corruptions`: of which they are the plain mean."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from testbed.metrics.corruption import COMMON, EXTRA

SEVERITIES = range(1, 6)
TENTH = "_10percent"  # ends the name of a setting on part of the images, which stands in for the whole where that lacks

_ON_DISK = (*COMMON, *EXTRA)
_IN_MEMORY = tuple(name for name in _ON_DISK if name != "glass_blur")  # which the ImageNet Testbed did not simulate
_ATTACKS = ("pgd.linf.eps0.5", "pgd.linf.eps2", "pgd.l2.eps0.1", "pgd.l2.eps0.5")

# `X-c.fog_in-memory` and `X-c_in-memory`, and the same for what other sets of copies are called, or variants that the
# name of a setting ends with; a severity would stand between two full stops.
_OF_ONE = re.compile(r"(?P<set>[^.]+-[a-z0-9]+)\.(?P<name>[a-z0-9_]+?)(?P<ending>_(?:in-memory|on-disk)\S*)")
_OF_ALL = re.compile(r"(?P<set>[^.]+-[a-z0-9]+)(?P<ending>_(?:in-memory|on-disk)\S*)")
_AT_SEVERITY = re.compile(r"(?P<corruption>[^.]+-[a-z0-9]+\.[a-z0-9_]+)\.[1-5](?P<ending>_(?:in-memory|on-disk)\S*)")


def _corruptions(names: Iterable[str], ending: str) -> tuple[str, ...]:
    return tuple(f"imagenet-c.{name}_{ending}" for name in names)


# Source: Taori et al. 2020, and the public figures of the ImageNet Testbed.
AGGREGATES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "avg_corruptions": (
            *_corruptions(_ON_DISK, "on-disk"), *_corruptions(_IN_MEMORY, "in-memory"), "greyscale",
            "stylized_imagenet",
        ),
        "avg_imagenet_c_on_disk": _corruptions(_ON_DISK, "on-disk"),
        "avg_imagenet_c_in_memory": _corruptions(_IN_MEMORY, "in-memory"),
        "avg_pgd": _ATTACKS,
    }
)  # fmt: skip


def parts_of(name: str) -> tuple[str, ...]:
    """The settings and aggregates that an aggregate is the plain mean of; empty for a name that is none."""
    if (named := AGGREGATES.get(name)) is not None:
        return tuple(named)
    if (one := _OF_ONE.fullmatch(name)) is not None:
        return tuple(f"{one['set']}.{one['name']}.{severity}{one['ending']}" for severity in SEVERITIES)
    if (every := _OF_ALL.fullmatch(name)) is not None:
        return tuple(f"{every['set']}.{corruption}{every['ending']}" for corruption in COMMON)
    return ()


def severities_of(name: str) -> tuple[str, ...]:
    """The settings of the corruption that a setting is of, at all severities; empty for a name that tells none."""
    one = _AT_SEVERITY.fullmatch(name)
    return () if one is None else parts_of(f"{one['corruption']}{one['ending']}")


def settings_of(name: str, stored: Collection[str] = ()) -> dict[str, float]:
    """The settings that a name stands for with their weights in the mean, which add up to 1; a setting is its own.

    Args: stored: names that are settings whatever they look like; published copies may come without severities.
    """
    parts = () if name in stored else parts_of(name)
    if not parts:
        return {name: 1.0}
    weights: dict[str, float] = {}
    for part in parts:
        for setting, weight in settings_of(part, stored).items():
            weights[setting] = weights.get(setting, 0.0) + weight / len(parts)
    return weights
