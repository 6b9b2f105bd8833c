"""Rules of a worker on the CPU: what depends on what, and what does not."""

from __future__ import annotations

import random
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.workbench import Sums, Workbench, logits, unit, workbench
from torch import Tensor, nn

from models.model_base import StandardNormalization
from testbed.engine.unit import STAGES, UnitFailure
from testbed.randomness import seeded_globals
from testbed.records import Shard
from testbed.worker import worker as worker_module

__all__ = ["workbench"]  # a fixture


class Writer(Sums):
    """A network that changes the images it is given."""

    def forward(self, images: Tensor) -> Tensor:
        answer = super().forward(images)
        images.zero_()
        return answer


def darker(images: Tensor) -> Tensor:
    return images.mul_(0.5)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_logits_are_those_of_the_images_divided_by_255_in_the_settings_order(workbench: Workbench, dtype: str) -> None:
    model, task = workbench.model("sums"), workbench.task(dtype=dtype, is_in_order=False)
    found = logits(workbench.worker().run(unit(task, model)), model)
    samples = np.load(workbench.tasks[task].bank.path)[workbench.tasks[task].sample_indices]
    images = torch.from_numpy(samples / np.float32(255) if dtype == "uint8" else samples)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found[:, 0], (images.flatten(1).sum(1) + 0).numpy())
    np.testing.assert_array_equal(found[:, 1:], images.flatten(1)[:, [0, -1]].numpy())


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("normalization", [None, StandardNormalization([0.5, 0.5], [0.2, 0.2])], ids=["plain", "norm"])
def test_a_model_that_writes_into_its_images_changes_no_other_models(
    workbench: Workbench, dtype: str, normalization: Any
) -> None:
    names = [workbench.model(name, Writer, normalization=normalization) for name in ("first", "second", "third")]
    task = workbench.task(dtype=dtype, perturbation_fn_gpu=darker)
    together = workbench.worker().run(unit(task, *names))
    alone = workbench.worker().run(unit(task, names[0]))
    for name in names:
        np.testing.assert_array_equal(logits(together, name), logits(alone, names[0]))


def test_a_perturbation_that_asks_for_the_model_starts_from_the_clean_images_each_time(workbench: Workbench) -> None:
    def by_model(images: Tensor, model: Any, targets: Tensor) -> Tensor:
        nn.functional.cross_entropy(model(images), targets)  # takes int64 only
        return images.mul_(0.5)

    names = [workbench.model(name) for name in ("first", "second")]
    by_itself = workbench.task(dtype="float32", perturbation_fn_gpu=by_model)
    shared = workbench.task(dtype="float32", perturbation_fn_gpu=darker)
    workbench.tasks[shared] = replace(workbench.tasks[shared], bank=workbench.tasks[by_itself].bank)
    worker = workbench.worker()
    asked, unasked = worker.run(unit(by_itself, *names)), worker.run(unit(shared, *names))
    for name in names:
        np.testing.assert_array_equal(logits(asked, name), logits(unasked, names[0]))


def test_a_shared_batch_is_perturbed_once(workbench: Workbench) -> None:
    calls = []

    def counted(images: Tensor) -> Tensor:
        calls.append(len(images))
        return images

    names = [workbench.model(name) for name in ("first", "second", "third")]
    task = workbench.task(perturbation_fn_gpu=counted)
    workbench.worker().run(unit(task, *names))
    assert calls == [8, 8, 4]


def draws(_: Any = None) -> float:
    return random.random() + float(np.random.rand()) + float(torch.rand(()))  # noqa: NPY002


def test_draws_from_global_generators_depend_on_the_first_sample_and_leave_no_trace(workbench: Workbench) -> None:
    def drawing(images: Tensor, model: Any) -> Tensor:
        return model(images) + draws()

    model = workbench.model("drawing", classify=drawing, is_random=True)
    other = workbench.model("other")
    task = workbench.task(
        perturbation_fn_cpu=lambda image: image + draws(), perturbation_fn_gpu=lambda images: images + draws()
    )
    worker = workbench.worker()
    with seeded_globals(1):
        before = draws()
    with seeded_globals(1):
        whole = worker.run(unit(task, other, model))
        assert draws() == before
    clean = workbench.task()
    both = workbench.worker().run(unit(clean, other, model))
    drawn = logits(both, model) - logits(both, other)
    assert np.ptp(drawn[:8]) < 1e-5 < np.abs(drawn[8:] - drawn[0]).min()  # another batch begins with another sample
    part = worker.run(unit(task, model, start=8, stop=16))
    np.testing.assert_array_equal(logits(part, model), logits(whole, model)[8:16])
    another = worker.run(unit(task, model, start=8, stop=16, draw=1))
    assert (logits(another, model) != logits(part, model)).all()


