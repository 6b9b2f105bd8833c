"""Rules of a worker that runs out of memory, with models that say so themselves."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from tests.conftest import ROOT
from tests.fake_cuda import fake_cuda
from tests.workbench import NUM_SAMPLES, Sums, Workbench, logits, unit, workbench
from torch import Tensor, nn

from testbed.engine.unit import UnitFailure
from testbed.worker.memory import is_device_shortage, is_host_shortage, release_unused, total_memory

__all__ = ["workbench"]  # a fixture
SHORTAGES = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    torch.AcceleratorError("CUDA error: out of memory"),
    RuntimeError("CUDA driver error: out of memory"),  # where segments of memory can grow
    RuntimeError("Triton Error [CUDA]: out of memory"),
]


class Greedy(Sums):
    """A network that takes so many images at most, and writes down how many it was given."""

    def __init__(self, most: int, error: Exception = SHORTAGES[0]) -> None:
        super().__init__()
        self.most, self.error = most, error
        self.sizes: list[int] = []

    def forward(self, images: Tensor) -> Tensor:
        self.sizes.append(len(images))
        answer = super().forward(images)
        if len(images) > self.most:
            images.zero_()  # what it writes before it fails must not be in what it is given next
            raise self.error
        return answer


@pytest.mark.parametrize("error", SHORTAGES, ids=lambda error: type(error).__name__)
def test_the_batch_is_halved_until_it_fits_and_that_is_remembered(workbench: Workbench, error: Exception) -> None:
    network = Greedy(3, error)
    greedy, modest = workbench.model("greedy", lambda: network), workbench.model("modest")
    task = workbench.task(perturbation_fn_gpu=lambda images, keys: images * keys.uniform("x", images.shape[1:]))
    worker = workbench.worker()
    result = worker.run(unit(task, greedy, modest))
    assert network.sizes == [8, 4, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    np.testing.assert_allclose(logits(result, greedy), logits(result, modest), rtol=1e-6)
    assert result.outcomes[greedy].batch_size == 2
    assert result.outcomes[modest].batch_size == 8
    network.sizes.clear()
    worker.run(unit(task, greedy, draw=1))
    assert network.sizes == [2] * 10


def test_a_perturbation_that_does_not_fit_is_halved_with_the_same_noise_per_sample(workbench: Workbench) -> None:
    sizes = []

    def greedy(images: Tensor, keys: Any) -> Tensor:
        sizes.append(len(images))
        if len(images) > 5:
            raise SHORTAGES[0]
        return images * keys.uniform("x", images.shape[1:])

    model = workbench.model("sums")
    task = workbench.task(perturbation_fn_gpu=greedy, dtype="float32")
    found = workbench.worker().run(unit(task, model))
    assert sizes == [8, 4, 4, 4, 4, 4]
    assert found.outcomes[model].batch_size == 8
    sizes.clear()
    at_once = workbench.worker().run(unit(task, model, batch_size=5))
    assert sizes == [5] * 4
    np.testing.assert_allclose(logits(found, model), logits(at_once, model), rtol=1e-6)


def test_a_model_that_fails_at_one_image_gets_the_device_to_itself_once(workbench: Workbench) -> None:
    class Crowded(Sums):
        """A network that fits only beside no other."""

        def forward(self, images: Tensor) -> Tensor:
            if workbench_loads != ["crowded", "other", "crowded"]:
                raise SHORTAGES[0]
            return super().forward(images)

    workbench_loads: list[str] = []

    def load(name: str, network: type[nn.Module]) -> Any:
        def loaded() -> nn.Module:
            workbench_loads.append(name)
            return network()

        return loaded

    names = [workbench.model("crowded", load("crowded", Crowded)), workbench.model("other", load("other", Sums))]
    task = workbench.task()
    result = workbench.worker().run(unit(task, *names))
    np.testing.assert_array_equal(logits(result, "crowded"), logits(result, "other"))
    assert result.outcomes["crowded"].batch_size == 8  # whole batches are tried again


def test_each_of_several_that_fail_at_one_image_gets_the_device_to_itself(workbench: Workbench) -> None:
    class Tight(Sums):
        def forward(self, images: Tensor) -> Tensor:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    others: list[weakref.ref[nn.Module]] = []
    beside: list[list[bool]] = []

    def load() -> nn.Module:
        beside.append([other() is not None for other in others])
        others.append(weakref.ref(network := Tight()))
        return network

    names, task = [workbench.model(name, load) for name in ("first", "second")], workbench.task()
    workbench.worker().run(unit(task, *names))
    assert beside == [[], [True], [False, False], [False, False, False]]


def test_what_does_not_fit_alone_either_fails_with_a_remedy_and_harms_no_other(workbench: Workbench) -> None:
    network = Greedy(0)
    names = [workbench.model("greedy", lambda: network), workbench.model("modest")]
    task = workbench.task()
    result = workbench.worker().run(unit(task, *names))
    assert network.sizes == [8, 4, 2, 1] * 2
    failure = result.outcomes["greedy"]
    assert isinstance(failure, UnitFailure)
    assert "too little memory for a single image" in failure.reason
    assert "--workers-per-gpu" in failure.reason
    assert logits(result, "modest").shape == (NUM_SAMPLES, 3)


def test_a_model_whose_load_does_not_fit_is_loaded_alone(workbench: Workbench) -> None:
    tries = []

    def load() -> nn.Module:
        tries.append(1)
        if len(tries) == 1:
            raise SHORTAGES[0]
        return Sums()

    model, task = workbench.model("late", load), workbench.task()
    result = workbench.worker().run(unit(task, model))
    assert logits(result, model).shape == (NUM_SAMPLES, 3)


def test_other_errors_halve_nothing(workbench: Workbench) -> None:
    network = Greedy(3, RuntimeError("mat1 and mat2 shapes cannot be multiplied, out of luck with memory"))
    model, task = workbench.model("greedy", lambda: network), workbench.task()
    outcome = workbench.worker().run(unit(task, model)).outcomes[model]
    assert network.sizes == [8]
    assert "mat1 and mat2" in outcome.reason


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 5 bytes")])
def test_too_little_memory_of_the_machine_fails_with_its_remedy(workbench: Workbench, error: Exception) -> None:
    network = Greedy(3, error)
    model, task = workbench.model("greedy", lambda: network), workbench.task()
    outcome = workbench.worker().run(unit(task, model)).outcomes[model]
    assert network.sizes == [8]
    assert "--workers" in outcome.reason
    assert "--batch-size" in outcome.reason


def test_a_real_refusal_of_the_machine_is_recognised() -> None:
    with pytest.raises(RuntimeError) as refused:
        torch.empty(1 << 50)
    assert is_host_shortage(refused.value)
    assert not is_device_shortage(refused.value)


def test_what_is_freed_is_used_again_without_new_pages() -> None:
    code = """
import resource, torch
from testbed.worker.memory import keep_freed_memory
keep_freed_memory()
def pages(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10): torch.ones(10_000_000)
before = pages()
for _ in range(20): torch.ones(10_000_000)
print(pages() - before)
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert int(done.stdout) < 20 * 9_000  # pages of 4 kB in these tensors


def test_memory_is_given_back_with_what_refers_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Sums()
    network.run = network.forward
    is_there = weakref.ref(network)
    with fake_cuda(monkeypatch):
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: left.append(is_there()))
        left: list[nn.Module | None] = []
        del network
        release_unused(torch.device("cuda"))
    assert left == [None]


def test_memory_of_the_machine_is_a_plausible_number() -> None:
    assert 1 << 28 < total_memory(torch.device("cpu")) < 1 << 50
