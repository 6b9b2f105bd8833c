"""What a worker is asked and what it answers: plain values that cross any process border."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from testbed.data.imagebank import Bank
from testbed.definitions import Sources
from testbed.engine.arithmetic import Arithmetic
from testbed.records import IntArray, Norm, Shard, ShardRange

# Where a worker's time goes: reading and decoding samples, loading or fitting models, perturbing, the forward passes,
# and encoding logits. What is left of its life is idle.
STAGES = ("read", "load", "perturb", "forward", "encode")


@dataclass(frozen=True, kw_only=True)
class Task:
    """A setting made ready: what all its units share.

    Args:
        setting: name of the setting, looked up in the worker's own registry.
        dataset: name of the data set, part of the key of every random draw.
        label_space: of the data set, to find the models.
        bank: the decoded images, all samples of the split.
        sample_indices: [n] positions in the split of the setting's samples.
        fit_indices: positions of the samples that models are fitted on, where every run splits the data anew.
        targets: [n] class indices over the setting's classes; -1 for a class that is not among them.
        label_sets: [n, labels] all classes that count as right, rows filled up with -1; None where only targets do.
        num_classes: classes of the data set, the width that logits must have.
        epsilon: noise level where the separation decides it.
        fit_epsilons: the same, by norm, for the noise that models are fitted with.
        perturbs_on: 'device', or 'cpu' where its perturbation is cheaper there.
    """

    setting: str
    dataset: str
    label_space: str | None
    bank: Bank
    sample_indices: NDArray[np.int64]
    targets: IntArray
    num_classes: int
    label_sets: IntArray | None = None
    epsilon: float | None = None
    fit_indices: NDArray[np.int64] | None = None
    fit_epsilons: Mapping[Norm, float] = field(default_factory=dict)
    perturbs_on: Literal["device", "cpu"] = "device"


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A range of samples of one task, in one draw, for models that share their perturbed batches.

    One without samples ends a worker's turn: models that it has answered with are asked once more about images that
    they were asked about first.
    """

    task: int
    models: tuple[str, ...]
    fit_seed: int
    noise_seed: int
    draw: int
    start: int
    stop: int
    batch_size: int
    store_logits: str = "full"

    @property
    def num_samples(self) -> int:
        """Samples that go through a classifier, all models together."""
        return len(self.models) * (self.stop - self.start)


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What is known of a classifier once it has been loaded and has answered."""

    num_outputs: int | None
    weights_sha256: str | None
    num_bytes: int | None = None  # of its parameters and buffers


@dataclass(frozen=True, kw_only=True)
class UnitFailure:
    """Why a model has no result for a unit: one line, and the traceback for the log."""

    reason: str
    traceback: str = ""
    is_unsteady: bool = False  # its answers depend on more than the image: those that it gave before are no better
    is_request_error: bool = False  # the model cannot answer this setting at all, such as a wrong number of classes


@dataclass(frozen=True, kw_only=True)
class UnitResult:
    """A worker's answer: per model a shard or a failure, and facts about models it used for the first time.

    `seconds` tells where the unit's time went, by stage: see `STAGES`.
    """

    outcomes: Mapping[str, Shard | UnitFailure]
    facts: Mapping[str, ModelFacts]
    seconds: Mapping[str, float] = field(default_factory=dict)

    def shards_of(self, unit: Unit) -> list[tuple[str, Shard]]:
        """The pieces that a unit asked for, by model."""
        where = ShardRange(draw=unit.draw, start=unit.start, stop=unit.stop)
        outcomes = ((name, self.outcomes.get(name)) for name in unit.models)
        return [(name, found) for name, found in outcomes if isinstance(found, Shard) and found.where == where]

    def left_out(self, unit: Unit) -> list[str]:
        """The models of a unit that have neither that piece nor a failure here."""
        answered = {name for name, _ in self.shards_of(unit)}
        failed = {name for name, outcome in self.outcomes.items() if isinstance(outcome, UnitFailure)}
        return [name for name in unit.models if name not in answered | failed]


@dataclass(frozen=True)
class SignOfLife:
    """A worker is still at its unit: it has loaded a model, or run one on a batch."""


@dataclass(frozen=True, kw_only=True)
class WorkerConfig:
    """All a worker needs to know before its first unit.

    Args:
        name: of the worker.
        device: 'cpu' or 'cuda:N', N counted among the visible devices.
        threads: CPU threads for tensor operations.
        sources: definitions beside the built-in ones.
        data_root: where data sets are looked for.
        tasks: of the plan; units name them by position.
        arithmetic: how networks compute.
        sharing: workers that share the device, this one included.
    """

    name: str
    device: str  # 'cpu' or 'cuda:N'
    threads: int
    sources: Sources
    data_root: Path | None
    tasks: tuple[Task, ...]
    arithmetic: Arithmetic = field(default_factory=Arithmetic)
    sharing: int = 1
