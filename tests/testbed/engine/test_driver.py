"""The driver against an engine that loses, delays, repeats and reorders: stored equals planned all the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model
from testbed import codec
from testbed.engine.driver import Driver
from testbed.engine.engine import Event, WorkerLost
from testbed.engine.plan import Pairing
from testbed.engine.preflight import Ready
from testbed.engine.schedule import Pending, make_units
from testbed.engine.unit import ModelFacts, Unit, UnitFailure, UnitResult
from testbed.errors import DefinitionError
from testbed.records import DatasetVersion, EvaluationKey, ModelVersion, SettingVersion, Shard, ShardRange
from testbed.store.store import Store

NUM_SAMPLES, SHARD, DRAWS = 10, 4, 3


def ready(model: str, task: int = 0) -> Ready:
    definition = Model(name=model, transform=None, classifier_loader=lambda: None, eval_batch_size=SHARD)
    setting = EvalSetting(name=f"setting{task}", dataset=StandardDataset(name="toy"))
    pairing = Pairing(
        model=definition, setting=setting, seed=0, fit_seed=0, noise_seed=0, num_draws=DRAWS, batch_size=SHARD,
        clean=None,
    )  # fmt: skip
    model_version = ModelVersion(name=model, label_space="toy", fingerprint=f"model {model}", spec={})
    dataset = DatasetVersion(
        name="toy", split="test", fingerprint="toy data", targets=np.zeros(NUM_SAMPLES, np.int32),
        sample_ids=tuple(f"test/{i}" for i in range(NUM_SAMPLES)), class_names=("a", "b"),
    )  # fmt: skip
    setting_version = SettingVersion(
        name=setting.name, fingerprint=f"setting {task}", dataset_fingerprint="toy data", spec={"separation": None}
    )
    key = EvaluationKey(
        model_fingerprint=model_version.fingerprint, setting_fingerprint=setting_version.fingerprint, fit_seed=0,
        noise_seed=0, numerics={},
    )  # fmt: skip
    return Ready(
        pairing=pairing, setting=setting, task=task, model_version=model_version, setting_version=setting_version,
        dataset_version=dataset, key=key, num_samples=NUM_SAMPLES, shard_size=SHARD,
    )  # fmt: skip


def shard(unit: Unit, model: str) -> Shard:
    """Logits that depend on the place alone, as a sound worker's do."""
    count = unit.stop - unit.start
    logits = np.full((count, 2), [unit.draw, unit.start], np.float32) + len(model)
    payload = codec.encode(logits)
    return Shard(
        where=ShardRange(draw=unit.draw, start=unit.start, stop=unit.stop), predictions=np.zeros(count, np.int32),
        target_ranks=np.zeros(count, np.int32), payload=payload, codec="f32", num_outputs=2,
        sha256=codec.checksum(payload), num_nonfinite=0, batch_size=SHARD, seconds=0.0, worker="fake",
    )  # fmt: skip


class FakeEngine:
    """Answers units by a script: `loses(unit, attempt)` says whether the worker dies on it; order is shuffled."""

    def __init__(self, loses: Callable[[Unit, int], bool] = lambda unit, attempt: False, *, seed: int = 0) -> None:
        self.loses, self.random = loses, random.Random(seed)
        self.in_hand: dict[str, Unit] = {}
        self.attempts: dict[Unit, int] = {}
        self.submitted: list[Unit] = []
        self.generation = 0
        self.failures: dict[str, UnitFailure] = {}
        self.num_outputs = 2

    def start(self) -> list[str]:
        return ["a", "b", "c"]

    def submit(self, worker: str, unit: Unit) -> None:
        assert worker not in self.in_hand, "a worker was given a second unit"
        self.in_hand[worker] = unit
        self.submitted.append(unit)

    def wait(self, timeout: float) -> list[Event]:
        if self.random.random() < 0.3:
            return []  # nothing yet
        chosen = self.random.sample(sorted(self.in_hand), k=self.random.randint(1, len(self.in_hand)))
        return [Event(worker, self._outcome(self.in_hand.pop(worker))) for worker in chosen]

    def _outcome(self, unit: Unit) -> UnitResult | WorkerLost:
        self.attempts[unit] = self.attempts.get(unit, 0) + 1
        if self.loses(unit, self.attempts[unit]):
            return WorkerLost("worker was ended by signal SIGKILL, probably out of memory")
        outcomes = {name: self.failures.get(name) or shard(unit, name) for name in unit.models}
        facts = {name: ModelFacts(num_outputs=self.num_outputs, weights_sha256=None) for name in unit.models}
        return UnitResult(outcomes=outcomes, facts=facts)

    def respawn(self, worker: str) -> str:
        self.generation += 1
        return f"{worker}{self.generation}"

    def stop(self) -> None:
        pass


