"""The evaluations that are to be made: what is missing of each, which are complete, and which have failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from testbed.engine.preflight import Ready
from testbed.engine.schedule import Pending, load_of
from testbed.engine.unit import Unit
from testbed.records import ShardRange

_Key = tuple[str, int, int, int, int]


@dataclass
class Entry:
    """One evaluation.

    Attributes:
        ready: what it is.
        id: of it in the store.
        missing: pieces that are planned and not stored.
        is_complete: the store has found all planned pieces, and its metrics are there.
        reason: why it has failed; empty as long as it has not.
        is_rejected: nothing that its model answers is to be stored any more.
    """

    ready: Ready
    id: int
    missing: set[ShardRange] = field(default_factory=set)
    is_complete: bool = False
    reason: str = ""
    is_rejected: bool = False

    @property
    def num_missing(self) -> int:
        """Samples that are not stored, over all draws."""
        return sum(where.stop - where.start for where in self.missing)


class Ledger:
    """Finds the evaluation that a unit's model is run for.

    Args:
        pending: evaluations with what is missing of them.
        evaluation_ids: of the store, by position in `pending`.
    """

    def __init__(self, pending: Sequence[Pending], evaluation_ids: Sequence[int]) -> None:
        self._entries: dict[_Key, Entry] = {
            _key(item.ready): Entry(item.ready, id_, set(item.missing))
            for item, id_ in zip(pending, evaluation_ids, strict=True)
        }

    def entry(self, unit: Unit, model: str) -> Entry:
        """The evaluation that a model of a unit is run for."""
        return self._entries[model, unit.task, unit.fit_seed, unit.noise_seed, unit.batch_size]

    def of_task(self, task: int) -> list[Entry]:
        """All evaluations on the data of one task."""
        return [entry for entry in self._entries.values() if entry.ready.task == task]

    def of_load(self, entry: Entry) -> list[Entry]:
        """The evaluations of the model of one, as it is fitted with the same seed."""
        return [other for other in self._entries.values() if load_of(other.ready) == load_of(entry.ready)]

    def left(self) -> list[Pending]:
        """What is neither complete nor failed."""
        entries = self._entries.values()
        return [Pending(e.ready, tuple(e.missing)) for e in entries if not e.is_complete and not e.reason]

    @property
    def failed(self) -> dict[int, str]:
        """Why evaluations have failed, by their ids."""
        return {entry.id: entry.reason for entry in self._entries.values() if entry.reason}


def _key(ready: Ready) -> _Key:
    pairing = ready.pairing
    return (pairing.model.name, ready.task, pairing.fit_seed, pairing.noise_seed, pairing.batch_size)
