"""The only scheduler and the only writer: feeds workers, stores what they return, until stored equals planned."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol

from testbed.engine.engine import Engine, Event, WorkerLost
from testbed.engine.ledger import Entry, Ledger
from testbed.engine.preflight import Ready
from testbed.engine.queue import MAX_ATTEMPTS, UnitQueue
from testbed.engine.schedule import Pending, load_of, make_units
from testbed.engine.unit import ModelFacts, SignOfLife, Unit, UnitFailure, UnitResult
from testbed.engine.watch import MAX_STARTS, Watch
from testbed.errors import DataError, DefinitionError, StoreError, TestbedError
from testbed.eventlog import record
from testbed.records import Shard
from testbed.store.store import Store

PROBE_SAMPLES = 2
WAIT_SECONDS = 1.0
WAIT_FOR_DATA_SECONDS = 0.1
UNIT_TIMEOUT = 1800.0  # seconds

Answers = list[tuple[Unit, UnitResult]]


class Progress(Protocol):
    """Where the driver reports what it has done."""

    def advance(self, num_samples: int) -> None:
        """`num_samples` more have gone through a classifier."""

    def skip(self, num_samples: int) -> None:
        """`num_samples` need not go through a classifier any more."""

    def say(self, line: str) -> None:
        """A line for the user, beside the bar."""

    def tick(self) -> None:
        """Time has passed: called again and again, also while nothing advances."""

    def began(self) -> None:
        """A worker is up and gives signs of life."""

    def busy(self, worker_name: str, stage_seconds: Mapping[str, float]) -> None:
        """Where the time of a worker's latest unit went, by stage."""


def always(unit: Unit) -> bool:
    """Whether the data of a unit are there, where all data are."""
    return True


def never() -> bool:
    """Whether the user wants an end, where nobody can ask for one."""
    return False


