"""From a setting and a model to the pipeline of their samples: with the data at hand, or by name in any process."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting
from models.model_base import Model
from registry import registry
from testbed.data.corrupted import corrupted_samples
from testbed.data.datasets import load_samples, resolve_dataset
from testbed.data.imagepipeline import Pipeline
from testbed.data.imagetransforms import keeping_size
from testbed.records import Samples


class Recipe(NamedTuple):
    """Names under which any process finds samples and transforms, which are functions and cannot be sent.

    Args:
        setting: name of the setting.
        model, label_space: name of the model, and the label space it is looked up under.
        data_root: where data sets are looked for.
    """

    setting: str
    model: str
    label_space: str | None
    data_root: Path | None


def setting_pipeline(setting: EvalSetting, model: Model, dataset: Dataset, samples: Samples) -> Pipeline:
    """What the samples of a setting pass before a model is shown them, or before they are perturbed."""
    transform = None if setting.space == "canonical" else model.transform
    if setting.keeps_size:
        transform = keeping_size(transform)
    return Pipeline(
        samples=samples,
        canonical_size=dataset.canonical_size if transform is None else None,
        setting_transform=setting.transform,
        model_transform=transform,
    )


def samples_of(setting: EvalSetting, data_root: Path | None) -> tuple[Dataset, Samples]:
    """The data set of a setting, and all samples of the split that it takes, whatever part of them it uses.

    Raises: DataError: they are not there, or damaged.
    """
    dataset = resolve_dataset(setting.dataset, registry.datasets, data_root)
    samples = load_samples(dataset, setting.dataset.split or dataset.eval_split, data_root=data_root)
    if setting.dataset.corrupted is not None:
        samples = corrupted_samples(
            dataset, samples, *setting.dataset.corrupted, suffix=setting.dataset.copies, data_root=data_root
        )
    return dataset, samples


@lru_cache(maxsize=4)
def recipe_pipeline(recipe: Recipe) -> Pipeline:
    """The same, from names alone; the samples are loaded once. Raises: TestbedError: one of them is not there."""
    setting = registry.eval_setting(recipe.setting)
    dataset, samples = samples_of(setting, recipe.data_root)
    return setting_pipeline(setting, registry.model(recipe.model, recipe.label_space), dataset, samples)
