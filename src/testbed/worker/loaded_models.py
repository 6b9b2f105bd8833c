"""The models that a worker keeps loaded: as many as fit into its share of the memory. Imports torch."""

from __future__ import annotations

import gc
from collections import OrderedDict
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

MAX_MODELS = 64  # whatever they weigh: what a model without parameters holds, nobody knows
_Key = tuple[str, str, int]


@dataclass(frozen=True)
class Loaded:
    """A model ready to run; the hash is None for one that is fitted or drawn anew in every run."""

    model: Model
    classifier: Classifier
    weights_sha256: str | None


class LoadedModels:
    """Models by name and seed; those that were not used for longest go when all take more than `max_bytes`."""

    def __init__(self, device: torch.device, arithmetic: Arithmetic, *, data_root: Path | None, max_bytes: int) -> None:
        self._device, self._arithmetic, self._data_root = device, arithmetic, data_root
        self.max_bytes = max_bytes
        self._loaded: OrderedDict[_Key, Loaded] = OrderedDict()
        self._hashes: dict[_Key, str | None] = {}  # also of models that have gone: large weights take seconds

    def get(self, name: str, task: Task, unit: Unit) -> Loaded:
        """The model, loaded or fitted if it is not."""
        model = registry.model(name, task.label_space)
        key = (name, task.dataset if model.is_fitted else model.label_space, unit.fit_seed)
        if key not in self._loaded:
            self._loaded[key] = self._load(key, model, task, unit)
        self._loaded.move_to_end(key)
        is_crowded = len(self._loaded) > 1 and self._num_bytes() > self.max_bytes
        while len(self._loaded) > 1 and (self._num_bytes() > self.max_bytes or len(self._loaded) > MAX_MODELS):
            self._loaded.popitem(last=False)
        if is_crowded:
            gc.collect()  # a network that refers to itself, as compiled ones do, would keep its memory
        return self._loaded[key]

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
        """Lets go of all of them."""
        self._loaded.clear()

    def _num_bytes(self) -> int:
        return sum(loaded.classifier.num_bytes for loaded in self._loaded.values())
