"""The models that a worker keeps loaded: as many as fit into its share of the memory. Imports torch."""

from __future__ import annotations

import gc
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from models.model_base import Model
from registry import registry
from testbed.engine.arithmetic import Arithmetic
from testbed.engine.unit import Task, Unit
from testbed.worker.apply_arithmetic import set_flags
from testbed.worker.classifier import Classifier, load_classifier, weights_sha256
from testbed.worker.fitting import fit_samples
from testbed.worker.repetition import Repetition, UnsteadyError

MAX_MODELS = 64  # whatever they weigh: what a model without parameters holds, nobody knows
_Key = tuple[str, str, int]


@dataclass
class Loaded:
    """A model ready to run.

    Args:
        weights_sha256: None for one that is fitted or drawn anew in every run.
        repetition: what it is asked about again and again, once it has been asked.
        is_kept: it is not let go of, so that it will be asked at the end of the turn.
    """

    model: Model
    classifier: Classifier
    weights_sha256: str | None
    repetition: Repetition | None = None
    is_kept: bool = True


class LoadedModels:
    """Models by name and seed; those that were not used for longest go when all take more than `max_bytes`."""

    def __init__(self, device: torch.device, arithmetic: Arithmetic, *, data_root: Path | None, max_bytes: int) -> None:
        self._device, self._arithmetic, self._data_root = device, arithmetic, data_root
        self.max_bytes = max_bytes
        self._loaded: OrderedDict[_Key, Loaded] = OrderedDict()
        self._unsteady: dict[_Key, UnsteadyError] = {}  # models that have gone, whose answers had changed
        self._hashes: dict[_Key, str | None] = {}  # also of models that have gone: large weights take seconds

    def get(self, name: str, task: Task, unit: Unit) -> Loaded:
        """The model, loaded or fitted if it is not."""
        model = registry.model(name, task.label_space)
        key = _key(model, task, unit)
        if key not in self._loaded or model.adapts:
            self._loaded[key] = self._load(key, model, task, unit)
        self._loaded.move_to_end(key)
        is_crowded = len(self._loaded) > 1 and self._num_bytes() > self.max_bytes
        while len(self._loaded) > 1 and (self._num_bytes() > self.max_bytes or len(self._loaded) > MAX_MODELS):
            self._let_go()
        if is_crowded:
            gc.collect()  # a network that refers to itself, as compiled ones do, would keep its memory
        return self._loaded[key]

    def check(self, name: str, task: Task, unit: Unit) -> None:
        """Asks a model once more what it was asked first. Raises: UnsteadyError: its answers have changed."""
        key = _key(registry.model(name, task.label_space), task, unit)
        if key in self._unsteady:
            raise self._unsteady[key]
        if key in self._loaded and (repetition := self._loaded[key].repetition) is not None:
            repetition.check()

    def _let_go(self) -> None:
        """Lets go of the one that was not used for longest, after asking it once more.

        What comes of that is told at the end of the turn, since what is being loaded now is another model.
        """
        key, loaded = self._loaded.popitem(last=False)
        loaded.is_kept = False
        if loaded.repetition is None:
            return
        with suppress(Exception), torch.no_grad():  # where it cannot be asked, nothing is known
            try:
                loaded.repetition.check()
            except UnsteadyError as error:
                self._unsteady[key] = error.with_traceback(None)  # whose frames would keep the network

    def _load(self, key: _Key, model: Model, task: Task, unit: Unit) -> Loaded:
        classifier = load_classifier(
            model,
            device=str(self._device),
            fit_seed=unit.fit_seed,
            fit_samples=fit_samples(model, task, seed=unit.fit_seed, data_root=self._data_root),
            arithmetic=self._arithmetic,
        )
        set_flags(self._arithmetic)  # a loader may have set others
        if key not in self._hashes:
            is_anew = model.depends_on_seed or model.is_fitted
            self._hashes[key] = None if is_anew else weights_sha256(classifier)
        return Loaded(model, classifier, self._hashes[key])

    def clear(self) -> None:
        """Lets go of all of them without asking, for want of memory."""
        for loaded in self._loaded.values():
            loaded.is_kept = False
        self._loaded.clear()

    def _num_bytes(self) -> int:
        return sum(loaded.classifier.num_bytes for loaded in self._loaded.values())


def _key(model: Model, task: Task, unit: Unit) -> _Key:
    return model.name, task.dataset if model.is_fitted else model.label_space, unit.fit_seed