class Silent:
    """Progress that remembers."""

    def __init__(self) -> None:
        self.samples, self.lines = 0, list[str]()

    def advance(self, num_samples: int) -> None:
        self.samples += num_samples

    def say(self, line: str) -> None:
        self.lines.append(line)


class Run:
    """A driver over a fresh store."""

    def __init__(self, folder: Path, engine: FakeEngine, *items: Ready) -> None:
        self.store, self.engine, self.items, self.progress = Store.open(folder / "s.sqlite"), engine, items, Silent()
        for item in items:
            self.store.put_model(item.model_version)
            self.store.put_dataset(item.dataset_version)
            self.store.put_setting(item.setting_version)
        run_id = self.store.start_run({})
        states = [
            self.store.put_evaluation(
                item.key, num_draws=DRAWS, num_samples=NUM_SAMPLES, shard_size=SHARD, run_id=run_id
            )
            for item in items
        ]
        self.ids = [state.id for state in states]
        self.completed: list[int] = []
        pending = [Pending(item, tuple(state.missing())) for item, state in zip(items, states, strict=True)]
        self.driver = Driver(
            self.store, engine, pending, self.ids, progress=self.progress, on_complete=self._complete
        )  # fmt: skip

    def _complete(self, item: Ready, evaluation_id: int) -> None:
        self.completed.append(evaluation_id)
        self.store.complete_evaluation(evaluation_id, [])

    def go(self, probes: tuple[Ready, ...] = ()) -> None:
        self.driver.run(probes)

    def status(self, position: int) -> str:
        return self.store.evaluation_by_id(self.ids[position]).status


@pytest.fixture
def two() -> tuple[Ready, Ready]:
    return ready("one"), ready("another")


@pytest.mark.parametrize("seed", range(10))
def test_everything_is_stored_once_whatever_the_engine_loses(tmp_path: Path, two: Any, seed: int) -> None:
    chance = random.Random(seed)
    engine = FakeEngine(lambda unit, attempt: attempt == 1 and chance.random() < 0.4, seed=seed)
    run = Run(tmp_path, engine, *two)
    run.go()
    assert engine.generation > 0, "nothing was lost"
    assert run.driver.failed == {}
    assert sorted(run.completed) == sorted(run.ids)
    assert run.progress.samples == 2 * DRAWS * NUM_SAMPLES
    for position, item in enumerate(two):
        logits = run.store.evaluation_by_id(run.ids[position]).logits(2)
        assert logits[5].tolist() == [2 + len(item.pairing.model.name), 4 + len(item.pairing.model.name)]


def test_models_of_one_task_share_units(two: Any) -> None:
    units = make_units([Pending(item, tuple(item.shards)) for item in two])
    assert len(units) == DRAWS * 3
    assert all(unit.models == ("one", "another") for unit in units)


def test_models_stay_loaded_over_all_that_is_asked_of_them() -> None:
    items = [ready(f"m{number}", task) for task in (0, 1) for number in range(10)]
    units = make_units([Pending(item, tuple(item.shards[:1])) for item in items])
    assert [(unit.task, len(unit.models)) for unit in units] == [(0, 8), (1, 8), (0, 2), (1, 2)]


