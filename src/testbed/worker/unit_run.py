"""One unit on its way through a worker: models are loaded, batches perturbed and run. Imports torch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from testbed.engine.unit import UnitFailure
from testbed.errors import DeviceError
from testbed.randomness import kept_globals
from testbed.worker.answer import Answer
from testbed.worker.batch import Batch, Scene
from testbed.worker.batch_limits import BatchLimits
from testbed.worker.device_bank import DeviceBanks
from testbed.worker.failures import failure
from testbed.worker.loaded_models import LoadedModels
from testbed.worker.memory import OutOfRoom, is_broken, is_device_shortage, release_unused
from testbed.worker.model_run import ModelRun
from testbed.worker.repetition import NUM_KEPT


@dataclass(frozen=True, kw_only=True)
class Holdings:
    """What a worker holds on its device from unit to unit."""

    device: torch.device
    models: LoadedModels
    banks: DeviceBanks
    limits: BatchLimits

    def clear(self) -> None:
        """Makes all the room there can be."""
        self.models.clear()
        self.banks.give_up_keeping()
        release_unused(self.device)


class UnitRun:
    """Runs all models of a unit, together as far as their parameters fit into memory.

    A model that raises spoils its own outcome only. One that lacks memory beside the others is run alone after them.

    Attributes:
        answers: of models, by name.
        failures: of the others.
    """

    def __init__(self, scene: Scene, holdings: Holdings, tell: Callable[[], None]) -> None:
        self.scene, self._holdings, self._tell = scene, holdings, tell
        self.answers: dict[str, Answer] = {}
        self.failures: dict[str, UnitFailure] = {}
        self._crowded_out: list[str] = []

    def queue(self) -> None:
        """Does all that the host has to do before there are results; a CUDA device may be at it for longer.

        Raises: DeviceError: the device is unusable in this process.
        """
        with kept_globals():
            if not self.scene.unit.num_samples:
                self._end_turn()
                return
            self._prepare_bank()
            waiting = deque(self.scene.unit.models)
            while waiting:
                self._run_together(self._loaded(waiting))
            for name in self._crowded_out.copy():
                self._run_alone(name)

    def _end_turn(self) -> None:
        """Asks the models that are loaded once more what they were asked first."""
        for name in self.scene.unit.models:
            try:
                with torch.no_grad():
                    self._holdings.models.check(name, self.scene.task, self.scene.unit)
            except Exception as error:
                self._spoil(name, error)

    def _run_alone(self, name: str) -> None:
        """Gives a model the device to itself; on return nothing refers to it, so that the next one has it to itself."""
        self._holdings.clear()
        alone = self._loaded(deque([name]))
        for run in alone.values():
            run.forget_limit()
        self._run_together(alone)

    def _prepare_bank(self) -> None:
        """Readies the bank; what is wrong with it fails the models, as soon as they are to be given a batch."""
        try:
            with self.scene.stopwatch.stage("read"):
                self._holdings.banks.prepare(self.scene.task, self._tell)
        except Exception as error:
            self._holdings.banks.give_up_keeping()
            self._check_device(error)

    def _loaded(self, waiting: deque[str]) -> dict[str, ModelRun]:
        """Takes models off those that wait, until what is loaded fills its share of the memory."""
        runs: dict[str, ModelRun] = {}
        num_bytes = 0
        while waiting and (not runs or num_bytes < self._holdings.models.max_bytes):
            name = waiting.popleft()
            try:
                with self.scene.stopwatch.stage("load"):
                    loaded = self._holdings.models.get(name, self.scene.task, self.scene.unit)
                runs[name] = ModelRun(loaded, self.scene)
                num_bytes += loaded.classifier.num_bytes
            except Exception as error:
                self._spoil(name, error)
            self._tell()
        return runs

    def _run_together(self, runs: dict[str, ModelRun]) -> None:
        """Runs these models on every batch of the unit, and keeps those that answer to the end."""
        unit, banks = self.scene.unit, self.scene.banks
        first = Batch(self.scene, unit.start, min(unit.start + NUM_KEPT, unit.stop))
        for name, run in list(runs.items()):
            with self._spoiling(name, runs), torch.no_grad():
                run.check(first)
            self._tell()
        ranges = [(at, min(at + unit.batch_size, unit.stop)) for at in range(unit.start, unit.stop, unit.batch_size)]
        for (start, stop), following in zip(ranges, [*ranges[1:], None], strict=True):
            if not runs:
                return
            if following is not None and self.scene.reads_to.type != "cpu":
                banks.read_ahead(self.scene.task.bank, self.scene.task.sample_indices[slice(*following)])
            self._run_batch(Batch(self.scene, start, stop), runs)
        for name, run in list(runs.items()):
            with self._spoiling(name, runs), torch.no_grad():
                self.answers[name] = run.answer()

    @contextmanager
    def _spoiling(self, name: str, runs: dict[str, ModelRun]) -> Iterator[None]:
        """Drops a model that fails meanwhile."""
        try:
            yield
        except Exception as error:
            del runs[name]
            self._spoil(name, error)

    def _run_batch(self, batch: Batch, runs: dict[str, ModelRun]) -> None:
        """Perturbs one batch, once where no model is asked, and runs every model on it; drops those that fail."""
        shared: Tensor | None = None
        left = len(runs)
        for name, run in list(runs.items()):
            left -= 1
            try:
                follows_gradients = self.scene.setting.adversarial_attack is not None or run.classifier.adapts
                with torch.set_grad_enabled(follows_gradients):
                    if batch.depends_on_model(run.classifier):
                        run.add(batch.perturbed(run.classifier, name), batch, others_follow=False)
                    else:
                        shared = batch.perturbed(None) if shared is None else shared
                        run.add(shared, batch, others_follow=left > 0)
            except Exception as error:
                del runs[name]
                self._spoil(name, error)
            self._tell()

    def _spoil(self, name: str, error: Exception) -> None:
        """Takes note that a model has failed, or is to be tried once more where it has the device to itself."""
        if isinstance(error, OutOfRoom) or is_device_shortage(error):
            if name not in self._crowded_out:
                self._crowded_out.append(name)
                return
        else:
            self._check_device(error)
        self.failures[name] = failure(error)

    def _check_device(self, error: Exception) -> None:
        """Raises: DeviceError: the device has been unusable since this error."""
        if is_broken(self.scene.device):
            raise DeviceError(f"{self.scene.device} does nothing any more after: {error}") from error
