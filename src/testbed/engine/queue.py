"""Which units are to do, which of them workers have in hand, and how often each was lost with its worker."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice

from testbed.engine.unit import Unit

MAX_ATTEMPTS = 3
LOOK_AHEAD = 256  # units


class UnitQueue:
    """Units on their way to workers and back.

    A unit that was lost with its worker is a suspect from then on: it is done by a worker that has nothing else in
    hand, so that the next death tells whether it is to blame.

    Args:
        depth: units that a worker may have in hand.
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._todo: deque[Unit] = deque()
        self._hands: dict[str, list[Unit]] = {}  # in the order in which a worker does them
        self._attempts: Counter[Unit] = Counter()
        self._loaded_by: dict[tuple[str, int], set[str]] = {}  # (model, fit seed) -> workers

    def extend(self, units: Iterable[Unit]) -> None:
        """Adds units, to be done after those that are there."""
        self._todo.extend(units)

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to do and nobody has anything in hand."""
        return not self._todo and not any(self._hands.values())

    @property
    def has_todo(self) -> bool:
        """Whether there are units that no worker has yet."""
        return bool(self._todo)

    def num_in_hand(self, worker: str) -> int:
        """How many units a worker has and has not answered."""
        return len(self._hands.get(worker, ()))

    def next_for(self, worker: str, is_ready: Callable[[Unit], bool]) -> Unit | None:
        """Takes out the unit that a worker should be given; None where it should wait.

        A free worker takes a suspect before all others. Of the units that come soon, the next one is the first that is
        ready and whose models the worker has loaded or nobody has: a model that is fitted in a run can take longer to
        load than to be asked. Else it is the first that is ready.
        """
        hand = self._hands.get(worker, [])
        if len(hand) >= self._depth or any(self._attempts[unit] for unit in hand):
            return None
        if hand and len(self._todo) < len(self._hands):  # the last ones go to whoever is free first
            return None
        position = self._position(worker, is_ready, is_free=not hand)
        if position is None:
            return None
        unit = self._todo[position]
        del self._todo[position]
        return unit

    def _position(self, worker: str, is_ready: Callable[[Unit], bool], *, is_free: bool) -> int | None:
        soon = list(islice(self._todo, LOOK_AHEAD))
        for at, unit in enumerate(soon):
            if is_free and self._attempts[unit] and is_ready(unit):
                return at
        for at, unit in enumerate(soon):
            if self._may_take(unit, is_free=is_free) and self._is_at_home(unit, worker) and is_ready(unit):
                return at
        waiting: set[int] = set()  # tasks whose data are not there yet
        for at, unit in enumerate(self._todo):
            if unit.task not in waiting and self._may_take(unit, is_free=is_free):
                if is_ready(unit):
                    return at
                waiting.add(unit.task)
        return None

    def _may_take(self, unit: Unit, *, is_free: bool) -> bool:
        return is_free or not self._attempts[unit]

    def _is_at_home(self, unit: Unit, worker: str) -> bool:
        owners = (self._loaded_by.get((name, unit.fit_seed)) for name in unit.models)
        return all(not known or worker in known for known in owners)

    def give(self, worker: str, unit: Unit) -> None:
        """Notes that a worker has been given a unit, after those it has."""
        self._hands.setdefault(worker, []).append(unit)
        for name in unit.models:
            self._loaded_by.setdefault((name, unit.fit_seed), set()).add(worker)

    def answered(self, worker: str, unit: Unit | None) -> bool:
        """Notes that a worker has answered; returns whether it had that unit in hand, and nobody answered before."""
        hand = self._hands.get(worker, [])
        if unit not in hand:
            return False
        hand.remove(unit)
        return True

    def add_worker(self, worker: str) -> None:
        """Notes a worker that has nothing in hand."""
        self._hands[worker] = []

    def lose(self, worker: str, *, is_at_work: bool) -> Unit | None:
        """Forgets a worker; returns the unit that it died with, and puts those it had not come to back in front.

        Args:
            worker: that is lost.
            is_at_work: whether it could have begun: else no unit is to blame, and all are put back.
        """
        hand = self._hands.pop(worker, [])
        for owners in self._loaded_by.values():
            owners.discard(worker)
        first = 1 if is_at_work else 0
        self._todo.extendleft(reversed(hand[first:]))
        return hand[0] if hand and is_at_work else None

    def retry(self, unit: Unit, model: str) -> bool:
        """Puts one model of a unit that came to nothing back in front; returns False after `MAX_ATTEMPTS`.

        Model by model: one that kills its worker then takes no other with it.
        """
        single = replace(unit, models=(model,))
        self._attempts[single] = max(self._attempts[single], self._attempts[unit]) + 1
        if self._attempts[single] >= MAX_ATTEMPTS:
            return False
        self._todo.appendleft(single)
        return True

    def drop_todo(self) -> None:
        """Drops all units that no worker has."""
        self._todo.clear()

    def drain(self) -> None:
        """Drops all units but those that workers are at."""
        self._todo.clear()
        for hand in self._hands.values():
            del hand[1:]
