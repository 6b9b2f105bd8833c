"""Answers depend on the image alone, or the model is refused; what is random or adapts by design is declared."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.workbench import NUM_SAMPLES, Sums, Workbench, logits, unit, workbench
from torch import Tensor, nn

from models.model_base import Model
from registry import registry
from testbed.engine.unit import UnitFailure
from testbed.errors import DefinitionError, UnknownNameError
from testbed.records import Shard
from testbed.worker import repetition
from testbed.worker.worker import Worker


class Network(Sums):
    """The workbench's network, with what a subclass does to its answers."""

    def forward(self, images: Tensor) -> Tensor:
        return self.changed(super().forward(images))

    def changed(self, logits: Tensor) -> Tensor:
        return logits


class Adapting(Network):
    """Changes a parameter whenever it is asked."""

    def changed(self, logits: Tensor) -> Tensor:
        self.scale.data += 0.01
        return logits


class Counting(Network):
    """Adds how often it was asked, a number that is no parameter."""

    count = 0

    def changed(self, logits: Tensor) -> Tensor:
        self.count += 1
        return logits + torch.tensor([0.0, self.count, 0.0])


class DroppingOut(Network):
    """A function that drops out whatever the mode."""

    def changed(self, logits: Tensor) -> Tensor:
        return nn.functional.dropout(logits, 0.5)


class Hiding(Network):
    """A module in a list, which `eval()` does not reach."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = [nn.Dropout(0.5)]

    def changed(self, logits: Tensor) -> Tensor:
        return self.parts[0](logits)


class Wrapped:
    """No module: its network is never put into evaluation mode."""

    def __init__(self) -> None:
        self.norm = nn.BatchNorm1d(3)

    def __call__(self, images: Tensor) -> Tensor:
        return self.norm(Sums()(images))


class Standardizing(Network):
    """Looks at the whole batch."""

    def changed(self, logits: Tensor) -> Tensor:
        return logits - logits.mean(0)


class Remembering(Network):
    """Carries a state from batch to batch."""

    state: Tensor | float = 0.0

    def changed(self, logits: Tensor) -> Tensor:
        self.state = 0.5 * self.state + logits.mean()
        return logits + self.state * torch.tensor([0.0, 1.0, 0.0])


class Sizing(Network):
    """Its answer has the size of the batch in it."""

    def changed(self, logits: Tensor) -> Tensor:
        return logits + torch.tensor([0.0, 0.0, float(len(logits))])


class Playing(Network):
    """Draws from Python's own generator."""

    def changed(self, logits: Tensor) -> Tensor:
        return logits + torch.tensor([random.random(), 0.0, 0.0])


class Diverging(Network):
    """Finite for its first images, and never again."""

    num_asked = 0

    def changed(self, logits: Tensor) -> Tensor:
        self.num_asked += 1
        return logits if self.num_asked == 1 else logits * float("nan")


__all__ = ["workbench"]  # a fixture
UNSTEADY = (Adapting, Counting, DroppingOut, Hiding, Wrapped, Standardizing, Remembering, Sizing, Playing, Diverging)


