"""A worker on definitions and samples that a test makes up."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from torch import Tensor, nn

from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model
from registry import registry
from testbed.codec import decode
from testbed.data.bankfile import BankFile, BlockFile, Form
from testbed.data.imagebank import Bank
from testbed.definitions import Sources, load_definitions
from testbed.engine.unit import Task, Unit, UnitResult, WorkerConfig
from testbed.records import Shard
from testbed.worker.worker import Worker

NUM_SAMPLES, NUM_CLASSES = 20, 3
SHAPE = (2, 4, 4)


class Sums(nn.Module):
    """A network whose three logits are the image's sum, its first value and its last, in the bits that sums have."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(nn.init.ones_(nn.Parameter(Tensor(1))))

    def forward(self, images: Tensor) -> Tensor:
        flat = images.flatten(1) * self.scale
        return nn.functional.pad(flat[:, [0, -1]], (1, 0)) + nn.functional.pad(flat.sum(1, keepdim=True), (0, 2))


@dataclass
class Workbench:
    """Builds tasks and workers; what it registers is gone after the test."""

    folder: Path
    tasks: list[Task] = field(default_factory=list)

    def model(self, name: str, load: Callable[[], Any] = Sums, **fields: Any) -> str:
        """The name of a new model."""
        fields = {"transform": None, "eval_batch_size": 8, "label_space": "workbench"} | fields
        registry.add_model(Model(name=name, classifier_loader=load, **fields))
        return name

    def task(
        self, *, dtype: str = "uint8", is_in_order: bool = True, num_samples: int = NUM_SAMPLES, **fields: Any
    ) -> int:
        """The position of a new task, for a setting with these fields on made-up samples."""
        number = len(self.tasks)
        chance = np.random.default_rng(number)
        shape = (num_samples, *SHAPE)
        samples = chance.integers(0, 256, shape).astype(dtype) if dtype == "uint8" else chance.random(shape, dtype)
        path = self.folder / f"{number}.npy"
        setting = EvalSetting(name=f"workbench-{number}", dataset=StandardDataset(name="workbench"), **fields)
        registry.add_eval_setting(setting)
        order = np.arange(num_samples) if is_in_order else chance.permutation(num_samples)
        self.tasks.append(Task(
            setting=setting.name,
            dataset="workbench",
            label_space="workbench",
            bank=whole_bank(path, samples),
            sample_indices=order,
            targets=(np.arange(num_samples) % NUM_CLASSES).astype(np.int32),
            num_classes=NUM_CLASSES,
        ))  # fmt: skip
        return number

    def worker(self, **fields: Any) -> Worker:
        """A worker for the tasks so far."""
        fields = {"name": "w", "device": "cpu", "threads": 1, "data_root": None, "sources": Sources()} | fields
        return Worker(WorkerConfig(tasks=tuple(self.tasks), **fields))


def whole_bank(path: Path, samples: NDArray[Any]) -> Bank:
    """A bank of these samples at `path`, filled."""
    file, form = BankFile(path), Form(samples.shape, samples.dtype.name)
    file.allocate(form)
    blocks = BlockFile(file, form)
    written = [blocks.write(number, samples[form.block(number)]) for number in range(form.num_blocks)]
    blocks.close()
    file.complete(form, np.concatenate(written))
    return Bank(path=str(path), shape=form.shape, dtype=form.dtype, fingerprint=str(path))


def unit(task: int, *models: str, stop: int = NUM_SAMPLES, batch_size: int = 8, **fields: Any) -> Unit:
    """All samples of a task, for these models."""
    fields = {"fit_seed": 0, "noise_seed": 0, "draw": 0, "start": 0} | fields
    return Unit(task=task, models=models, stop=stop, batch_size=batch_size, **fields)


def logits(result: UnitResult, model: str) -> Any:
    """What a model answered."""
    outcome = result.outcomes[model]
    assert isinstance(outcome, Shard), outcome
    return decode(outcome.payload, codec=outcome.codec, num_outputs=outcome.num_outputs)


@pytest.fixture
def workbench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    _definitions()
    for table in (registry._models, registry._settings):
        for name in ("values", "sources"):
            monkeypatch.setattr(table, name, dict(getattr(table, name)))
    monkeypatch.setattr("testbed.worker.model_run.FEWEST", 10**9)  # networks are asked about the samples alone
    return Workbench(tmp_path)


@functools.cache
def _definitions() -> None:
    """Before a test's own ones, which go with it, while the built-in ones stay."""
    load_definitions()