def test_one_model_that_raises_spoils_its_own_outcome_only(workbench: Workbench) -> None:
    class Broken(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            raise ValueError("no such layer")

    def absent() -> None:
        raise FileNotFoundError("weights.pt")

    names = [workbench.model("absent", absent), workbench.model("broken", Broken), workbench.model("whole")]
    task = workbench.task()
    result = workbench.worker().run(unit(task, *names))
    assert "no such layer" in result.outcomes["broken"].reason
    assert "test_worker.py" in result.outcomes["broken"].reason
    assert "weights.pt" in result.outcomes["absent"].reason
    assert isinstance(result.outcomes["whole"], Shard)
    assert set(result.facts) == {"whole"}


def test_a_setting_that_cannot_be_built_fails_for_all_models(workbench: Workbench) -> None:
    task = workbench.task()
    workbench.tasks[task] = replace(workbench.tasks[task], setting="nowhere")
    result = workbench.worker().run(unit(task, workbench.model("one"), workbench.model("two")))
    assert all("nowhere" in result.outcomes[name].reason for name in ("one", "two"))


def test_a_wrong_number_of_classes_is_an_error_of_the_request(workbench: Workbench) -> None:
    model = workbench.model("wide", lambda: nn.Sequential(nn.Flatten(), nn.Linear(32, 7)))
    task = workbench.task()
    outcome = workbench.worker().run(unit(task, model)).outcomes[model]
    assert isinstance(outcome, UnitFailure)
    assert outcome.is_request_error
    assert "7 outputs" in outcome.reason


def test_facts_of_a_model_come_with_its_first_unit_alone(workbench: Workbench) -> None:
    model, task = workbench.model("sums"), workbench.task()
    worker = workbench.worker()
    first, second = worker.run(unit(task, model)), worker.run(unit(task, model, draw=1))
    assert first.facts[model].num_outputs == 3
    assert first.facts[model].weights_sha256
    assert not second.facts


def test_it_tells_after_every_load_every_check_and_every_batch_of_every_model(workbench: Workbench) -> None:
    told = []
    names = [workbench.model("one"), workbench.model("two")]
    task = workbench.task()
    workbench.worker().run(unit(task, *names), tell=lambda: told.append(1))
    assert len(told) == 2 + 2 + 3 * 2


def test_units_may_begin_before_earlier_ones_are_finished(workbench: Workbench) -> None:
    model, task = workbench.model("sums"), workbench.task(dtype="float32", perturbation_fn_gpu=darker)
    worker = workbench.worker()
    begun = [worker.begin(unit(task, model, start=start, stop=start + 10)) for start in (0, 10)]
    found = np.concatenate([logits(worker.finish(one), model) for one in begun])
    np.testing.assert_array_equal(found, logits(worker.run(unit(task, model, batch_size=10)), model))


def test_seconds_are_told_by_stage_and_add_up(workbench: Workbench) -> None:
    model, task = workbench.model("sums"), workbench.task(perturbation_fn_gpu=darker)
    result = workbench.worker().run(unit(task, model))
    assert set(result.seconds) == set(STAGES)
    assert all(seconds > 0 for seconds in result.seconds.values())
    assert result.outcomes[model].seconds == pytest.approx(result.seconds["forward"])


def test_models_go_when_their_parameters_exceed_the_share_of_memory(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = []

    def large(name: str) -> Any:
        def load() -> nn.Module:
            loads.append(name)
            return nn.Sequential(nn.Flatten(), nn.Linear(32, 3, bias=False))  # 384 bytes

        return load

    names = [workbench.model(name, large(name)) for name in "abc"]
    task = workbench.task()
    monkeypatch.setattr(worker_module, "MODELS_SHARE", 1)
    monkeypatch.setattr(worker_module, "total_memory", lambda _: 800)
    roomy = workbench.worker()  # two models fit
    for name in "abab":
        roomy.run(unit(task, name))
    assert loads == ["a", "b"]
    roomy.run(unit(task, "c"))
    roomy.run(unit(task, "b"))
    roomy.run(unit(task, "a"))
    assert loads == ["a", "b", "c", "a"]  # 'a' was used longest ago
    loads.clear()
    shared = workbench.worker(sharing=4)  # half a model fits: they take turns within the unit
    result = shared.run(unit(task, *names))
    assert all(isinstance(result.outcomes[name], Shard) for name in names)
    assert loads == list("abc")


def test_a_network_that_refers_to_itself_is_gone_as_well(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[weakref.ref[nn.Module]] = []

    def load() -> nn.Module:
        network = Sums()
        network.run = network.forward  # a cycle, as in compiled networks
        loaded.append(weakref.ref(network))
        return network

    names, task = [workbench.model(name, load) for name in "ab"], workbench.task()
    monkeypatch.setattr(worker_module, "MODELS_SHARE", 0)  # one at a time
    worker = workbench.worker()
    for name in names:
        worker.run(unit(task, name))
    assert [network() is None for network in loaded] == [True, False]
