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
    """Units for everything that is missing, in an order that keeps models loaded: a few models over all that is asked
    of them, then the next few."""
    pending = list(pending)
    loads = list(dict.fromkeys(_load(item) for item in pending))
    chunk = {load: position // MODELS_PER_UNIT for position, load in enumerate(loads)}
    groups: dict[tuple[int, ...], list[Pending]] = defaultdict(list)
    for item in pending:
        pairing = item.ready.pairing
        key = (item.ready.task, pairing.fit_seed, pairing.noise_seed, pairing.batch_size)
        groups[chunk[_load(item)], *key].append(item)
    chunks = sorted(groups, key=lambda key: key[0])  # stable: within a chunk the order of the plan stays
    return [unit for key in chunks for unit in _group_units(groups[key])]


def _load(item: Pending) -> tuple[str, int]:
    """What a worker loads for an evaluation: a model, fitted with a seed."""
    return item.ready.model_version.fingerprint, item.ready.pairing.fit_seed


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
            store_logits=first.pairing.store_logits,
        )
