"""One worker: takes a unit, returns its logits. It knows no engine and no database. Imports torch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

from eval_settings.eval_setting_base import EvalSetting
from registry import registry
from testbed.definitions import load_definitions
from testbed.engine.unit import ModelFacts, Task, Unit, UnitFailure, UnitResult, WorkerConfig
from testbed.records import Shard
from testbed.worker.apply_arithmetic import set_flags
from testbed.worker.batch import Scene
from testbed.worker.batch_limits import BatchLimits
from testbed.worker.device_bank import DeviceBanks
from testbed.worker.failures import failure
from testbed.worker.loaded_models import LoadedModels
from testbed.worker.memory import keep_freed_memory, total_memory
from testbed.worker.stopwatch import Stopwatch
from testbed.worker.unit_run import Holdings, UnitRun

MODELS_SHARE = 0.4  # of a device's memory, for parameters
SHARED_MEMORY = 0.9  # of a device's, for the tensors of workers that share it; the rest is for their libraries


@dataclass(frozen=True)
class Begun:
    """A unit whose work has been handed to the device, or that failed with its setting.

    `is_done` is reached by a CUDA device when it has done all of it.
    """

    unit: Unit
    run: UnitRun | UnitFailure
    is_done: torch.cuda.Event | None = None


class Worker:
    """Evaluates units on one device. Built inside the process that runs it."""

    def __init__(self, config: WorkerConfig) -> None:
        self.config = config
        self.device = torch.device(config.device)
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
            if config.sharing > 1:  # one that fills the device would halve the batches of the others, now and then
                torch.cuda.set_per_process_memory_fraction(SHARED_MEMORY / config.sharing, self.device)
        else:
            keep_freed_memory()
        load_definitions(config.sources)
        torch.set_num_threads(config.threads)  # definitions may have set this and flags, too
        set_flags(config.arithmetic)
        self._holdings = Holdings(
            device=self.device,
            models=LoadedModels(
                self.device,
                config.arithmetic,
                data_root=config.data_root,
                max_bytes=int(MODELS_SHARE * total_memory(self.device) / config.sharing),
            ),
            banks=DeviceBanks(self.device, sharing=config.sharing),
            limits=BatchLimits(self.device),
        )
        self._reported: set[tuple[str, str | None]] = set()

    def run(self, unit: Unit, tell: Callable[[], None] = lambda: None) -> UnitResult:
        """The outcome of every model of the unit. A model that raises spoils its own outcome only.

        Args:
            unit: of a task of the plan.
            tell: is called after each load, each check and each batch of each model.
        """
        return self.finish(self.begin(unit, tell))

    def begin(self, unit: Unit, tell: Callable[[], None] = lambda: None) -> Begun:
        """Hands the work of a unit to the device. A CUDA device is not waited for: the next unit may begin.

        Raises: DeviceError: the device is unusable in this process, which has to end.
        """
        try:
            scene = self.scene(unit)
        except Exception as error:
            return Begun(unit, failure(error))
        run = UnitRun(scene, self._holdings, tell)
        run.queue()
        return Begun(unit, run, is_done=_queued_mark(self.device))

    def finish(self, begun: Begun) -> UnitResult:
        """Waits for the device and encodes what it answered. May run in another thread than `begin`, one at a time."""
        if isinstance(begun.run, UnitFailure):
            return UnitResult(outcomes=dict.fromkeys(begun.unit.models, begun.run), facts={})
        if begun.is_done is not None:
            torch.cuda.set_device(self.device)  # of this thread, which would take memory of the first device
            begun.is_done.synchronize()
        run, scene, stopwatch = begun.run, begun.run.scene, begun.run.scene.stopwatch
        outcomes: dict[str, Shard | UnitFailure] = dict(run.failures)
        facts: dict[str, ModelFacts] = {}
        times = stopwatch.seconds()
        with stopwatch.stage("encode"):
            for name, answer in run.answers.items():
                try:
                    outcomes[name] = answer.shard(
                        scene.task, scene.setting, scene.unit, seconds=times["forward", name], worker=self.config.name
                    )
                    if (key := (name, scene.task.label_space)) not in self._reported:
                        facts[name] = answer.facts(scene.setting)
                        self._reported.add(key)
                except Exception as error:
                    outcomes[name] = failure(error)
        return UnitResult(outcomes=outcomes, facts=facts, seconds=_by_stage(stopwatch))

    def forget_limits(self) -> bool:
        """Whether any batch was too large for the device since this was last asked; whole ones are tried again."""
        return self._holdings.limits.clear()

    def scene(self, unit: Unit, *, perturbs_on: Literal["device", "cpu"] | None = None) -> Scene:
        """What the batches of a unit share; `perturbs_on` overrules the task.

        Raises: TestbedError: its setting cannot be built.
        """
        task = self.config.tasks[unit.task]
        return Scene(
            task,
            _ready_setting(task),
            unit,
            device=self.device,
            banks=self._holdings.banks,
            limits=self._holdings.limits,
            stopwatch=Stopwatch(self.device),
            is_keyed_on_cpu=(perturbs_on or task.perturbs_on) == "cpu",
        )


def _ready_setting(task: Task) -> EvalSetting:
    setting = registry.eval_setting(task.setting)
    return setting if task.epsilon is None else setting.at_epsilon(task.epsilon)


def _queued_mark(device: torch.device) -> torch.cuda.Event | None:
    """An event at the end of what is queued on a CUDA device; whoever waits for it lets other threads run."""
    if device.type != "cuda":
        return None
    mark = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
    mark.record()
    return mark


def _by_stage(stopwatch: Stopwatch) -> dict[str, float]:
    stages: defaultdict[str, float] = defaultdict(float)
    for (stage, _), seconds in stopwatch.seconds().items():
        stages[stage] += seconds
    return dict(stages)
