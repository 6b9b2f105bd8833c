"""Evaluations to units: which pieces are still to do, and which models share them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from testbed.engine.preflight import Ready
from testbed.engine.unit import Unit
from testbed.records import ShardRange

MODELS_PER_UNIT = 8  # they are all in memory at once


@dataclass(frozen=True)
class Pending:
    """An evaluation with the pieces that are planned but not stored."""

    ready: Ready
    missing: tuple[ShardRange, ...]


def make_units(pending: Iterable[Pending]) -> list[Unit]:
    """Units for everything that is missing, in an order that keeps models loaded: models, then draws, then samples."""
    groups: dict[tuple[int, int, int, int], list[Pending]] = defaultdict(list)
    for item in pending:
        pairing = item.ready.pairing
        groups[item.ready.task, pairing.fit_seed, pairing.noise_seed, pairing.batch_size].append(item)
    return [
        unit
        for group in groups.values()
        for start in range(0, len(group), MODELS_PER_UNIT)
        for unit in _group_units(group[start : start + MODELS_PER_UNIT])
    ]


def _group_units(group: Sequence[Pending]) -> Iterator[Unit]:
    wanted: dict[ShardRange, list[str]] = defaultdict(list)
    for item in group:
        for where in item.missing:
            wanted[where].append(item.ready.pairing.model.name)
    first = group[0].ready
    for where in sorted(wanted, key=lambda where: (where.draw, where.start)):
        yield Unit(
            task=first.task,
            models=tuple(wanted[where]),
            fit_seed=first.pairing.fit_seed,
            noise_seed=first.pairing.noise_seed,
            draw=where.draw,
            start=where.start,
            stop=where.stop,
            batch_size=first.pairing.batch_size,
        )