@pytest.fixture
def asked(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The outcome of a model on the workbench's samples, in a worker that asks again."""
    monkeypatch.setattr("testbed.worker.model_run.FEWEST", repetition.FEWEST)

    def ask(load: Callable[[], Any], **fields: Any) -> Any:
        name = workbench.model("m", load, **fields)
        workbench.task()
        worker = workbench.worker()
        return worker.run(unit(0, name)).outcomes[name]

    return ask


@pytest.mark.parametrize("load", UNSTEADY)
def test_answers_that_depend_on_more_than_the_image_are_refused_with_the_ways_out(
    asked: Callable[..., Any], load: Any
) -> None:
    outcome = asked(load)
    assert isinstance(outcome, UnitFailure)
    assert outcome.is_unsteady
    for way_out in (".eval()", "stochastic=True", "--stochastic m", 'adapts="per-evaluation"'):
        assert way_out in outcome.reason


@pytest.mark.parametrize("batch_size", [1, 3, 8])
def test_answers_that_do_not_are_accepted_in_any_batch(workbench: Workbench, batch_size: int) -> None:
    name = workbench.model("steady", eval_batch_size=batch_size)
    workbench.task()
    outcome = workbench.worker().run(unit(0, name)).outcomes[name]
    assert isinstance(outcome, Shard)


class Later(Network):
    """Steady for its first images, and then another network."""

    num_asked = 0

    def changed(self, logits: Tensor) -> Tensor:
        self.num_asked += len(logits)
        return logits if self.num_asked <= 2 * repetition.NUM_KEPT else logits.flip(1)


def test_a_model_that_changes_later_is_found_out_at_the_end_of_the_turn(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.worker.model_run.FEWEST", repetition.FEWEST)
    name = workbench.model("later", Later)
    workbench.task()
    worker = workbench.worker()
    assert isinstance(worker.run(unit(0, name)).outcomes[name], Shard)
    ended = worker.run(unit(0, name, stop=0))
    assert ended.outcomes[name].is_unsteady
    assert "after it had answered others" in ended.outcomes[name].reason


def test_a_model_that_has_gone_from_memory_is_asked_before_it_goes(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.worker.model_run.FEWEST", repetition.FEWEST)
    name = workbench.model("later", Later)
    workbench.task()
    worker = workbench.worker()
    worker.run(unit(0, name))
    monkeypatch.setattr("testbed.worker.loaded_models.MAX_MODELS", 1)
    other = workbench.model("other")
    assert isinstance(worker.run(unit(0, other)).outcomes[other], Shard), "another's fault"
    assert worker.run(unit(0, name, stop=0)).outcomes[name].is_unsteady


def test_a_model_that_changes_much_later_is_found_out_on_the_way(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.worker.model_run.FEWEST", repetition.FEWEST)
    monkeypatch.setattr(repetition, "EVERY", NUM_SAMPLES)
    name = workbench.model("later", Later)
    workbench.task()
    assert workbench.worker().run(unit(0, name)).outcomes[name].is_unsteady


@pytest.mark.parametrize("load", [DroppingOut, Playing])
def test_a_model_that_is_declared_random_gives_every_worker_the_same(workbench: Workbench, load: Any) -> None:
    name = workbench.model("random", load, stochastic=True)
    workbench.task()
    whole, part = (workbench.worker() for _ in range(2))
    random.seed(1)
    expected = logits(whole.run(unit(0, name)), name)
    random.seed(2)
    assert np.array_equal(logits(part.run(unit(0, name, start=8)), name), expected[8:])


def test_an_adapting_model_is_loaded_anew_for_each_pass(workbench: Workbench) -> None:
    name = workbench.model("adapting", Adapting, adapts="per-evaluation")
    workbench.task()
    worker = workbench.worker()
    first, second = (worker.run(unit(0, name)).outcomes[name] for _ in range(2))
    assert isinstance(first, Shard)
    assert first.sha256 == second.sha256


def test_an_adapting_model_keeps_its_mode_and_may_follow_gradients(workbench: Workbench) -> None:
    seen = {}

    class Training(Network):
        def changed(self, logits: Tensor) -> Tensor:
            seen["training"], seen["grad"] = self.training, logits.requires_grad
            return logits

    name = workbench.model("training", Training, adapts="per-evaluation")
    workbench.task()
    worker: Worker = workbench.worker()
    assert isinstance(worker.run(unit(0, name)).outcomes[name], Shard)
    assert seen == {"training": True, "grad": True}


def test_an_unknown_way_to_adapt_and_an_unknown_random_model_are_refused() -> None:
    with pytest.raises(DefinitionError, match=r"adapts is 'always'\. Use 'per-evaluation'"):
        Model(name="m", transform=None, classifier_loader=object, eval_batch_size=1, adapts="always")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="Unknown model 'no-such-model'"):
        registry.set_stochastic("no-such-model")


def test_a_model_that_was_probed_with_few_images_is_asked_about_more(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.worker.model_run.FEWEST", repetition.FEWEST)
    name = workbench.model("probed")
    task = workbench.task()
    worker = workbench.worker()
    for stop, kept in ((2, 2), (NUM_SAMPLES, repetition.NUM_KEPT), (3, repetition.NUM_KEPT)):
        worker.run(unit(task, name, stop=stop))
        (loaded,) = worker._holdings.models._loaded.values()
        assert loaded.repetition is not None
        assert loaded.repetition.num_images == kept
