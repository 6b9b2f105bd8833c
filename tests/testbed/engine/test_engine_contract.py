"""What every engine promises the driver: one suite over the engine in this process, that of processes and the fake."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from tests.fake_engine import FakeEngine
from tests.workbench import whole_bank

from testbed.definitions import Sources, load_definitions
from testbed.engine.engine import Engine, Event, WorkerLost
from testbed.engine.inline import InlineEngine
from testbed.engine.process import ProcessEngine
from testbed.engine.unit import SignOfLife, Task, Unit, UnitResult, WorkerConfig
from testbed.records import Shard

PLUGIN = """
import os
import signal
import time
from multiprocessing.connection import Connection

import torch

from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model
from registry import registry

def sound(images, model):
    return torch.stack([images.sum(1), images[:, 0]], 1)

def slow(images, model):
    time.sleep(0.4)
    return sound(images, model)

def deadly(images, model):
    os.abort()

def endless(images, model):
    time.sleep(1e9)

def in_place_of_the_answer(written):
    def send(self, content, write=os.write):
        os.write(self._handle, written(bytes(content)))
        os.kill(os.getpid(), signal.SIGSTOP)
    Connection._send = send

def frozen(images, model):
    in_place_of_the_answer(lambda content: content[:len(content) // 2])
    return sound(images, model)

def garbled(images, model):
    in_place_of_the_answer(lambda content: b'\\0\\0\\0\\4abcd')
    return sound(images, model)

def immense(images, model):
    in_place_of_the_answer(lambda content: b'\\xff\\xff\\xff\\xff' + b'\\x70' * 8)
    return sound(images, model)

for classify in (sound, slow, deadly, endless, frozen, garbled, immense):
    registry.add_model(Model(
        name=f'contract-{classify.__name__}', transform=None, classifier_loader=lambda: None, classify=classify,
        eval_batch_size=4, label_space='contract', version='1',
    ))
registry.add_eval_setting(EvalSetting(name='contract', dataset=StandardDataset(name='contract'), version='1'))
"""
NUM_SAMPLES, SHARD = 64, 8
LIMIT = 60.0  # seconds


@pytest.fixture(scope="module")
def configs(tmp_path_factory: pytest.TempPathFactory) -> list[WorkerConfig]:
    folder = tmp_path_factory.mktemp("contract")
    plugin, file = folder / "contract_models.py", folder / "bank.npy"
    plugin.write_text(PLUGIN)
    samples = np.random.default_rng(0).random((NUM_SAMPLES, 2), dtype=np.float32)
    task = Task(
        setting="contract", dataset="contract", label_space="contract", num_classes=2,
        bank=whole_bank(file, samples),
        sample_indices=np.arange(NUM_SAMPLES), targets=np.zeros(NUM_SAMPLES, np.int32),
    )  # fmt: skip
    sources = Sources(plugins=(plugin,))
    load_definitions(sources)
    names = ("cpu/0", "cpu/1")
    return [WorkerConfig(name=name, device="cpu", threads=1, sources=sources, data_root=None, tasks=(task,))
            for name in names]  # fmt: skip


@pytest.fixture(scope="module")
def processes(configs: list[WorkerConfig]) -> Iterator[tuple[ProcessEngine, list[str]]]:
    """Workers take seconds to start: all tests share these, and replace those that they kill."""
    engine = ProcessEngine(configs)
    workers = engine.start()
    for _ in workers:
        assert isinstance(first(engine).outcome, SignOfLife), "a worker says when it can begin"
    yield engine, workers
    engine.submit(workers[0], units("contract-endless")[0])
    begin = time.monotonic()
    engine.stop()
    assert time.monotonic() - begin < 5.0, "a worker that is at a unit is not waited for"
    engine.stop()


class Bench:
    """An engine with its workers, and a log of what it reported."""

    def __init__(self, engine: Engine, workers: list[str]) -> None:
        self.engine, self.workers = engine, workers

    def ask(self, units: list[Unit]) -> list[Event]:
        """The answers to units that are given to whoever takes more, in the order in which they came."""
        todo, in_hand, answers = list(units), dict.fromkeys(self.workers, 0), list[Event]()
        deadline = time.monotonic() + LIMIT
        while len(answers) < len(units) and time.monotonic() < deadline:
            for worker in self.workers:
                while todo and in_hand[worker] < self.engine.depth:
                    in_hand[worker] += 1
                    self.engine.submit(worker, todo.pop(0))
            for event in self.engine.wait(1.0):
                assert not isinstance(event.outcome, WorkerLost), event.outcome.reason
                if isinstance(event.outcome, UnitResult):
                    in_hand[event.worker] -= 1
                    answers.append(event)
        return answers

    def replace(self, worker: str) -> str:
        """A living worker in the place of a lost one."""
        position = self.workers.index(worker)
        fresh = self.workers[position] = self.engine.respawn(worker)
        assert isinstance(first(self.engine).outcome, SignOfLife)
        return fresh


@pytest.fixture(params=["inline", "process", "fake"])
def bench(request: pytest.FixtureRequest, configs: list[WorkerConfig]) -> Bench:
    if request.param == "process":
        return Bench(*request.getfixturevalue("processes"))
    engine: Engine = InlineEngine(configs) if request.param == "inline" else FakeEngine()
    return Bench(engine, engine.start())


@pytest.fixture
def process_bench(processes: tuple[ProcessEngine, list[str]]) -> Bench:
    return Bench(*processes)


def units(model: str = "contract-sound") -> list[Unit]:
    return [
        Unit(task=0, models=(model,), fit_seed=0, noise_seed=0, draw=0, start=start, stop=start + SHARD, batch_size=4)
        for start in range(0, NUM_SAMPLES, SHARD)
    ]


def first(engine: Engine) -> Event:
    """The next event."""
    return until(engine, lambda event: True)


def until(engine: Engine, is_wanted: Callable[[Event], bool]) -> Event:
    """The first event of a kind; those before it are passed over."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        for event in engine.wait(1.0):
            if is_wanted(event):
                return event
    raise AssertionError("nothing was reported")


def is_lost(event: Event) -> bool:
    return isinstance(event.outcome, WorkerLost)


def shard_of(event: Event) -> Shard:
    assert isinstance(event.outcome, UnitResult)
    (outcome,) = event.outcome.outcomes.values()
    assert isinstance(outcome, Shard), outcome
    return outcome


def test_every_unit_is_answered_once_by_a_result_that_names_it(bench: Bench) -> None:
    assert len(set(bench.workers)) == len(bench.workers)
    answers = bench.ask(units())
    assert sorted(event.unit.start for event in answers if event.unit) == [unit.start for unit in units()]
    for event in answers:
        where = shard_of(event).where
        assert event.unit is not None
        assert (where.start, where.stop) == (event.unit.start, event.unit.stop)


def test_a_worker_answers_in_the_order_it_was_asked_in(bench: Bench) -> None:
    asked: dict[str, list[int]] = {worker: [] for worker in bench.workers}
    submit = bench.engine.submit

    def noting(worker: str, unit: Unit) -> None:
        asked[worker].append(unit.start)
        submit(worker, unit)

    bench.engine.submit = noting  # type: ignore[method-assign]
    try:
        answers = bench.ask(units())
    finally:
        del bench.engine.submit  # type: ignore[misc]
    for worker in bench.workers:
        assert [event.unit.start for event in answers if event.unit and event.worker == worker] == asked[worker]


def test_nothing_is_reported_where_nothing_was_asked(bench: Bench) -> None:
    bench.engine.wait(0.0)  # signs of life
    begin = time.monotonic()
    assert bench.engine.wait(0.2) == []
    assert time.monotonic() - begin < 5.0


def test_a_worker_that_is_killed_is_lost_once_and_another_goes_on(bench: Bench) -> None:
    if isinstance(bench.engine, InlineEngine):
        pytest.skip("a worker that shares the driver's process cannot be killed without it")
    worker = bench.workers[0]
    bench.engine.wait(0.0)
    bench.engine.submit(worker, units("contract-endless")[0])
    bench.engine.kill(worker)
    lost = until(bench.engine, is_lost)
    assert lost.worker == worker
    assert "SIGKILL" in lost.outcome.reason  # type: ignore[union-attr]
    fresh = bench.replace(worker)
    assert fresh != worker
    assert len(bench.ask(units())) == len(units())


def test_an_engine_may_be_stopped_twice_also_before_anything_was_asked(configs: list[WorkerConfig]) -> None:
    for engine in (InlineEngine(configs), ProcessEngine(configs), FakeEngine()):
        engine.stop()
        engine.stop()


def test_processes_give_the_bytes_of_the_engine_in_this_process(
    process_bench: Bench, configs: list[WorkerConfig]
) -> None:
    inline = InlineEngine(configs)
    expected = {shard_of(event).where: shard_of(event).sha256 for event in Bench(inline, inline.start()).ask(units())}
    answers = process_bench.ask(units())
    assert {shard_of(event).where: shard_of(event).sha256 for event in answers} == expected
    assert len(set(expected.values())) == len(units())
    assert {event.worker for event in answers} == set(process_bench.workers), "one worker did everything"


def test_a_worker_that_dies_of_a_unit_says_by_what_signal(process_bench: Bench) -> None:
    worker = process_bench.workers[1]
    process_bench.engine.submit(worker, units("contract-deadly")[0])
    lost = until(process_bench.engine, is_lost)
    assert lost.outcome == WorkerLost(f"worker {worker} was ended by signal SIGABRT")
    process_bench.replace(worker)


def test_a_worker_that_dies_with_nothing_to_do_is_reported_all_the_same(process_bench: Bench) -> None:
    engine, worker = process_bench.engine, process_bench.workers[0]
    os.kill(engine._workers[worker].process.pid, signal.SIGKILL)  # type: ignore[attr-defined]
    lost = until(engine, is_lost)
    assert lost.worker == worker
    process_bench.replace(worker)


def test_a_worker_gives_signs_of_life_while_it_is_at_a_unit_and_none_while_it_hangs(process_bench: Bench) -> None:
    engine, worker = process_bench.engine, process_bench.workers[0]
    slow = Unit(task=0, models=("contract-slow",), fit_seed=0, noise_seed=0, draw=0, start=0, stop=24, batch_size=4)
    engine.submit(worker, slow)
    begin, outcomes = time.monotonic(), list[object]()
    while not any(isinstance(outcome, UnitResult) for outcome in outcomes):
        outcomes += [event.outcome for event in engine.wait(1.0)]
    signs = outcomes.count(SignOfLife())
    assert 1 <= signs <= time.monotonic() - begin, "six batches of 0.4 s: a sign after each, but at most one a second"
    engine.submit(worker, units("contract-endless")[0])
    end = time.monotonic() + 2.5
    while time.monotonic() < end:
        assert engine.wait(0.5) == []
    engine.kill(worker)
    assert until(engine, is_lost).worker == worker
    process_bench.replace(worker)


@pytest.mark.skipif(os.name != "posix", reason="there is no SIGSTOP")
@pytest.mark.parametrize("where", ["before it is read", "in the middle of its answer"])
def test_a_frozen_worker_keeps_nobody_waiting_and_can_be_killed(process_bench: Bench, where: str) -> None:
    engine, worker = process_bench.engine, process_bench.workers[0]
    if where == "before it is read":
        os.kill(engine._workers[worker].process.pid, signal.SIGSTOP)  # type: ignore[attr-defined]
        large = replace(units()[0], models=("contract-sound",) * 100_000)  # more than a pipe holds
        engine.submit(worker, large)
    else:
        engine.submit(worker, units("contract-frozen")[0])
    end = time.monotonic() + 2
    while time.monotonic() < end:
        assert not any(is_lost(event) for event in engine.wait(0.5))
    engine.kill(worker)
    assert until(engine, is_lost).worker == worker
    process_bench.replace(worker)
    assert len(process_bench.ask(units())) == len(units())


@pytest.mark.skipif(os.name != "posix", reason="there is no SIGSTOP")
@pytest.mark.parametrize("kind", ["garbled", "immense"])
def test_a_worker_that_says_what_cannot_be_read_is_lost(process_bench: Bench, kind: str) -> None:
    engine, worker = process_bench.engine, process_bench.workers[0]
    engine.submit(worker, units(f"contract-{kind}")[0])
    lost = until(engine, is_lost)
    assert lost.worker == worker
    assert "said what cannot be read" in lost.outcome.reason  # type: ignore[union-attr]
    process_bench.replace(worker)


def test_signals_to_the_whole_group_leave_workers_alone(process_bench: Bench) -> None:
    """Ctrl-C and a batch system's SIGTERM reach them too: what they mean is for the driver to decide."""
    for worker in process_bench.workers:
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(process_bench.engine._workers[worker].process.pid, number)  # type: ignore[attr-defined]
    assert process_bench.engine.wait(0.5) == []
    assert len(process_bench.ask(units())) == len(units())


def test_a_worker_that_cannot_start_says_why(configs: list[WorkerConfig]) -> None:
    broken = replace(configs[0], device="nowhere")
    engine = ProcessEngine([broken])
    (worker,) = engine.start()
    try:
        lost = until(engine, lambda event: True)
        assert isinstance(lost.outcome, WorkerLost)
        assert lost.outcome.reason.startswith(f"worker {worker} could not start: RuntimeError: ")
        assert "nowhere" in lost.outcome.reason
    finally:
        engine.stop()
