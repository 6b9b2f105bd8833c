"""Evaluations to units: which pieces are still to do, and which models share them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from testbed.engine.preflight import Ready
from testbed.engine.unit import Unit
from testbed.fingerprint import fingerprint
from testbed.records import ShardRange

MODELS_PER_UNIT = 8  # they are all in memory at once
BYTES_PER_UNIT = 4 << 30  # of their parameters


@dataclass(frozen=True)
class Pending:
    """An evaluation with the pieces that are planned but not stored."""

    ready: Ready
    missing: tuple[ShardRange, ...]


def make_units(pending: Iterable[Pending], *, num_bytes: Mapping[str, int] | None = None) -> list[Unit]:
    """Units for everything that is missing, in an order that keeps models loaded: a few models over all that is asked
    of them, then the next few.

    Args:
        pending: evaluations.
        num_bytes: sizes of models in memory, by fingerprint; where one is not known, its weights file tells.
    """
    pending = list(pending)
    chunk = _chunks(pending, num_bytes or {})
    groups: dict[tuple[int, ...], list[Pending]] = defaultdict(list)
    for item in pending:
        pairing = item.ready.pairing
        key = (item.ready.task, pairing.fit_seed, pairing.noise_seed, pairing.batch_size)
        groups[chunk[load_of(item.ready)], *key].append(item)
    chunks = sorted(groups, key=lambda key: key[0])  # stable: within a chunk the order of the plan stays
    return [unit for key in chunks for unit in _group_units(groups[key])]


def load_of(ready: Ready) -> tuple[str, int]:
    """What a worker loads for an evaluation: a model, fitted with a seed."""
    return ready.model_version.fingerprint, ready.pairing.fit_seed


def _chunks(pending: Sequence[Pending], num_bytes: Mapping[str, int]) -> dict[tuple[str, int], int]:
    """Which models are loaded together, by number: few enough for memory, all with the same preprocessing, so that
    they share decoded and perturbed images."""
    by_preprocessing: dict[str, dict[tuple[str, int], Ready]] = defaultdict(dict)
    for item in pending:
        preprocessing = fingerprint(item.ready.model_version.spec.get("transform"))
        by_preprocessing[preprocessing].setdefault(load_of(item.ready), item.ready)
    chunk: dict[tuple[str, int], int] = {}
    number = 0
    for loads in by_preprocessing.values():
        number += 1
        count = total = 0
        for load, ready in loads.items():
            known = num_bytes.get(ready.model_version.fingerprint)
            size = _weights_bytes(ready) if known is None else known
            if count == MODELS_PER_UNIT or (count and total + size > BYTES_PER_UNIT):
                number += 1
                count = total = 0
            chunk[load] = number
            count, total = count + 1, total + size
    return chunk


def _weights_bytes(ready: Ready) -> int:
    """About what a model takes in memory; 0 where nobody knows before it is loaded."""
    file = ready.pairing.model.weights_file()
    return 0 if file is None else file.stat().st_size


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
