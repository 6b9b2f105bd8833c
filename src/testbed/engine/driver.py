"""The only scheduler and the only writer: feeds workers, stores what they return, until stored equals planned."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Protocol

from testbed.engine.engine import Engine, Event, WorkerLost
from testbed.engine.preflight import Ready
from testbed.engine.schedule import Pending, make_units
from testbed.engine.unit import ModelFacts, Unit, UnitFailure, UnitResult
from testbed.errors import DefinitionError, StoreError, TestbedError
from testbed.records import Shard
from testbed.store.store import Store

MAX_ATTEMPTS = 3
PROBE_SAMPLES = 2
WAIT_SECONDS = 1.0
LOOK_AHEAD = 256  # units


class Progress(Protocol):
    """Where the driver reports what it has done."""

    def advance(self, num_samples: int) -> None:
        """`num_samples` more have gone through a classifier or need not any more."""

    def say(self, line: str) -> None:
        """A line for the user, beside the bar."""


class Driver:
    """Runs pending evaluations on an engine and stores every result as it arrives.

    Args:
        store: open for writing, locked by this driver.
        engine: not started yet.
        evaluation_ids: of the store, by position in `pending`.
        on_complete: called with a pending evaluation whose last shard has just been stored.
    """

    def __init__(
        self,
        store: Store,
        engine: Engine,
        pending: Sequence[Pending],
        evaluation_ids: Sequence[int],
        *,
        progress: Progress,
        on_complete: Callable[[Ready, int], None],
    ) -> None:
        self._store, self._engine, self._progress, self._on_complete = store, engine, progress, on_complete
        self._pending = list(pending)
        self._ids = {self._key(item.ready): id_ for item, id_ in zip(pending, evaluation_ids, strict=True)}
        self._ready = {self._key(item.ready): item.ready for item in pending}
        self._missing = {self._key(item.ready): set(item.missing) for item in pending}
        self._todo: deque[Unit] = deque()
        self._in_hand: dict[str, Unit] = {}
        self._attempts: Counter[Unit] = Counter()
        self._loaded_by: dict[tuple[str, int], set[str]] = {}  # (model, fit seed) -> workers
        self._idle: list[str] = []
        self.failed: dict[int, str] = {}

    @staticmethod
    def _key(ready: Ready) -> tuple[str, int, int, int, int]:
        pairing = ready.pairing
        return (pairing.model.name, ready.task, pairing.fit_seed, pairing.noise_seed, pairing.batch_size)

    @staticmethod
    def _unit_key(unit: Unit, model: str) -> tuple[str, int, int, int, int]:
        return (model, unit.task, unit.fit_seed, unit.noise_seed, unit.batch_size)

    def run(self, probes: Iterable[Ready]) -> None:
        """Probes models that are new, then evaluates everything that is pending.

        Raises: DefinitionError: a probed model cannot answer its setting; nothing has been stored then.
        """
        self._idle = self._engine.start()
        self._run_units([probe(ready) for ready in probes], self._take_probe)
        self._run_units(make_units(self._pending), self._take_result)
        left = {key for key, missing in self._missing.items() if missing} - {
            key for key, id_ in self._ids.items() if id_ in self.failed
        }
        if left:
            raise TestbedError(
                f"{len(left)} evaluation(s) have pieces that no worker returned. Run the same command again."
            )

    def _run_units(self, units: Iterable[Unit], take: Callable[[Unit, UnitResult], None]) -> None:
        self._todo.extend(units)
        while self._todo or self._in_hand:
            self._feed()
            for event in self._engine.wait(WAIT_SECONDS):
                self._handle(event, take)
            self._store.heartbeat()

    def _feed(self) -> None:
        """Gives every idle worker a unit, while there are units: also after one was put back."""
        while self._idle and self._todo:
            unit = self._next_unit(self._idle[0])
            models = tuple(name for name in unit.models if not self._has_failed(unit, name))
            if models:
                worker = self._idle.pop(0)
                self._in_hand[worker] = replace(unit, models=models)
                self._engine.submit(worker, self._in_hand[worker])

    def _next_unit(self, worker: str) -> Unit:
        """Of the units that come soon, the first whose models the worker has loaded or nobody has; else the very first.

        A model that is fitted in a run can take longer to load than to be asked.
        """
        soon = enumerate(islice(self._todo, LOOK_AHEAD))
        position = next((at for at, unit in soon if self._is_at_home(unit, worker)), 0)
        unit = self._todo[position]
        del self._todo[position]
        for name in unit.models:
            self._loaded_by.setdefault((name, unit.fit_seed), set()).add(worker)
        return unit

    def _is_at_home(self, unit: Unit, worker: str) -> bool:
        owners = (self._loaded_by.get((name, unit.fit_seed)) for name in unit.models)
        return all(not known or worker in known for known in owners)

    def _handle(self, event: Event, take: Callable[[Unit, UnitResult], None]) -> None:
        unit = self._in_hand.pop(event.worker)
        if isinstance(event.outcome, WorkerLost):
            self._idle.append(self._engine.respawn(event.worker))
            self._put_back(unit, event.outcome)
        else:
            self._idle.append(event.worker)
            take(unit, event.outcome)

    def _put_back(self, unit: Unit, lost: WorkerLost) -> None:
        """Re-queues a lost unit, model by model, so that one that kills its worker takes no other with it."""
        for name in unit.models:
            single = replace(unit, models=(name,))
            self._attempts[single] = max(self._attempts[single], self._attempts[unit]) + 1
            if self._attempts[single] < MAX_ATTEMPTS:
                self._todo.appendleft(single)
            else:
                reason = f"{lost.reason}, {MAX_ATTEMPTS} times at samples {unit.start} to {unit.stop}"
                self._fail(unit, name, UnitFailure(reason=reason))

    def _take_probe(self, unit: Unit, result: UnitResult) -> None:
        for name, outcome in result.outcomes.items():
            if isinstance(outcome, UnitFailure) and outcome.is_request_error:
                self._fail(unit, name, outcome)
                raise DefinitionError(f"Model '{name}': {outcome.reason}")
        self._record_facts(unit, result.facts)

    def _take_result(self, unit: Unit, result: UnitResult) -> None:
        shards = {name: outcome for name, outcome in result.outcomes.items() if isinstance(outcome, Shard)}
        self._store.put_shards([(self._ids[self._unit_key(unit, name)], shard) for name, shard in shards.items()])
        self._record_facts(unit, result.facts)
        for name, outcome in result.outcomes.items():
            if isinstance(outcome, UnitFailure):
                self._fail(unit, name, outcome)
            elif not self._has_failed(unit, name):
                self._progress.advance(unit.stop - unit.start)
                self._tick_off(unit, name, outcome)

    def _tick_off(self, unit: Unit, name: str, shard: Shard) -> None:
        key = self._unit_key(unit, name)
        was_missing = shard.where in self._missing[key]
        self._missing[key].discard(shard.where)
        if was_missing and not self._missing[key]:
            try:
                self._on_complete(self._ready[key], self._ids[key])
            except StoreError:
                raise
            except Exception as error:  # its logits are stored; the other evaluations go on
                self._fail(unit, name, UnitFailure(reason=f"its metrics failed: {type(error).__name__}: {error}"))

    def _record_facts(self, unit: Unit, facts: Mapping[str, ModelFacts]) -> None:
        for name, fact in facts.items():
            ready = self._ready[self._unit_key(unit, name)]
            try:
                self._store.set_model_facts(
                    ready.model_version.fingerprint,
                    weights_sha256=fact.weights_sha256,
                    num_outputs=fact.num_outputs,
                )
            except TestbedError as error:
                self._fail(unit, name, UnitFailure(reason=str(error)))

    def _has_failed(self, unit: Unit, name: str) -> bool:
        return self._ids[self._unit_key(unit, name)] in self.failed

    def _fail(self, unit: Unit, name: str, failure: UnitFailure) -> None:
        key = self._unit_key(unit, name)
        ready, id_ = self._ready[key], self._ids[key]
        if id_ in self.failed:
            return
        self.failed[id_] = failure.reason
        self._store.fail_evaluation(id_, failure.reason)
        self._progress.advance(sum(where.stop - where.start for where in self._missing[key]))
        self._progress.say(f"failed: {name} on {ready.setting.name}: {failure.reason}")


def probe(ready: Ready, num_samples: int = PROBE_SAMPLES) -> Unit:
    """A unit of few samples, whose answer is looked at and not stored."""
    unit = make_units([Pending(ready, (ready.shards[0],))])[0]
    return replace(unit, stop=min(unit.stop, unit.start + num_samples))
