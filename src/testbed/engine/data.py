"""The data of a plan: every data set loaded once, every image decoded once, every separation computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model
from registry import registry
from testbed.data.class_order import ClassDifference
from testbed.data.corrupted import corrupted_samples
from testbed.data.datasets import check_size, load_samples, no_fit_split, published_difference, resolve_dataset
from testbed.data.filling import BankFiller
from testbed.data.imagebank import Bank
from testbed.data.imagepipeline import Pipeline
from testbed.data.pipelines import Recipe, setting_pipeline
from testbed.engine.identity import describe
from testbed.engine.separations import check_level, facts, find_separation, searched_samples
from testbed.errors import DataError
from testbed.fingerprint import file_sha256, fingerprint
from testbed.metrics.frames import whole_sequences
from testbed.progress import SearchProgress
from testbed.randomness import permutation, stream_key
from testbed.records import IntArray, Norm, Samples
from testbed.store.store import Store
from testbed.store.views import StoredSeparation


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
        is_quiet: shows no progress of long searches, and of decoding that is waited for.
        uses_bank: whether decoded images are kept on disk; else they are decoded whenever they are needed.
        bank_limit: bytes that decoded images may take on disk; None for no limit but the disk's.
    """

    store: Store
    data_root: Path | None
    cache_root: Path
    threads: int
    warn: Callable[[str], None]
    is_kept: bool = True
    is_quiet: bool = False
    uses_bank: bool = True
    bank_limit: int | None = None
    filler: BankFiller = field(init=False)
    _warned: set[str] = field(default_factory=set)
    _datasets: dict[StandardDataset, Dataset] = field(default_factory=dict)
    _samples: dict[tuple[str, Path | None, str], Samples] = field(default_factory=dict)
    _differences: dict[int, ClassDifference | None] = field(default_factory=dict)
    _corrupted: dict[tuple[str, str, str, tuple[str, int | None]], Samples] = field(default_factory=dict)
    _separations: dict[tuple[str, Path | None, Norm, bool], StoredSeparation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept: Literal["none", "large"] = "none" if self.is_kept else "large"
        self.filler = BankFiller(
            self.cache_root,
            num_threads=self.threads,
            limit=self.bank_limit,
            streams=kept if self.uses_bank else "all",
            shown=partial(SearchProgress, is_quiet=self.is_quiet),
        )

    def warn_once(self, line: str) -> None:
        """Tells the user a thing the first time it is noticed."""
        if line not in self._warned:
            self._warned.add(line)
            self.warn(f"Warning: {line}")

    def dataset(self, standard: StandardDataset) -> Dataset:
        """The data set that a setting names, looked for once. Raises: DataError: it is not there."""
        if standard not in self._datasets:
            self._datasets[standard] = resolve_dataset(standard, registry.datasets, self.data_root)
        return self._datasets[standard]

    def samples(self, dataset: Dataset, split: str) -> Samples:
        """One split, loaded once."""
        key = (dataset.name, dataset.path, split)
        if key not in self._samples:
            samples = self._samples[key] = load_samples(dataset, split, data_root=self.data_root)
            for note in samples.notes:
                self.warn_once(f"data set '{dataset.name}' ({split}): {note}")
        return self._samples[key]

    def setting_samples(self, setting: EvalSetting) -> Samples:
        """The samples of a setting. Raises: DataError: missing, or not of the declared size."""
        dataset = self.dataset(setting.dataset)
        samples = self.samples(dataset, setting.dataset.split or dataset.eval_split)
        if setting.dataset.corrupted is not None:
            samples = self._copies(dataset, samples, setting.dataset.corrupted, setting.dataset.copies)
        where = f"{dataset.path or dataset.name} ({samples.split})"
        self._check_classes(setting, dataset, samples)
        if setting.size is not None and setting.idx_subsample_list is None:
            check_size(setting=setting.name, declared=setting.size, found=len(samples), where=where)
        return samples

    def _check_classes(self, setting: EvalSetting, dataset: Dataset, samples: Samples) -> None:
        """Refuses classes that the data set does not have, and a whole data set that lacks some; of others says so.

        Where most classes are absent, a part is meant.

        Raises: DataError: as said.
        """
        if id(samples) not in self._differences:  # every pair of a plan asks
            self._differences[id(samples)] = published_difference(samples, dataset.source)
        if (difference := self._differences[id(samples)]) is None:
            return
        told = f"Data set '{dataset.name}' ({samples.split}) has other classes than it is published with: {difference}."
        is_part = len(difference.too_few) >= len(np.unique(samples.targets))
        is_whole = setting.size is not None and setting.idx_subsample_list is None and not is_part
        if difference.too_many or is_whole:
            raise DataError(f"{told} Check the folders of classes: what was extracted, and whether one was renamed.")
        if not is_part:
            self.warn_once(told)

    def _copies(self, dataset: Dataset, clean: Samples, corrupted: tuple[str, int | None], suffix: str) -> Samples:
        """Published copies of clean samples, loaded once."""
        key = (dataset.name, clean.split, suffix, corrupted)
        if key not in self._corrupted:
            self._corrupted[key] = corrupted_samples(
                dataset, clean, *corrupted, suffix=suffix, data_root=self.data_root
            )
        return self._corrupted[key]

    def bank(self, setting: EvalSetting, model: Model) -> Bank:
        """The images of a setting as a model takes them. `filler` knows which of them are decoded."""
        dataset, samples = self.dataset(setting.dataset), self.setting_samples(setting)
        transform = None if setting.space == "canonical" else model.transform
        identity = {"setting": _identity(setting.transform, setting), "model": _identity(transform, model)}
        if setting.keeps_size:
            identity["keeps_size"] = True
        bank = self.filler.plan(
            setting_pipeline(setting, model, dataset, samples),
            transform_identity=fingerprint(identity),
            recipe=Recipe(setting.name, model.name, model.label_space, self.data_root),
        )
        if setting.keeps_size:
            self._check_kept(dataset, setting, model, bank)
        return bank

    def _check_kept(self, dataset: Dataset, setting: EvalSetting, model: Model, bank: Bank) -> None:
        """Says where images that were cropped already are resized and cropped once more."""
        copies = dataset.copies.get(setting.dataset.copies) if setting.dataset.corrupted else None
        size = copies.cropped_size if copies else None
        if size is not None and bank.shape[2:] != (size, size):
            self.warn_once(
                f"'{setting.name}' has images that were resized and cropped to {size} px before, and model "
                f"'{model.name}' takes {bank.shape[2]} px: its transform resizes and crops them again, so that it sees "
                "less of each than of the clean image. Results of models at different sizes do not compare."
            )

    def fit_facts(self, setting: EvalSetting, model: Model) -> dict[str, str | float]:
        """What a model that is fitted in the run is fitted on, which its results depend on.

        Raises: DataError: the data set has no split for that.
        """
        if not model.is_fitted:
            return {}
        dataset = self.dataset(setting.dataset)
        split = dataset.fit_split if dataset.test_fraction is None else dataset.eval_split
        if split is None:
            raise DataError(no_fit_split(model.name, dataset.name))
        facts: dict[str, str | float] = {"fitted_on": self.samples(dataset, split).fingerprint}
        for epsilon in self.fit_epsilons(setting, model).values():
            facts["fit_epsilon"] = epsilon
        return facts

    def fit_epsilons(self, setting: EvalSetting, model: Model) -> dict[Norm, float]:
        """By norm, the level of the noise that a model is fitted with, where the separation decides it."""
        noise = model.fit_noise
        if noise is None or noise.epsilon is not None:
            return {}
        return {noise.norm: self.separation(self.dataset(setting.dataset), noise.norm).epsilon_min}

    def separation(self, dataset: Dataset, norm: Norm, *, exclude_conflicting: bool = False) -> StoredSeparation:
        """The minimal class separation of a data set over its named splits, from the store or computed and stored.

        Raises: DataError: it is 0, since equal samples bear different labels; a pair of them is named.
        """
        key = (dataset.name, dataset.path, norm, exclude_conflicting)
        if key not in self._separations:
            searched = searched_samples(self, dataset)
            found = find_separation(self, searched, norm, exclude_conflicting=exclude_conflicting)
            check_level(found, searched, self.warn_once)
            self._separations[key] = found
        return self._separations[key]

    def separation_facts(self, setting: EvalSetting) -> Mapping[str, Any] | None:
        """Where a setting's noise level comes from, for its definition; None for a level of the user's own."""
        norm = setting.shift.norm if setting.shift is not None and setting.needs_separation else None
        if norm is None or norm == "l0":
            return None
        dataset = self.dataset(setting.dataset)
        separation = self.separation(dataset, norm, exclude_conflicting=setting.excludes_conflicting)
        return facts(separation, searched_samples(self, dataset))

    def points(self, dataset: Dataset, samples: Samples) -> NDArray[Any]:
        """(n, ...) samples in the canonical space: 8-bit pixels, or floats with the digits that a bank rounds away."""
        if isinstance(samples.items, np.ndarray) and samples.items.dtype != np.uint8:
            return samples.items
        size = dataset.canonical_size
        pipeline = Pipeline(samples=samples, canonical_size=size, setting_transform=None, model_transform=None)
        return self.filler.load(pipeline)


def limited(sample_ids: Sequence[str], limit: int, *, dataset: str) -> IntArray:
    """Positions of the first `limit` samples of an order that is fixed for the data set, in ascending order.

    Frames are taken by whole sequences, of which there is at least one.
    """
    order = permutation(stream_key(0, purpose="split", dataset=dataset, stream="limit"), len(sample_ids))
    of_sequences = whole_sequences(order, sample_ids, limit)
    return np.sort(order[:limit]) if of_sequences is None else of_sequences


def _identity(transform: object, owner: Model | EvalSetting | None) -> object:
    """What a transform is, for the cache: its fields where it has some, else the file that defines it."""
    description = describe(transform)
    if description is None or "code" not in description or owner is None:
        return description
    source = registry.setting_source(owner.name) if isinstance(owner, EvalSetting) else registry.model_source(owner)
    return {**description, "owner": owner.name, "file": None if source is None else file_sha256(source)}
