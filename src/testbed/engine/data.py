"""The data of a plan: every data set loaded once, every image decoded once, every separation computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model
from registry import registry
from testbed.data.datasets import check_size, load_samples, resolve_dataset
from testbed.data.imagebank import Bank, build_bank
from testbed.engine.identity import describe
from testbed.errors import DataError
from testbed.fingerprint import file_sha256, fingerprint
from testbed.randomness import permutation, stream_key
from testbed.records import IntArray, Norm, Samples, Separation
from testbed.separation import minimal_class_separation
from testbed.signatures import argument_names
from testbed.store.store import Store

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

GREY_LEVEL = 1 / 255


@dataclass(kw_only=True)
class Data:
    """What a plan's settings and models are evaluated on.

    Args:
        store: where separations are kept.
        data_root: where data sets are looked for.
        cache_root: where decoded images are kept.
        threads: for decoding.
        warn: is told what a user should know.
        is_kept: whether separations that are computed are stored.
    """

    store: Store
    data_root: Path | None
    cache_root: Path
    threads: int
    warn: Callable[[str], None]
    is_kept: bool = True
    _warned: set[str] = field(default_factory=set)
    _samples: dict[tuple[str, Path | None, str], Samples] = field(default_factory=dict)
    _banks: dict[str, Bank] = field(default_factory=dict)
    _separations: dict[tuple[str, Path | None, Norm], Separation] = field(default_factory=dict)

    def warn_once(self, line: str) -> None:
        """Tells the user a thing the first time it is noticed."""
        if line not in self._warned:
            self._warned.add(line)
            self.warn(f"Warning: {line}")

    def dataset(self, standard: StandardDataset) -> Dataset:
        """The data set that a setting names. Raises: DataError: it is not there."""
        return resolve_dataset(standard, registry.datasets, self.data_root)

    def samples(self, dataset: Dataset, split: str) -> Samples:
        """One split, loaded once."""
        key = (dataset.name, dataset.path, split)
        if key not in self._samples:
            self._samples[key] = load_samples(dataset, split, data_root=self.data_root)
        return self._samples[key]

    def setting_samples(self, setting: EvalSetting) -> Samples:
        """The samples of a setting. Raises: DataError: missing, or not of the declared size."""
        dataset = self.dataset(setting.dataset)
        samples = self.samples(dataset, setting.dataset.split or dataset.eval_split)
        if setting.size is not None and setting.idx_subsample_list is None:
            where = f"{dataset.path or dataset.name} ({samples.split})"
            check_size(setting=setting.name, declared=setting.size, found=len(samples), where=where)
        return samples

    def bank(self, setting: EvalSetting, model: Model) -> Bank:
        """The decoded images of a setting as a model takes them."""
        dataset, samples = self.dataset(setting.dataset), self.setting_samples(setting)
        transform = None if setting.space == "canonical" else model.transform
        identity = {"setting": _identity(setting.transform, setting), "model": _identity(transform, model)}
        return self._bank(dataset, samples, setting.transform, transform, identity)

    def _bank(
        self,
        dataset: Dataset,
        samples: Samples,
        setting_transform: Callable[[Image], Image] | None = None,
        model_transform: Callable[[Image], Tensor] | None = None,
        identity: object = None,
    ) -> Bank:
        size = dataset.canonical_size if model_transform is None else None
        key = fingerprint([samples.fingerprint, size, identity])
        if key not in self._banks:
            self._banks[key] = build_bank(
                samples,
                setting_transform=setting_transform,
                model_transform=model_transform,
                canonical_size=size,
                transform_identity=fingerprint(identity),
                cache_root=self.cache_root,
                num_threads=self.threads,
            )
        return self._banks[key]

    def fit_facts(self, setting: EvalSetting, model: Model) -> dict[str, str]:
        """What a model that is fitted in the run is fitted on, which its results depend on.

        Raises: DataError: the data set has no split for that.
        """
        if "dataset" not in argument_names(model.classifier_loader):
            return {}
        dataset = self.dataset(setting.dataset)
        if dataset.fit_split is None:
            raise DataError(
                f"Model '{model.name}' is fitted on a training split, and data set '{dataset.name}' has none. "
                "Give the data set a fit_split, or use a model that is trained already."
            )
        return {"fitted_on": self.samples(dataset, dataset.fit_split).fingerprint}

    def separation(self, dataset: Dataset, norm: Norm) -> Separation:
        """The minimal class separation of a data set over its named splits, from the store or computed and stored.

        Raises: DataError: it is 0, since equal images bear different labels; the pair is named.
        """
        key = (dataset.name, dataset.path, norm)
        if key not in self._separations:
            self._separations[key] = self._find_separation(dataset, norm)
        return self._separations[key]

    def separation_facts(self, setting: EvalSetting) -> dict[str, object] | None:
        """Where a setting's noise level comes from, for its definition; None for a level of the user's own."""
        if not setting.needs_separation or setting.shift is None or setting.shift.norm is None:
            return None
        dataset = self.dataset(setting.dataset)
        separation = self.separation(dataset, setting.shift.norm)
        return {
            "splits": list(dataset.separation_splits or dataset.splits),
            "num_points": separation.num_points,
            "min_distance": separation.min_distance,
            "pair": list(separation.pair),
        }

    def _find_separation(self, dataset: Dataset, norm: Norm) -> Separation:
        splits = dataset.separation_splits or dataset.splits
        parts = [self.samples(dataset, split) for split in splits]
        sample_ids = [sample_id for part in parts for sample_id in part.sample_ids]
        contents = fingerprint([part.fingerprint for part in parts])
        space = f"{dataset.canonical_size} px" if dataset.canonical_size else "as stored"
        separation: Separation | None = self.store.get_separation(
            dataset=dataset.name, splits=splits, data_fingerprint=contents, norm=norm, space=space
        )
        if separation is None:
            points = np.concatenate([self._bank(dataset, part).open() for part in parts])
            separation = minimal_class_separation(points, np.concatenate([p.targets for p in parts]), norm=norm)
            if self.is_kept:
                self.store.put_separation(
                    separation,
                    dataset=dataset.name,
                    splits=splits,
                    data_fingerprint=contents,
                    norm=norm,
                    space=space,
                    pair_ids=(sample_ids[separation.pair[0]], sample_ids[separation.pair[1]]),
                )
        self._check(separation, dataset, sample_ids)
        return separation

    def _check(self, separation: Separation, dataset: Dataset, sample_ids: list[str]) -> None:
        first, second = (sample_ids[index] for index in separation.pair)
        if separation.min_distance == 0:
            raise DataError(
                f"Data set '{dataset.name}' holds equal samples of different class ({first} and {second}), so its "
                "minimal class separation is 0 and no noise level follows from it. Remove or relabel them, or use "
                f"{dataset.name}-noise-{separation.norm}-EPS with a level of your own."
            )
        if separation.norm == "linf" and separation.epsilon_min < GREY_LEVEL:
            self.warn_once(
                f"Half the minimal class separation of '{dataset.name}' is {separation.epsilon_min:.5f}, less than one "
                f"grey level (1/255): {first} and {second} are nearly equal. Noise at this level changes little."
            )


def limited(num_samples: int, limit: int, *, dataset: str) -> IntArray:
    """Positions of the first `limit` samples of an order that is fixed for the data set, in ascending order."""
    order = permutation(stream_key(0, purpose="split", dataset=dataset, stream="limit"), num_samples)
    return np.sort(order[:limit])


def _identity(transform: object, owner: Model | EvalSetting | None) -> object:
    """What a transform is, for the cache: its fields where it has some, else the file that defines it."""
    description = describe(transform)
    if description is None or "code" not in description or owner is None:
        return description
    source = registry.setting_source(owner.name) if isinstance(owner, EvalSetting) else registry.model_source(owner)
    return {**description, "owner": owner.name, "file": None if source is None else file_sha256(source)}
