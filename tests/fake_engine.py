"""An engine without workers, by a script: it loses, delays, repeats and reorders what it is asked."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from testbed import codec
from testbed.engine.engine import Event, WorkerLost
from testbed.engine.unit import ModelFacts, SignOfLife, Unit, UnitFailure, UnitResult
from testbed.records import Shard, ShardRange

KILLED = "worker was ended by signal SIGKILL, probably out of memory"


def shard(unit: Unit, model: str) -> Shard:
    """Logits that depend on the place alone, as a sound worker's do."""
    count = unit.stop - unit.start
    logits = np.full((count, 2), [unit.draw, unit.start], np.float32) + len(model)
    payload = codec.encode(logits)
    return Shard(
        where=ShardRange(draw=unit.draw, start=unit.start, stop=unit.stop), predictions=np.zeros(count, np.int32),
        target_ranks=np.zeros(count, np.int32), payload=payload, codec="f32", num_outputs=2,
        sha256=codec.checksum(payload), num_nonfinite=0, batch_size=4, seconds=0.0, worker="fake",
    )  # fmt: skip


def nothing_is_lost(unit: Unit, attempt: int) -> bool:
    return False


@dataclass
class FakeEngine:
    """Three workers, by default sound and in step.

    Args:
        loses: whether the worker that is at a unit for the n-th time dies of it.
        delays: the chance that a worker says nothing in one `wait`.
        repeats: the chance that an answer comes a second time, in some later `wait`.
        forgets: the chance that an answer never comes, though the worker lives.
        omits: whether the n-th answer to a unit says nothing of its models.
        hangs: whether a worker is silent for ever at a unit, the n-th time.
        shuffles: whether workers answer in any order, and events of one `wait` are mixed.
        dies_at_start: of the workers with these names, none comes to life.
        dies_idle: the chance that a worker without units is found dead.
        unsteady: why models are found unsteady at the end of a worker's turn, by name.
    """

    loses: Callable[[Unit, int], bool] = nothing_is_lost
    delays: float = 0.0
    repeats: float = 0.0
    forgets: float = 0.0
    omits: Callable[[Unit, int], bool] = nothing_is_lost
    hangs: Callable[[Unit, int], bool] = nothing_is_lost
    shuffles: bool = False
    dies_at_start: tuple[str, ...] = ()
    dies_idle: float = 0.0
    depth: int = 2
    names: tuple[str, ...] = ("a", "b", "c")
    failures: dict[str, UnitFailure] = field(default_factory=dict)
    unsteady: dict[str, str] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.hands: dict[str, list[Unit]] = {}
        self.attempts: dict[Unit, int] = {}
        self.submitted: list[tuple[str, Unit]] = []
        self.turn_ends: list[tuple[str, Unit]] = []
        self.killed: list[str] = []
        self.late: list[Event] = []
        self.news: list[Event] = []
        self.stuck: set[str] = set()
        self.generation = 0
        self.is_stopped = False

    @property
    def units(self) -> list[Unit]:
        """All units with samples that were submitted, in this order."""
        return [unit for _, unit in self.submitted]

    def start(self) -> list[str]:
        for name in self.names:
            self._begin(name)
        return list(self.names)

    def _begin(self, name: str) -> None:
        if name.rstrip("0123456789") in self.dies_at_start:
            self.news.append(Event(name, WorkerLost(f"worker {name} could not start: no driver")))
        else:
            self.hands[name] = []
            self.news.append(Event(name, SignOfLife()))

    def submit(self, worker: str, unit: Unit) -> None:
        (self.submitted if unit.num_samples else self.turn_ends).append((worker, unit))
        if worker in self.hands:
            assert len(self.hands[worker]) < self.depth, "a worker was given more than it takes"
            self.hands[worker].append(unit)

    def wait(self, timeout: float) -> list[Event]:
        news, self.news = self.news, []
        late, self.late = self.late, []
        events = [*news, *late]
        for worker in list(self.hands):
            events += self._events(worker)
        if self.shuffles:
            self.chance.shuffle(events)
        return events

    def _events(self, worker: str) -> list[Event]:
        hand = self.hands[worker]
        if worker in self.stuck or self.chance.random() < self.delays:
            return []
        if not hand:
            return [self._lost(worker, "found dead")] if self.chance.random() < self.dies_idle else []
        attempt = self.attempts.get(hand[0], 0) + 1
        if self.loses(hand[0], attempt):  # a worker dies of the unit that it is at, the oldest
            self.attempts[hand[0]] = attempt
            return [self._lost(worker, KILLED)]
        unit = hand[self.chance.randrange(len(hand)) if self.shuffles else 0]
        self.attempts[unit] = self.attempts.get(unit, 0) + 1
        if self.hangs(unit, self.attempts[unit]) or self.chance.random() < self.forgets:
            self.stuck.add(worker)
            return []
        hand.remove(unit)
        answer = Event(worker, self._answer(unit), unit)
        if self.chance.random() < self.repeats:
            self.late.append(answer)
        return [answer]

    def _answer(self, unit: Unit) -> UnitResult:
        if not unit.num_samples:
            found = {name: UnitFailure(reason=self.unsteady[name], is_unsteady=True) for name in unit.models
                     if name in self.unsteady}  # fmt: skip
            return UnitResult(outcomes=found, facts={}, seconds={"forward": 0.0})
        if self.omits(unit, self.attempts.get(unit, 0)):
            return UnitResult(outcomes={}, facts={}, seconds={"forward": 1.0})
        outcomes = {name: self.failures.get(name) or shard(unit, name) for name in unit.models}
        facts = {name: ModelFacts(num_outputs=2, weights_sha256=None) for name in unit.models}
        return UnitResult(outcomes=outcomes, facts=facts, seconds={"forward": 1.0})

    def _lost(self, worker: str, reason: str) -> Event:
        del self.hands[worker]
        self.stuck.discard(worker)
        return Event(worker, WorkerLost(reason))

    def kill(self, worker: str) -> None:
        self.killed.append(worker)
        if worker in self.hands:
            self.news.append(self._lost(worker, "worker was ended by signal SIGKILL"))

    def respawn(self, worker: str) -> str:
        assert worker not in self.hands, "a living worker was replaced"
        self.generation += 1
        fresh = f"{worker.rstrip('0123456789')}{self.generation}"
        self._begin(fresh)
        return fresh

    def stop(self) -> None:
        self.is_stopped = True
        self.hands.clear()