class SteadyEngine(FakeEngine):
    """Three workers in step, which remembers who was asked to load what."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: set[tuple[str, str]] = set()

    def submit(self, worker: str, unit: Unit) -> None:
        super().submit(worker, unit)
        self.loads.update((worker, name) for name in unit.models)

    def wait(self, timeout: float) -> list[Event]:
        return [Event(worker, self._outcome(self.in_hand.pop(worker))) for worker in sorted(self.in_hand)]


def test_a_model_stays_with_the_worker_that_has_loaded_it(tmp_path: Path) -> None:
    engine = SteadyEngine()
    run = Run(tmp_path, engine, ready("first", 0), ready("second", 1), ready("third", 2))
    run.go()
    assert engine.loads == {("a", "first"), ("b", "second"), ("c", "third")}
    assert len(run.completed) == 3


def test_workers_without_models_of_their_own_help_the_others(tmp_path: Path) -> None:
    engine = SteadyEngine()
    Run(tmp_path, engine, ready("only")).go()
    assert engine.loads == {("a", "only"), ("b", "only"), ("c", "only")}


def test_what_is_stored_is_not_asked_for_again(two: Any) -> None:
    first, second = two
    units = make_units([Pending(first, tuple(first.shards[:1])), Pending(second, tuple(second.shards[:2]))])
    assert [unit.models for unit in units] == [("one", "another"), ("another",)]


def test_a_unit_that_kills_its_worker_is_tried_three_times_and_takes_no_other_model_down(
    tmp_path: Path, two: Any
) -> None:
    run = Run(tmp_path, FakeEngine(lambda unit, attempt: "one" in unit.models and unit.start == 4), *two)
    run.go()
    assert run.status(0) == "failed"
    assert run.status(1) == "complete"
    reason = run.driver.failed[run.ids[0]]
    assert "SIGKILL, probably out of memory, 3 times at samples 4 to 8" in reason
    tries = [unit for unit in run.engine.submitted if "one" in unit.models and unit.start == 4 and unit.draw == 0]
    assert len(tries) == 3


def test_a_model_that_fails_is_not_given_more_units(tmp_path: Path, two: Any) -> None:
    engine = FakeEngine()
    engine.failures["one"] = UnitFailure(reason="ValueError: no")
    run = Run(tmp_path, engine, *two)
    run.go()
    assert (run.status(0), run.status(1)) == ("failed", "complete")
    assert run.store.evaluation_by_id(run.ids[0]).reason == "ValueError: no"
    assert sum("one" in unit.models for unit in engine.submitted) <= 3 + 1
    assert run.progress.samples == 2 * DRAWS * NUM_SAMPLES
    assert run.progress.lines == ["failed: one on setting0: ValueError: no"]


def test_a_probe_is_looked_at_and_not_stored(tmp_path: Path, two: Any) -> None:
    engine = FakeEngine()
    run = Run(tmp_path, engine, *two)
    run.go(probes=two)
    assert [unit.stop - unit.start for unit in engine.submitted[:2]] == [2, 2]
    assert run.store.model_facts("model one").num_outputs == 2  # type: ignore[union-attr]
    assert (run.status(0), run.status(1)) == ("complete", "complete")


def test_a_probe_that_cannot_answer_stops_everything_before_anything_is_stored(tmp_path: Path, two: Any) -> None:
    engine = FakeEngine()
    engine.failures["another"] = UnitFailure(reason="has 7 outputs", is_request_error=True)
    run = Run(tmp_path, engine, *two)
    with pytest.raises(DefinitionError, match="Model 'another': has 7 outputs"):
        run.go(probes=two)
    assert run.store.evaluation_by_id(run.ids[0]).status == "pending"


def test_metrics_that_fail_cost_their_own_evaluation_only(tmp_path: Path, two: Any) -> None:
    run = Run(tmp_path, FakeEngine(), *two)
    complete = run._complete

    def complete_all_but_the_first(item: Ready, evaluation_id: int) -> None:
        if evaluation_id == run.ids[0]:
            raise ZeroDivisionError("no class has a sample")
        complete(item, evaluation_id)

    run.driver._on_complete = complete_all_but_the_first
    run.go()
    assert (run.status(0), run.status(1)) == ("failed", "complete")
    assert "its metrics failed: ZeroDivisionError" in run.driver.failed[run.ids[0]]


def test_a_result_that_comes_twice_changes_nothing(tmp_path: Path, two: Any) -> None:
    run = Run(tmp_path, FakeEngine(), two[0])
    run.go()
    unit = make_units([Pending(two[0], tuple(two[0].shards))])[0]
    run.driver._take_result(unit, UnitResult(outcomes={"one": shard(unit, "one")}, facts={}))
    assert run.completed == [run.ids[0]]
