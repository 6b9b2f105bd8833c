"""Rules of a worker on a GPU: with one that the CPU plays, and with a real one where there is one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np
import pytest
import torch
from tests.fake_cuda import FakeEvent, OnCpu, fake_cuda
from tests.workbench import NUM_SAMPLES, SHAPE, Sums, Workbench, logits, unit, workbench
from torch import Tensor, nn

from testbed.data.imagebank import Bank
from testbed.engine.unit import STAGES, UnitFailure
from testbed.errors import DeviceError
from testbed.perturbations.noise import UniformNoise
from testbed.records import Shard
from testbed.worker import device_bank
from testbed.worker.device_bank import DeviceBanks

__all__ = ["workbench"]  # a fixture
NOISE = UniformNoise(norm="linf", epsilon=0.1)
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")


class Writer(Sums):
    """A network that changes the images it is given."""

    def forward(self, images: Tensor) -> Tensor:
        answer = super().forward(images)
        images.zero_()
        return answer


class HalfFilled(Bank):
    """A bank that is not whole yet."""

    def is_complete(self) -> bool:
        return False


def _settings(workbench: Workbench) -> list[int]:
    def by_model(images: Tensor, model: Any, targets: Tensor) -> Tensor:
        return images * (0.5 + model(images)[:, :1, None, None].sign() / 4)

    return [
        workbench.task(),
        workbench.task(perturbation_fn_gpu=NOISE, dtype="float32"),
        workbench.task(perturbation_fn_gpu=NOISE, is_in_order=False),
        workbench.task(perturbation_fn_cpu=lambda image: image * torch.rand(())),
        workbench.task(perturbation_fn_gpu=by_model, dtype="float32", is_in_order=False),
    ]


@pytest.mark.parametrize("kind", ["kept on the device", "too large", "being filled", "perturbed on the CPU"])
def test_the_way_to_the_device_changes_no_bit(workbench: Workbench, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    models, tasks = [workbench.model("sums"), workbench.model("writer", Writer)], _settings(workbench)
    expected = [workbench.worker().run(unit(task, *models)) for task in tasks]
    if kind == "being filled":
        workbench.tasks = [replace(one, bank=HalfFilled(**vars(one.bank))) for one in workbench.tasks]
    if kind == "perturbed on the CPU":
        workbench.tasks = [replace(one, perturbs_on="cpu") for one in workbench.tasks]
    with fake_cuda(monkeypatch, num_bytes=1 if kind == "too large" else 1 << 30) as device:
        worker = workbench.worker(device="cuda:0")
        found = [worker.finish(worker.begin(unit(task, *models))) for task in tasks]
    for one, other in zip(found, expected, strict=True):
        for model in models:
            np.testing.assert_array_equal(logits(one, model), logits(other, model))
        assert set(one.seconds) <= set(STAGES)
    assert device.waits == 0  # but where a whole bank is uploaded


@pytest.mark.parametrize("kind", ["on the CPU", "kept on the device", "too large"])
def test_no_way_to_a_network_lets_a_damaged_sample_pass(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    model, task = workbench.model("sums"), workbench.task()
    path = Path(workbench.tasks[task].bank.path)
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    with fake_cuda(monkeypatch, num_bytes=1 if kind == "too large" else 1 << 30):
        worker = workbench.worker(device="cpu" if kind == "on the CPU" else "cuda:0")
        found = worker.run(unit(task, model)).outcomes[model]
        untouched = worker.run(unit(task, model, stop=8)).outcomes[model]
    assert isinstance(found, UnitFailure)
    assert "is damaged" in found.reason
    assert isinstance(untouched, Shard)


def _uploads(device: OnCpu) -> list[int]:
    """How many images as pixels. What has been uploaded is again seen as such: it lies on the CPU after all."""
    return [shape[0] for dtype, shape in device.uploads if dtype == "torch.uint8" and len(shape) == 4]


def test_pixels_are_uploaded_as_such_and_batch_by_batch_where_the_bank_is_large(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, task = workbench.model("sums"), workbench.task()
    with fake_cuda(monkeypatch, num_bytes=1) as device:
        workbench.worker(device="cuda:0").run(unit(task, model))
    assert _uploads(device) == [8, 8, 4]


def test_a_bank_that_is_kept_is_read_once(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    model, task = workbench.model("sums"), workbench.task()
    with fake_cuda(monkeypatch) as device:
        worker = workbench.worker(device="cuda:0")
        worker.run(unit(task, model))
        np.save(workbench.tasks[task].bank.path, np.zeros(1))  # nobody looks at it again
        worker.run(unit(task, model, draw=1))
    assert not _uploads(device)


def test_what_is_read_of_a_kept_bank_may_be_written_into(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    task = workbench.tasks[workbench.task()]
    with fake_cuda(monkeypatch):
        device = torch.device("cuda:0")
        banks = DeviceBanks(device)
        banks.prepare(task, lambda: None)
        for indices in (np.arange(3, 7), np.array([6, 2, 2])):
            first = banks.read(task.bank, indices, device=device).clone()
            banks.read(task.bank, indices, device=device).zero_()
            assert torch.equal(banks.read(task.bank, indices, device=device), first)
            np.testing.assert_array_equal(first, np.load(task.bank.path)[indices])


def test_only_whole_banks_that_are_used_and_fit_are_kept(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (workbench.tasks[workbench.task()] for _ in range(2))
    size = NUM_SAMPLES * int(np.prod(SHAPE))
    told = []
    with fake_cuda(monkeypatch, num_bytes=size):
        monkeypatch.setattr(device_bank, "RESIDENT_SHARE", 1)

        def kept(banks: DeviceBanks, task: Any) -> bool:
            banks.prepare(task, lambda: told.append(1))
            return task.bank.fingerprint in banks._resident

        banks = DeviceBanks(torch.device("cuda:0"))
        assert not kept(banks, replace(first, bank=HalfFilled(**vars(first.bank))))
        assert not kept(banks, replace(first, sample_indices=first.sample_indices[: NUM_SAMPLES // 2 - 1]))
        assert kept(banks, first)
        assert told == [1]
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (0 if banks._resident else size, size))
        assert kept(banks, second)
        assert not kept(DeviceBanks(torch.device("cuda:0"), sharing=2), first)
        assert first.bank.fingerprint not in banks._resident  # it made room


def test_a_bank_that_turns_out_not_to_fit_is_read_batch_by_batch_for_good(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        tries.append(1)
        raise torch.OutOfMemoryError("CUDA out of memory.")

    tries: list[int] = []
    model, task = workbench.model("sums"), workbench.task()
    with fake_cuda(monkeypatch) as device:
        worker = workbench.worker(device="cuda:0")
        monkeypatch.setattr(DeviceBanks, "_uploaded", full)
        for draw in range(2):
            assert logits(worker.run(unit(task, model, draw=draw)), model).shape == (NUM_SAMPLES, 3)
    assert tries == [1]
    assert _uploads(device) == [8, 8, 4] * 2


def test_a_bank_that_cannot_be_read_fails_the_unit_and_not_the_worker(workbench: Workbench) -> None:
    model, task = workbench.model("sums"), workbench.task()
    Path(workbench.tasks[task].bank.path).unlink()
    outcome = workbench.worker().run(unit(task, model)).outcomes[model]
    assert isinstance(outcome, UnitFailure)
    assert "image bank" in outcome.reason


def test_a_bank_that_has_become_whole_is_opened_anew(workbench: Workbench) -> None:
    task = workbench.tasks[workbench.task()]
    opened = []

    class Filling(Bank):
        is_whole = False

        def open(self) -> Any:
            opened.append(self.is_whole)
            return super().open()

        def is_complete(self) -> bool:
            return Filling.is_whole

    task = replace(task, bank=Filling(**vars(task.bank)))
    banks, indices, cpu = DeviceBanks(torch.device("cpu")), np.arange(2), torch.device("cpu")
    for _ in range(2):
        banks.prepare(task, lambda: None)
        banks.read(task.bank, indices, device=cpu)
    assert opened == [False]
    Filling.is_whole = True
    for _ in range(2):
        banks.prepare(task, lambda: None)
        banks.read(task.bank, indices, device=cpu)
    assert opened == [False, True]


def test_every_thread_of_a_worker_works_on_its_own_device(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first device is what a new thread would hold memory of."""
    chosen: dict[int, str] = {}
    needed = set()

    def pinned(tensor: Tensor) -> Tensor:
        needed.add(get_ident())
        return tensor.clone()

    model, task = workbench.model("sums"), workbench.task()
    with fake_cuda(monkeypatch, num_bytes=1), ThreadPoolExecutor(1) as second:
        monkeypatch.setattr(torch.cuda, "set_device", lambda device: chosen.__setitem__(get_ident(), str(device)))
        monkeypatch.setattr(Tensor, "pin_memory", pinned)
        monkeypatch.setattr(FakeEvent, "synchronize", lambda _: needed.add(get_ident()))
        worker = workbench.worker(device="cuda:0")
        second.submit(worker.finish, worker.begin(unit(task, model))).result()
    assert len(needed) == 3  # it uploads in its own, reads in a second, and finishes in a third
    assert {chosen.get(thread) for thread in needed} == {"cuda:0"}


