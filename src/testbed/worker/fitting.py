"""What a model is fitted on in a run: a split, or the run's own part of one, with noise where the model asks for it.

Imports torch: only workers load this file.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import StandardDataset
from models.model_base import FitNoise, Model
from registry import registry
from testbed.data.datasets import load_samples, no_fit_split, resolve_dataset
from testbed.engine.unit import Task
from testbed.errors import DataError, DefinitionError
from testbed.perturbations.noise import UniformNoise, usual_boundary
from testbed.randomness import SampleKeys
from testbed.records import Samples


def fit_samples(model: Model, task: Task, *, seed: int, data_root: Path | None) -> Samples | None:
    """What a model is fitted on in the run with this seed; None for a model that is trained already.

    Raises: DefinitionError: the data set has no split for that. DataError: it is not held as an array.
    """
    if not model.is_fitted:
        return None
    registered = {name: value for name, value in registry.datasets.items() if name == task.dataset}
    dataset = resolve_dataset(StandardDataset(name=task.dataset), registered, data_root) if registered else None
    split = dataset and (dataset.eval_split if task.fit_indices is not None else dataset.fit_split)
    if dataset is None or split is None:
        raise DefinitionError(no_fit_split(model.name, task.dataset))
    samples = _loaded(dataset, split, data_root)
    if not isinstance(samples.items, np.ndarray):
        if model.fit_noise is None and task.fit_indices is None:
            return samples
        raise DataError(f"Data set '{dataset.name}' is not held as one array. '{model.name}' cannot be fitted on it.")
    indices = np.arange(len(samples)) if task.fit_indices is None else task.fit_indices
    if model.fit_noise is None:
        return samples if task.fit_indices is None else samples.take(indices)
    epsilon = task.fit_epsilons[model.fit_noise.norm] if model.fit_noise.epsilon is None else model.fit_noise.epsilon
    return _noisy(samples, indices, model.fit_noise, epsilon=epsilon, dataset=dataset, seed=seed)


@lru_cache(maxsize=1)
def _loaded(dataset: Dataset, split: str, data_root: Path | None) -> Samples:
    return load_samples(dataset, split, data_root=data_root)


def _noisy(
    samples: Samples, indices: NDArray[np.int64], noise: FitNoise, *, epsilon: float, dataset: Dataset, seed: int
) -> Samples:
    """Noisy copies of the samples at `indices`, copy by copy, as float32; their ids tell the copy."""
    perturb = UniformNoise(
        norm=noise.norm,
        epsilon=epsilon,
        boundary=usual_boundary(noise.norm, dataset.domain),
        is_shared=noise.is_shared,
    )
    clean = samples.take(indices)
    items = np.asarray(clean.items)
    plain = torch.from_numpy((items / 255 if items.dtype == np.uint8 else items).astype(np.float32))
    is_colour = plain.ndim == 4
    plain = plain.movedim(-1, 1) if is_colour else plain  # as the bank has it, so that offsets are equal
    keys = [
        SampleKeys(seed=seed, purpose="train", dataset=samples.dataset, sample_indices=indices, draw=copy)
        for copy in range(noise.num_copies)
    ]
    noisy = torch.cat([perturb(plain, keys=of_copy) for of_copy in keys])
    return replace(
        clean,
        items=(noisy.movedim(1, -1) if is_colour else noisy).numpy(),
        targets=np.tile(clean.targets, noise.num_copies),
        sample_ids=tuple(f"{name}#{copy}" for copy in range(noise.num_copies) for name in clean.sample_ids),
    )
