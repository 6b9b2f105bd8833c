"""Rules of what is tried on a device before a plan is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from tests.fake_cuda import fake_cuda
from tests.workbench import SHAPE, Sums, Workbench, unit, workbench
from torch import Tensor

from testbed.data.imagebank import Bank
from testbed.definitions import Sources
from testbed.engine.unit import Task, WorkerConfig
from testbed.worker import measure, stopwatch, trials
from testbed.worker.measure import cheaper_places, largest_batches
from testbed.worker.trials import cheaper_place, largest_batch

__all__ = ["workbench"]  # a fixture
PLUGIN = """
import os, torch
from torch import nn
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model
from registry import registry

class Deadly(nn.Module):
    def forward(self, images):
        os.abort()

def network():
    return nn.Sequential(nn.Flatten(), nn.Linear(32, 3))

for name, load in {"plain": network, "deadly": Deadly}.items():
    registry.add_model(Model(name=name, transform=None, classifier_loader=load, eval_batch_size=8, label_space="here"))
registry.add_eval_setting(EvalSetting(name="toy", dataset=StandardDataset(name="toy")))
"""


class Timed(Sums):
    """A network that takes as long as a test says, and as many images."""

    seconds: ClassVar[dict[int, float]] = {}  # by number of images
    most: ClassVar[int] = 0
    passed: ClassVar[float] = 0.0

    def forward(self, images: Tensor) -> Tensor:
        if len(images) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        Timed.passed += self.seconds[len(images)]
        return super().forward(images)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes in the network alone."""
    monkeypatch.setattr(stopwatch, "perf_counter", lambda: Timed.passed)
    monkeypatch.setattr(trials, "LEAST_SECONDS", 0)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("seconds", "most", "expected"),
    [
        ({1: 1.0, 2: 1.0, 4: 1.0, 8: 1.97, 16: 3.9}, 99, 4),  # 8 and 16 at once are but 2 to 3 % faster
        ({1: 1.0, 2: 2.0, 4: 1.0, 8: 2.0, 16: 4.0}, 99, 4),  # a step in vain is passed over
        ({1: 1.0, 2: 1.0, 4: 1.0, 8: 1.0, 16: 1.0}, 99, 16),  # there are 20 samples
        ({1: 1.0, 2: 1.0, 4: 1.0, 8: 1.0, 16: 1.0}, 7, 4),  # 8 do not fit
        ({1: 1.0}, 0, None),
    ],
)
def test_batches_double_until_they_are_no_faster_or_do_not_fit(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float], most: int, expected: int | None
) -> None:
    monkeypatch.setattr(Timed, "seconds", seconds)
    monkeypatch.setattr(Timed, "most", most)
    model, task = workbench.model("timed", Timed), workbench.task()
    assert largest_batch(workbench.worker(), unit(task, model)) == expected


def test_a_model_that_fails_has_no_batch_size(workbench: Workbench) -> None:
    model, task = workbench.model("broken", lambda: 1 / 0), workbench.task()
    assert largest_batch(workbench.worker(), unit(task, model)) is None


def test_perturbations_go_where_they_take_less_time(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = [0.0]
    monkeypatch.setattr(trials, "perf_counter", lambda: passed[0])
    cost = {"device": 0.0, "cpu": 0.0}

    def perturbed(images: Tensor, keys: Any) -> Tensor:
        return images

    model, task = workbench.model("sums"), workbench.task(perturbation_fn_gpu=perturbed)
    assert cheaper_place(workbench.worker(), unit(task, model)) == "device"  # there is no other
    with fake_cuda(monkeypatch):
        worker = workbench.worker(device="cuda:0")
        plain = worker.scene

        def timed(one: Any, *, perturbs_on: str) -> Any:
            passed_here = cost[perturbs_on]
            monkeypatch.setattr(torch.cuda, "synchronize", lambda _: passed.__setitem__(0, passed[0] + passed_here))
            return plain(one, perturbs_on=perturbs_on)

        monkeypatch.setattr(worker, "scene", timed)
        cost |= {"device": 2.0, "cpu": 1.0}
        assert cheaper_place(worker, unit(task, model)) == "cpu"
        cost |= {"device": 1.0, "cpu": 2.0}
        assert cheaper_place(worker, unit(task, model)) == "device"


def test_a_perturbation_that_fails_has_no_place(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    task = workbench.task(perturbation_fn_gpu=lambda images, keys: 1 / 0)
    with fake_cuda(monkeypatch):
        assert cheaper_place(workbench.worker(device="cuda:0"), unit(task)) is None


def test_it_is_tried_in_a_process_that_may_die_on_samples_that_need_not_be_there(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text(PLUGIN)
    bank = Bank(path=str(tmp_path / "not-yet.npy"), shape=(64, *SHAPE), dtype="uint8", fingerprint="f")
    task = Task(setting="toy", dataset="toy", label_space="here", bank=bank, sample_indices=np.arange(64),
                targets=np.arange(64) % 3, num_classes=3)  # fmt: skip
    config = WorkerConfig(name="w", device="cpu", threads=1, sources=Sources(plugins=(plugin,)), data_root=None,
                          tasks=(task,))  # fmt: skip
    before, after, deadly = (unit(0, name, stop=64) for name in ("plain", "plain", "deadly"))
    sizes = list(largest_batches(config, [before, deadly, after]))
    assert sizes[1] is None
    assert all(size in (1, 2, 4, 8, 16, 32, 64) for size in (sizes[0], sizes[2]))
    assert list(cheaper_places(config, [before])) == ["device"]


def test_a_process_that_cannot_begin_is_not_started_for_every_model(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    task, starts, plain = workbench.task(), [], measure._answers
    config = WorkerConfig(name="w", device="cpu", threads=-1, sources=Sources(), data_root=None,
                          tasks=tuple(workbench.tasks))  # fmt: skip
    monkeypatch.setattr(measure, "_answers", lambda *given: starts.append(1) or plain(*given))
    assert list(largest_batches(config, [unit(task, "any")] * 3)) == [None] * 3
    assert starts == [1]
    assert "RuntimeError" in capfd.readouterr().err  # it says itself why