@pytest.mark.parametrize(("sharing", "expected"), [(1, []), (2, [0.45]), (3, [0.3])])
def test_workers_that_share_a_device_leave_memory_to_each_other(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch, sharing: int, expected: list[float]
) -> None:
    found: list[float] = []
    with fake_cuda(monkeypatch):
        monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda share, _: found.append(share))
        workbench.worker(device="cuda:0", sharing=sharing)
    assert found == pytest.approx(expected)


def test_a_device_that_does_nothing_any_more_ends_the_worker(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Faulty(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    def broken(_: Any) -> None:
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    model, task = workbench.model("faulty", Faulty), workbench.task()
    with fake_cuda(monkeypatch):
        worker = workbench.worker(device="cuda:0")
        assert "illegal memory access" in worker.run(unit(task, model)).outcomes[model].reason
        monkeypatch.setattr(torch.cuda, "synchronize", broken)
        with pytest.raises(DeviceError, match="cuda:0 does nothing any more"):
            worker.run(unit(task, model))


@needs_cuda
def test_a_gpu_answers_as_the_cpu_does(workbench: Workbench) -> None:
    models, tasks = [workbench.model("sums"), workbench.model("writer", Writer)], _settings(workbench)[:3]
    here, there = workbench.worker(), workbench.worker(device="cuda:0")
    for task in tasks:
        one, other = here.run(unit(task, *models)), there.run(unit(task, *models))
        for model in models:
            np.testing.assert_allclose(logits(one, model), logits(other, model), rtol=1e-5)
        assert other.seconds["forward"] > 0


@needs_cuda
def test_a_gpu_that_is_full_halves_the_batch(workbench: Workbench) -> None:
    class Greedy(Sums):
        def forward(self, images: Tensor) -> Tensor:
            free, _ = torch.cuda.mem_get_info(images.device)
            torch.empty(len(images), free // 4, dtype=torch.uint8, device=images.device)
            return super().forward(images)

    models, task = [workbench.model("greedy", Greedy), workbench.model("sums")], workbench.task()
    result = workbench.worker(device="cuda:0").run(unit(task, *models))
    assert result.outcomes["greedy"].batch_size in (1, 2)
    assert result.outcomes["sums"].batch_size == 8
    np.testing.assert_allclose(logits(result, "greedy"), logits(result, "sums"), rtol=1e-5)


def test_a_perturbation_is_computed_where_the_plan_says(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    model, task = workbench.model("sums"), workbench.task(perturbation_fn_gpu=UniformNoise(norm="linf", epsilon=0.1))
    workbench.tasks.append(replace(workbench.tasks[task], perturbs_on="cpu"))
    with fake_cuda(monkeypatch):
        worker = workbench.worker(device="cuda:0")
        places = [worker.scene(unit(at, model)).perturbs_on.type for at in (task, task + 1)]
    assert places == ["cuda", "cpu"]