class Driver:
    """Runs pending evaluations on an engine and stores every result as it arrives.

    Args:
        store: open for writing, locked by this driver.
        engine: not started yet.
        evaluation_ids: of the store, by position in `pending`.
        on_complete: called with a pending evaluation whose last shard has just been stored.
        is_ready: whether the data of a unit are there; a DataError fails all evaluations on the unit's data.
        unit_timeout: seconds without a sign of life after which a worker is replaced.
        is_interrupted: whether to begin nothing more, and to return when workers have finished what they are at.
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
        is_ready: Callable[[Unit], bool] = always,
        unit_timeout: float = UNIT_TIMEOUT,
        is_interrupted: Callable[[], bool] = never,
    ) -> None:
        self._store, self._engine, self._progress, self._on_complete = store, engine, progress, on_complete
        self._is_ready, self._is_interrupted = is_ready, is_interrupted
        self._ledger = Ledger(pending, evaluation_ids)
        self._queue = UnitQueue(engine.depth)
        self._watch = Watch(unit_timeout)
        self._workers: list[str] = []
        self._num_bytes: dict[str, int] = {}  # of models that were probed, by fingerprint
        self._turns: defaultdict[str, dict[Any, Unit]] = defaultdict(dict)  # what workers have answered with, by load

    @property
    def failed(self) -> dict[int, str]:
        """Why evaluations have failed, by their ids."""
        return self._ledger.failed

    def run(self, probes: Iterable[Ready]) -> None:
        """Probes models that are new, then evaluates everything that is pending, unless it is interrupted.

        Raises:
            DefinitionError: a probed model cannot answer its setting; nothing has been stored then.
            TestbedError: no worker can be started.
        """
        for worker in self._engine.start():
            self._add(worker)
        self._run_units([probe(ready) for ready in probes], self._take_probes)
        for _ in range(MAX_ATTEMPTS):
            left = self._ledger.left()
            if not left or self._is_interrupted():
                return
            self._run_units(make_units(left, num_bytes=self._num_bytes), self._take_results)
            self._end_turns()
        if (left := self._ledger.left()) and not self._is_interrupted():
            raise TestbedError(
                f"{len(left)} evaluation(s) have pieces that no worker returned. Run the same command again."
            )

    def _add(self, worker: str, *, in_place_of: str | None = None) -> None:
        self._workers.append(worker)
        self._queue.add_worker(worker)
        self._watch.add(worker, in_place_of=in_place_of)

    def _run_units(self, units: Iterable[Unit], take: Callable[[Answers], None]) -> None:
        if self._is_interrupted():  # while workers were started: nothing is begun on them
            return
        self._queue.extend(units)
        while not self._queue.is_done:
            self._feed()
            answers = self._handle(self._engine.wait(self._patience()))
            if answers:
                take(answers)
            self._give_up_silent()
            if self._is_interrupted():
                self._queue.drain()
            self._store.heartbeat()
            self._progress.tick()

    def _end_turns(self) -> None:
        """Has every worker ask its models once more what it asked them first; those that have changed are rejected.

        Nobody who has asked for an end waits for it.
        """
        if self._is_interrupted():
            return
        turns = {worker: deque(self._turns.pop(worker, {}).values()) for worker in self._workers}
        while any(turns.values()) or not self._queue.is_done:
            for worker in self._workers:
                while turns.get(worker) and self._queue.num_in_hand(worker) < self._engine.depth:
                    unit = turns[worker].popleft()
                    if self._queue.num_in_hand(worker) == 0:
                        self._watch.begins(worker)
                    self._queue.give(worker, unit)
                    self._engine.submit(worker, unit)
            self._take_failures(self._handle(self._engine.wait(WAIT_SECONDS)))
            self._give_up_silent()
            self._queue.drop_todo()  # a worker that is lost has nothing left to be asked
            turns = {worker: units for worker, units in turns.items() if worker in self._workers}
            self._store.heartbeat()

    def _patience(self) -> float:
        """How long to wait for workers: not long where one of them waits for data."""
        has_idle = any(self._queue.num_in_hand(worker) == 0 for worker in self._workers)
        return WAIT_FOR_DATA_SECONDS if has_idle and self._queue.has_todo else WAIT_SECONDS

    def _feed(self) -> None:
        """Gives workers units, while there are units: first one to each, then a second one to each."""
        for place in range(self._engine.depth):
            for worker in self._workers:
                if self._queue.num_in_hand(worker) == place and (unit := self._next_unit(worker)) is not None:
                    if place == 0:
                        self._watch.begins(worker)
                    self._queue.give(worker, unit)
                    self._engine.submit(worker, unit)

    def _next_unit(self, worker: str) -> Unit | None:
        """The next unit for a worker, without models that have failed on the setting meanwhile."""
        while (unit := self._queue.next_for(worker, self._can_go)) is not None:
            models = tuple(name for name in unit.models if not self._ledger.entry(unit, name).reason)
            if models == unit.models:
                return unit
            if models:
                return replace(unit, models=models)
        return None

    def _can_go(self, unit: Unit) -> bool:
        """Whether a unit need not wait for its data. Those that will never come fail what is evaluated on them."""
        try:
            return self._is_ready(unit)
        except DataError as error:
            for entry in self._ledger.of_task(unit.task):
                self._fail(entry, UnitFailure(reason=str(error)))
            return True

    def _handle(self, events: Sequence[Event]) -> Answers:
        """What workers have answered; those that are lost are replaced. What comes late or twice changes nothing."""
        answers: Answers = []
        for event in events:
            if event.worker not in self._workers:
                continue
            if isinstance(event.outcome, WorkerLost):
                self._replace(event.worker, event.outcome)
                continue
            self._watch.heard(event.worker)
            self._progress.began()
            if not isinstance(event.outcome, SignOfLife) and self._queue.answered(event.worker, event.unit):
                answers.append((event.unit, event.outcome))  # type: ignore[arg-type]
                self._progress.busy(event.worker, event.outcome.seconds)
                self._note_turn(event.worker, event.unit)  # type: ignore[arg-type]
                record("unit", worker=event.worker, unit=_facts(event.unit), seconds=dict(event.outcome.seconds))
        return answers

    def _note_turn(self, worker: str, unit: Unit) -> None:
        for name in unit.models if unit.num_samples else ():
            ready = self._ledger.entry(unit, name).ready
            self._turns[worker][load_of(ready), ready.setting.dataset.name] = replace(
                unit, models=(name,), stop=unit.start
            )

    def _give_up_silent(self) -> None:
        self._watch.turn()
        for worker in self._watch.newly_silent(w for w in self._workers if self._queue.num_in_hand(w)):
            self._engine.kill(worker)

    def _replace(self, worker: str, lost: WorkerLost) -> None:
        """Starts a fresh worker, and puts back what the lost one had in hand."""
        reason = self._watch.verdict(worker) or lost.reason
        self._workers.remove(worker)
        suspect = self._queue.lose(worker, is_at_work=self._watch.is_up(worker))
        self._progress.say(f"lost{self._with_what(suspect)}: {reason}")
        record("lost", worker=worker, reason=reason, unit=_facts(suspect))
        if self._is_interrupted():
            return
        if suspect is not None and suspect.num_samples:
            self._retry(suspect, suspect.models, reason)
        if self._watch.may_start_again(worker):
            self._add(self._engine.respawn(worker), in_place_of=worker)
        elif self._workers:
            self._progress.say(f"{worker} is given up after {MAX_STARTS} starts; the other workers go on.")
        else:
            raise TestbedError(f"No worker could be started, the last one {MAX_STARTS} times: {reason}.")

    def _with_what(self, unit: Unit | None) -> str:
        """Of a lost worker, what it was at; it is tried again."""
        if unit is None:
            return ""
        return f" at {', '.join(unit.models)} on {self._ledger.entry(unit, unit.models[0]).ready.setting.name}"

    def _retry(self, unit: Unit, models: Iterable[str], reason: str) -> None:
        for name in models:
            if not self._queue.retry(unit, name):
                where = f"{MAX_ATTEMPTS} times at samples {unit.start} to {unit.stop}"
                self._fail(self._ledger.entry(unit, name), UnitFailure(reason=f"{where}: {reason}"))

    def _take_probes(self, answers: Answers) -> None:
        for unit, result in answers:
            for name, outcome in result.outcomes.items():
                if isinstance(outcome, UnitFailure) and outcome.is_request_error:
                    self._fail(self._ledger.entry(unit, name), outcome)
                    raise DefinitionError(f"Model '{name}': {outcome.reason}")
            self._record_facts(unit, result.facts)

    def _take_results(self, answers: Answers) -> None:
        """Stores all that came at once in one transaction; then come the evaluations that are complete by it."""
        self._store.put_shards(
            (entry.id, shard)
            for unit, result in answers
            for name, shard in result.shards_of(unit)
            if not (entry := self._ledger.entry(unit, name)).is_rejected
        )
        for unit, result in answers:
            self._record_facts(unit, result.facts)
            for name, shard in result.shards_of(unit):
                self._tick_off(self._ledger.entry(unit, name), shard)
            self._retry(unit, result.left_out(unit), "no worker returned it")
        self._take_failures(answers)

    def _take_failures(self, answers: Answers) -> None:
        for unit, result in answers:
            for name in unit.models:
                if isinstance(outcome := result.outcomes.get(name), UnitFailure):
                    self._fail(self._ledger.entry(unit, name), outcome)

    def _tick_off(self, entry: Entry, shard: Shard) -> None:
        if entry.reason or shard.where not in entry.missing:
            return
        entry.missing.remove(shard.where)
        self._progress.advance(shard.where.stop - shard.where.start)
        if entry.missing:
            return
        try:
            self._on_complete(entry.ready, entry.id)
            entry.is_complete = True
        except StoreError:
            raise
        except Exception as error:  # its logits are stored; the other evaluations go on
            self._fail(entry, UnitFailure(reason=f"its metrics failed: {type(error).__name__}: {error}"))

    def _record_facts(self, unit: Unit, facts: Mapping[str, ModelFacts]) -> None:
        for name, fact in facts.items():
            entry = self._ledger.entry(unit, name)
            fingerprint = entry.ready.model_version.fingerprint
            if fact.num_bytes is not None:
                self._num_bytes[fingerprint] = fact.num_bytes
            try:
                self._store.set_model_facts(
                    fingerprint, weights_sha256=fact.weights_sha256, num_outputs=fact.num_outputs
                )
            except TestbedError as error:
                self._fail(entry, UnitFailure(reason=str(error)))

    def _fail(self, entry: Entry, failure: UnitFailure) -> None:
        if failure.is_unsteady:
            for other in self._ledger.of_load(entry):
                other.is_rejected = True
                self._set_failed(other, failure, self._store.reject_evaluation)
        elif not entry.is_complete:
            self._set_failed(entry, failure, self._store.fail_evaluation)

    def _set_failed(self, entry: Entry, failure: UnitFailure, put: Callable[[int, str], None]) -> None:
        if entry.reason:
            return
        entry.reason, entry.is_complete = failure.reason, False
        put(entry.id, failure.reason)
        self._progress.skip(entry.num_missing)
        ready = entry.ready
        names = {"model": ready.pairing.model.name, "setting": ready.setting.name}
        record("failed", evaluation=entry.id, **names, reason=failure.reason, traceback=failure.traceback)
        self._progress.say(f"failed: {names['model']} on {names['setting']}: {failure.reason}")


def _facts(unit: Unit | None) -> dict[str, Any] | None:
    """A unit for the log."""
    return None if unit is None else asdict(unit)


def probe(ready: Ready, num_samples: int = PROBE_SAMPLES) -> Unit:
    """A unit of few samples, whose answer is looked at and not stored."""
    unit = make_units([Pending(ready, (ready.shards[0],))])[0]
    return replace(unit, stop=min(unit.stop, unit.start + num_samples))
