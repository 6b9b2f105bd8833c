"""The driver against an engine that loses, delays, repeats and reorders: stored equals planned all the same."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fake_engine import FakeEngine

from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model
from testbed.engine.driver import Driver, always
from testbed.engine.engine import Event
from testbed.engine.plan import Pairing
from testbed.engine.preflight import Ready
from testbed.engine.queue import UnitQueue
from testbed.engine.schedule import Pending, make_units
from testbed.engine.unit import Unit, UnitFailure, UnitResult
from testbed.errors import DataError, DefinitionError, TestbedError
from testbed.records import DatasetVersion, EvaluationKey, ModelVersion, SettingVersion
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


class Silent:
    """Progress that remembers."""

    def __init__(self) -> None:
        self.samples, self.lines, self.ticks = 0, list[str](), 0
        self.seconds: dict[str, float] = {}

    def advance(self, num_samples: int) -> None:
        self.samples += num_samples

    def skip(self, num_samples: int) -> None:
        self.samples += num_samples

    def say(self, line: str) -> None:
        self.lines.append(line)

    def tick(self) -> None:
        self.ticks += 1

    def began(self) -> None:
        pass

    def busy(self, worker_name: str, stage_seconds: Mapping[str, float]) -> None:
        self.seconds[worker_name] = self.seconds.get(worker_name, 0.0) + stage_seconds["forward"]


class Run:
    """A driver over a fresh store."""

    def __init__(self, folder: Path, engine: FakeEngine, *items: Ready, **options: Any) -> None:
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
            self.store, engine, pending, self.ids, progress=self.progress, on_complete=self._complete, **options
        )

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
    engine = FakeEngine(
        lambda unit, attempt: attempt == 1 and chance.random() < 0.3,
        delays=0.3, repeats=0.3, shuffles=True, dies_idle=0.1, seed=seed,
        omits=lambda unit, attempt: attempt == 1 and chance.random() < 0.1,
    )  # fmt: skip
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


def loads(engine: FakeEngine) -> set[tuple[str, str]]:
    """Which worker was asked for which model."""
    return {(worker, name) for worker, unit in engine.submitted for name in unit.models}


def test_a_model_stays_with_the_worker_that_has_loaded_it(tmp_path: Path) -> None:
    engine = FakeEngine()
    run = Run(tmp_path, engine, ready("first", 0), ready("second", 1), ready("third", 2))
    run.go()
    assert loads(engine) == {("a", "first"), ("b", "second"), ("c", "third")}
    assert len(run.completed) == 3


def test_workers_without_models_of_their_own_help_the_others(tmp_path: Path) -> None:
    engine = FakeEngine()
    Run(tmp_path, engine, ready("only")).go()
    assert loads(engine) == {("a", "only"), ("b", "only"), ("c", "only")}


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
    assert reason.startswith("3 times at samples 4 to 8: ")
    assert reason.endswith("SIGKILL, probably out of memory")
    tries = [unit for unit in run.engine.units if "one" in unit.models and unit.start == 4 and unit.draw == 0]
    assert len(tries) == 3


def test_a_model_that_fails_is_not_given_more_units(tmp_path: Path, two: Any) -> None:
    engine = FakeEngine()
    engine.failures["one"] = UnitFailure(reason="ValueError: no")
    run = Run(tmp_path, engine, *two)
    run.go()
    assert (run.status(0), run.status(1)) == ("failed", "complete")
    assert run.store.evaluation_by_id(run.ids[0]).reason == "ValueError: no"
    assert sum("one" in unit.models for unit in engine.units) <= 3 * engine.depth
    assert run.progress.samples == 2 * DRAWS * NUM_SAMPLES
    assert run.progress.lines == ["failed: one on setting0: ValueError: no"]


def test_a_probe_is_looked_at_and_not_stored(tmp_path: Path, two: Any) -> None:
    engine = FakeEngine()
    run = Run(tmp_path, engine, *two)
    run.go(probes=two)
    assert [unit.stop - unit.start for unit in engine.units[:2]] == [2, 2]
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


def test_an_answer_that_comes_twice_or_to_nobodys_question_changes_nothing(tmp_path: Path, two: Any) -> None:
    run = Run(tmp_path, FakeEngine(repeats=1.0), *two)
    stray = replace(make_units([Pending(two[0], tuple(two[0].shards))])[0], draw=1)
    run.engine.news.append(Event("a", run.engine._answer(stray), stray))
    run.engine.news.append(Event("nobody", run.engine._answer(stray), stray))
    run.go()
    assert sorted(run.completed) == sorted(run.ids)
    assert run.progress.samples == 2 * DRAWS * NUM_SAMPLES
    assert sum(run.progress.seconds.values()) == len(run.engine.units)


def test_a_worker_has_two_units_in_hand_as_long_as_there_are_enough(tmp_path: Path, two: Any) -> None:
    engine = FakeEngine(names=("a",))
    hands = []
    wait = engine.wait
    engine.wait = lambda timeout: hands.append(len(engine.hands["a"])) or wait(timeout)  # type: ignore[method-assign]
    Run(tmp_path, engine, *two).go()
    assert hands == [2] * 8 + [1] + [2, 1], "and two at the end of its turn, one for each model"


def test_the_last_unit_goes_to_whoever_is_free_first(two: Any) -> None:
    first, second, third = make_units([Pending(two[0], tuple(two[0].shards))])[:3]
    queue = UnitQueue(depth=2)
    queue.extend([first, second, third])
    for worker, unit in (("a", first), ("b", second)):
        queue.add_worker(worker)
        assert queue.next_for(worker, always) == unit
        queue.give(worker, unit)
    assert queue.next_for("a", always) is None
    assert queue.answered("b", second)
    assert queue.next_for("b", always) == third


def test_only_the_oldest_unit_of_a_lost_worker_is_suspected(tmp_path: Path, two: Any) -> None:
    """It is tried again alone: the one that had waited behind it counts no attempt."""
    engine = FakeEngine(lambda unit, attempt: unit.draw == 0 and unit.start == 0, names=("a",))
    run = Run(tmp_path, engine, two[0])
    run.go()
    assert run.status(0) == "failed"
    assert "3 times at samples 0 to 4" in run.driver.failed[run.ids[0]]
    behind = [engine.units.index(unit) for unit in engine.units if (unit.draw, unit.start) == (0, 4)]
    assert len(behind) == 1, "it came a second time only after the other had been tried alone, and its model had failed"
    assert [unit.start for unit in engine.units] == [0, 4, 0, 0]


def test_a_worker_that_is_lost_while_it_has_nothing_to_do_costs_no_attempt(tmp_path: Path, two: Any) -> None:
    engine = FakeEngine(dies_idle=1.0)
    run = Run(tmp_path, engine, *two, is_ready=lambda unit: engine.generation >= 30)
    run.go()
    assert engine.generation == 30
    assert run.driver.failed == {}
    assert len(engine.units) == DRAWS * 3


def test_a_worker_that_never_comes_to_life_is_given_up_and_the_others_go_on(tmp_path: Path, two: Any) -> None:
    engine = FakeEngine(dies_at_start=("b",))
    run = Run(tmp_path, engine, *two)
    run.go()
    assert run.driver.failed == {}
    assert sorted(run.completed) == sorted(run.ids)
    lines = run.progress.lines
    assert lines.count("lost: worker b could not start: no driver") == 1
    assert [line for line in lines if "given up" in line] == ["b2 is given up after 3 starts; the other workers go on."]


def test_where_no_worker_comes_to_life_the_run_ends_with_the_reason(tmp_path: Path, two: Any) -> None:
    run = Run(tmp_path, FakeEngine(dies_at_start=("a", "b", "c")), *two)
    with pytest.raises(TestbedError, match=r"No worker could be started, the last one 3 times: worker .* no driver"):
        run.go()
    assert (run.status(0), run.status(1)) == ("pending", "pending")


def test_a_worker_without_a_sign_of_life_is_replaced_three_times(tmp_path: Path, two: Any) -> None:
    engine = FakeEngine(hangs=lambda unit, attempt: "one" in unit.models and unit.start == 4)
    run = Run(tmp_path, engine, *two, unit_timeout=1e-9)
    run.go()
    assert (run.status(0), run.status(1)) == ("failed", "complete")
    reason = run.driver.failed[run.ids[0]]
    assert reason.startswith("3 times at samples 4 to 8: worker ")
    assert reason.endswith("gave no sign of life for 1e-09 s; --unit-timeout allows more")
    assert len(engine.killed) >= 3


def test_an_answer_that_is_never_given_is_asked_for_again(tmp_path: Path, two: Any) -> None:
    run = Run(tmp_path, FakeEngine(forgets=0.1, seed=2), *two, unit_timeout=1e-9)
    run.go()
    assert run.engine.killed
    assert sorted(run.completed) == sorted(run.ids)


def test_a_model_that_no_answer_speaks_of_is_asked_again_and_fails_in_the_end(tmp_path: Path, two: Any) -> None:
    run = Run(tmp_path, FakeEngine(omits=lambda unit, attempt: unit.start == 0 and unit.draw == 1), two[0])
    run.go()
    assert run.status(0) == "failed"
    assert run.driver.failed[run.ids[0]] == "3 times at samples 0 to 4: no worker returned it"


def test_a_unit_waits_for_its_data_and_others_go_first(tmp_path: Path) -> None:
    engine = FakeEngine()

    def is_ready(unit: Unit) -> bool:
        return unit.task == 1 or sum(asked.task == 1 for asked in engine.units) == 9

    run = Run(tmp_path, engine, ready("one", 0), ready("two", 1), is_ready=is_ready)
    run.go()
    assert run.driver.failed == {}
    assert [unit.task for unit in engine.units] == [1] * 9 + [0] * 9


def test_data_that_will_never_come_fail_what_is_evaluated_on_them(tmp_path: Path) -> None:
    def is_ready(unit: Unit) -> bool:
        if unit.task == 0 and unit.start == 8:
            raise DataError("photo 9.jpg (index 9) cannot be decoded")
        return True

    run = Run(tmp_path, FakeEngine(), ready("one", 0), ready("another", 0), ready("two", 1), is_ready=is_ready)
    run.go()
    assert [run.status(position) for position in range(3)] == ["failed", "failed", "complete"]
    assert set(run.driver.failed.values()) == {"photo 9.jpg (index 9) cannot be decoded"}
    assert run.progress.samples == 3 * DRAWS * NUM_SAMPLES


def test_every_worker_ends_its_turn_with_each_model_that_it_answered_with(tmp_path: Path, two: Any) -> None:
    run = Run(tmp_path, FakeEngine(), *two)
    run.go()
    answered = {(worker, name) for worker, unit in run.engine.submitted for name in unit.models}
    ended = [(worker, *unit.models) for worker, unit in run.engine.turn_ends]
    assert sorted(ended) == sorted(answered)


def test_a_model_that_is_unsteady_at_the_end_of_a_turn_has_nothing_left_stored(tmp_path: Path, two: Any) -> None:
    engine = FakeEngine(unsteady={"one": "its answers changed"})
    run = Run(tmp_path, engine, *two)
    run.go()
    assert (run.status(0), run.status(1)) == ("failed", "complete")
    assert run.driver.failed == {run.ids[0]: "its answers changed"}
    assert run.store.evaluation_by_id(run.ids[0]).reason == "its answers changed"
    (state,) = run.store.find_evaluations([two[0].key])
    assert state is not None
    assert state.stored == frozenset(), "a second run would take it for done"


def test_what_still_comes_of_an_unsteady_model_is_not_stored(tmp_path: Path, two: Any) -> None:
    engine = FakeEngine(names=("a", "b"))
    answer, told = engine._answer, UnitFailure(reason="its answers changed", is_unsteady=True)

    def first_is_unsteady(unit: Unit) -> UnitResult:
        found = answer(unit)
        return replace(found, outcomes={**found.outcomes, "one": told}) if (unit.draw, unit.start) == (0, 0) else found

    engine._answer = first_is_unsteady  # type: ignore[method-assign]
    run = Run(tmp_path, engine, *two)
    run.go()
    assert (run.status(0), run.status(1)) == ("failed", "complete")
    assert len(engine.units) > 1, "others were in hand"
    (state,) = run.store.find_evaluations([two[0].key])
    assert state is not None
    assert state.stored == frozenset()


@pytest.mark.parametrize("fault", [{"loses": lambda unit, attempt: not unit.num_samples}, {"dies_idle": 0.3}])
def test_a_worker_that_is_lost_at_the_end_of_its_turn_costs_nothing(
    tmp_path: Path, two: Any, fault: dict[str, Any]
) -> None:
    run = Run(tmp_path, FakeEngine(**fault), *two)
    run.go()
    assert (run.status(0), run.status(1)) == ("complete", "complete")
    assert run.driver.failed == {}


@pytest.mark.parametrize("depth", [1, 2])
def test_an_interrupted_driver_stores_what_workers_are_at_and_begins_nothing(
    tmp_path: Path, two: Any, depth: int
) -> None:
    engine = FakeEngine(depth=depth, delays=1.0)

    def is_interrupted() -> bool:
        engine.delays = 0.0 if engine.submitted else 1.0
        return bool(engine.submitted)

    run = Run(tmp_path, engine, two[0], is_interrupted=is_interrupted)
    run.go()
    assert len(engine.submitted) == 3 * depth, "a worker was given something after the interruption"
    assert run.progress.samples == 4 + 4 + 2, "what workers were at is stored, and not what waited behind it"
    assert run.store.evaluation_by_id(run.ids[0]).status == "running"
    assert run.driver.failed == {}


def test_a_driver_that_is_interrupted_while_workers_start_probes_nothing(tmp_path: Path, two: Any) -> None:
    run = Run(tmp_path, FakeEngine(), *two, is_interrupted=lambda: True)
    run.go(probes=two)
    assert run.engine.submitted == []
    assert run.driver.failed == {}


def test_what_came_at_once_is_stored_in_one_transaction(tmp_path: Path, two: Any) -> None:
    run = Run(tmp_path, FakeEngine(), *two)
    sizes = []
    put = run.store.put_shards

    def noting(shards: Any) -> None:
        kept = list(shards)
        sizes.append(len(kept))
        put(kept)

    run.store.put_shards = noting  # type: ignore[method-assign]
    run.go()
    assert sizes == [6, 6, 6]


def test_models_with_other_preprocessing_are_no_neighbours() -> None:
    """Those with the same share decoded and perturbed images, wherever they stand in the plan."""
    items = [prepared(f"m{n}", task=n % 2, transform=f"{n % 2}") for n in range(10)]
    units = make_units([Pending(item, tuple(item.shards[:1])) for item in items])
    assert [unit.models for unit in units] == [("m0", "m2", "m4", "m6", "m8"), ("m1", "m3", "m5", "m7", "m9")]


def test_models_that_do_not_fit_into_memory_together_are_no_neighbours() -> None:
    items = [prepared(f"m{n}") for n in range(4)]
    sizes = {"model m0": 3 << 30, "model m1": 2 << 30, "model m2": 1 << 30, "model m3": 9 << 30}
    units = make_units([Pending(item, tuple(item.shards[:1])) for item in items], num_bytes=sizes)
    assert [unit.models for unit in units] == [("m0",), ("m1", "m2"), ("m3",)]


def test_the_weights_file_tells_the_size_of_a_model(tmp_path: Path) -> None:
    large = tmp_path / "large.pt"
    with open(large, "wb") as stream:
        stream.truncate(3 << 30)
    items = [prepared(f"m{n}", weights=large) for n in range(2)]
    units = make_units([Pending(item, tuple(item.shards[:1])) for item in items])
    assert [unit.models for unit in units] == [("m0",), ("m1",)]


def prepared(name: str, task: int = 0, *, transform: str = "", weights: Path | None = None) -> Ready:
    item = ready(name, task)
    model = item.pairing.model if weights is None else replace(item.pairing.model, weights=weights)
    version = replace(item.model_version, spec={"transform": transform})
    return replace(item, pairing=replace(item.pairing, model=model), model_version=version)
