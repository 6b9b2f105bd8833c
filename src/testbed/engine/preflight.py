"""Everything that can fail cheaply, before any model runs: a plan becomes tasks and evaluations that are ready."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval_settings.eval_setting_base import EvalSetting
from models.model_base import Model
from registry import registry
from testbed.class_subset import columns_of, padded_label_sets, targets_in_subset
from testbed.data.datasets import check_size, picked_positions
from testbed.data.imagebank import Bank
from testbed.engine.arithmetic import Arithmetic
from testbed.engine.before_data import check_before_data
from testbed.engine.data import Data, limited
from testbed.engine.identity import cut_facts, model_version, numerics, setting_version
from testbed.engine.label_spaces import check_classes, check_targets
from testbed.engine.plan import Pairing, label_space, run_split
from testbed.engine.unit import Task
from testbed.errors import DataError, StoreError, TestbedError
from testbed.logit_policy import bytes_per_sample
from testbed.records import (
    DatasetVersion,
    EvaluationKey,
    IntArray,
    ModelVersion,
    Samples,
    SettingVersion,
    ShardRange,
)
from testbed.run_split import RunSplit
from testbed.sizes import size_words
from testbed.store.views import planned_ranges

SMALL_DATASET = 10_000
UNIT_SAMPLES, LARGE_UNIT_SAMPLES = 128, 1_024


@dataclass(frozen=True, kw_only=True)
class Ready:
    """An evaluation whose data are there: what it is in the store, and which task its units belong to."""

    pairing: Pairing
    setting: EvalSetting
    task: int
    model_version: ModelVersion
    setting_version: SettingVersion
    dataset_version: DatasetVersion
    key: EvaluationKey
    num_samples: int
    shard_size: int

    @property
    def shards(self) -> list[ShardRange]:
        """All pieces of the evaluation, draw by draw."""
        return planned_ranges(
            num_draws=self.pairing.num_draws, num_samples=self.num_samples, shard_size=self.shard_size
        )

    @property
    def bytes_per_sample(self) -> int:
        """What one sample takes in the store, with all logits that the model is known to have or is asked for."""
        sublist, known = self.setting.columns, self.pairing.model.num_outputs or 0
        asked = 0 if sublist is None else max(columns_of(sublist)) + 1
        return bytes_per_sample(self.pairing.store_logits, max(asked, known, len(self.dataset_version.class_names)))


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """A plan made ready."""

    tasks: tuple[Task, ...]
    evaluations: tuple[Ready, ...]

    @property
    def distinct(self) -> list[Ready]:
        """The evaluations, each once: runs whose seeds change nothing are one."""
        return list({identity(ready): ready for ready in self.evaluations}.values())


def identity(ready: Ready) -> tuple[str, str, int, int]:
    """What makes an evaluation one of its own within a plan, where numerics are the same for all."""
    key = ready.key
    return key.model_fingerprint, key.setting_fingerprint, key.fit_seed, key.noise_seed


def prepare(
    pairings: Sequence[Pairing], data: Data, *, device: str, threads: int, arithmetic: Arithmetic
) -> Preparation:
    """Loads, checks, decodes and measures all that the plan needs of its data.

    Raises: DataError: weights or a data set are missing, or data are damaged or of another size than declared.
    """
    check_before_data(pairings, data)
    tasks: dict[tuple[str, str, int], Task] = {}
    positions: dict[tuple[str, str, int], int] = {}
    find = cache(lambda setting, seed: located(registry.eval_setting(setting), data, seed=seed))
    evaluations = []
    for pairing in pairings:
        split_seed = 0 if run_split(pairing.setting) is None else pairing.fit_seed
        found: Located = find(pairing.setting.name, split_seed)
        check_classes(
            pairing.model, pairing.setting, found.samples.class_names, partial(data.dataset, pairing.setting.dataset)
        )
        bank = data.bank(pairing.setting, pairing.model)
        _check_shape(pairing, bank)
        key = (found.setting.name, bank.fingerprint, split_seed)
        position = positions.setdefault(key, len(positions))
        fit_epsilons = data.fit_epsilons(pairing.setting, pairing.model)
        task = tasks.get(key) or _task(pairing, found, data)
        tasks[key] = replace(task, fit_epsilons={**task.fit_epsilons, **fit_epsilons})
        numbers = numerics(device=device, batch_size=pairing.batch_size, threads=threads, arithmetic=arithmetic)
        numbers |= data.fit_facts(pairing.setting, pairing.model) | cut_facts(pairing.setting, pairing.model)
        evaluations.append(_ready(pairing, found, position, numbers))
    return Preparation(tasks=tuple(tasks.values()), evaluations=tuple(evaluations))


def _check_shape(pairing: Pairing, bank: Bank) -> None:
    """Asks a perturbation that can tell whether it takes images of the bank's shape.

    Raises: TestbedError: it does not.
    """
    check = getattr(pairing.setting.perturbation_fn_gpu, "check_shape", None)
    if check is None:
        return
    try:
        check(bank.shape)
    except TestbedError as error:
        raise type(error)(f"EvalSetting '{pairing.setting.name}': {error}") from error


@dataclass(frozen=True, kw_only=True)
class Located:
    """A setting whose data are there: at its noise level, with its samples, and what it is in the store.

    Where every run splits the data anew, `indices` and `fit_indices` are those of one run, and no part of `version`.
    """

    setting: EvalSetting
    samples: Samples
    indices: IntArray
    version: SettingVersion
    fit_indices: NDArray[np.int64] | None = None

    @property
    def dataset_version(self) -> DatasetVersion:
        """What its data set is in the store."""
        return DatasetVersion(
            name=self.samples.dataset,
            split=self.samples.split,
            fingerprint=self.samples.fingerprint,
            targets=self.samples.targets,
            sample_ids=self.samples.sample_ids,
            class_names=self.samples.class_names,
            label_sets=self.samples.label_sets,
        )


def located(setting: EvalSetting, data: Data, *, seed: int = 0) -> Located:
    """The setting with its data, in the run with this seed. Raises: DataError: as `prepare`."""
    separation = data.separation_facts(setting)
    setting = _at_noise_level(setting, separation)
    samples = data.setting_samples(setting)
    split = run_split(setting)
    indices = _sample_indices(setting, samples, data) if split is None else _of_run(setting, split, samples, seed)
    version = setting_version(
        setting,
        dataset_fingerprint=samples.fingerprint,
        sample_indices=None if split is not None or _is_whole(setting, samples, indices) else indices,
        run_split=split,
        separation=separation,
        canonical_size=data.dataset(setting.dataset).canonical_size,
        source=registry.setting_source(setting.name),
    )
    fit_indices = None if split is None else split.fit_indices(len(samples), seed=seed)
    return Located(setting=setting, samples=samples, indices=indices, version=version, fit_indices=fit_indices)


def _at_noise_level(setting: EvalSetting, separation: Mapping[str, Any] | None) -> EvalSetting:
    return setting if separation is None else setting.at_epsilon(separation["min_distance"] / 2)


def _sample_indices(setting: EvalSetting, samples: Samples, data: Data) -> IntArray:
    if setting.idx_subsample_list is None:
        indices: IntArray = np.arange(len(samples))
    else:
        indices = picked_positions(setting, samples)
        if len(indices) == 0 or indices.min() < 0 or indices.max() >= len(samples):
            raise DataError(
                f"EvalSetting '{setting.name}' picks samples by position, but its idx_subsample_list is empty or names "
                f"positions outside 0 to {len(samples) - 1}. Correct the list."
            )
        if repeated := len(indices) - len(np.unique(indices)):
            data.warn_once(f"'{setting.name}' repeats {repeated} sample(s) in its idx_subsample_list; each counts.")
        if callable(setting.idx_subsample_list):  # how many it picks depends on the data, which may be incomplete
            check_size(setting=setting.name, declared=setting.size, found=len(indices), where=f"'{samples.dataset}'")
    if setting.limit is None:
        return indices
    if setting.limit > len(indices):
        raise DataError(f"'{setting.name}' asks for {setting.limit} samples, but there are only {len(indices)}.")
    names = [samples.sample_ids[index] for index in indices]
    return indices[limited(names, setting.limit, dataset=samples.dataset)]


def _of_run(setting: EvalSetting, split: RunSplit, samples: Samples, seed: int) -> IntArray:
    """The samples that the run with this seed evaluates."""
    if setting.idx_subsample_list is not None:
        raise DataError(
            f"EvalSetting '{setting.name}' picks samples by position, but every run splits '{samples.dataset}' anew. "
            "Leave idx_subsample_list out, or use a data set without test_fraction."
        )
    if setting.limit is not None and setting.limit > (num_test := replace(split, limit=None).num_test(len(samples))):
        raise DataError(f"'{setting.name}' asks for {setting.limit} samples, but a run has only {num_test}.")
    return split.test_indices(len(samples), seed=seed)


def _task(pairing: Pairing, found: Located, data: Data) -> Task:
    setting, samples, indices = found.setting, found.samples, found.indices
    sets = None if samples.label_sets is None else padded_label_sets([samples.label_sets[index] for index in indices])
    positions = partial(targets_in_subset, sublist=setting.columns, num_classes=len(samples.class_names))
    targets, label_sets = positions(samples.targets[indices]), None if sets is None else positions(sets)
    labels = targets if label_sets is None else label_sets
    check_targets(setting, labels, len(samples.class_names), data.warn_once)
    return Task(
        setting=pairing.setting.name,
        dataset=samples.dataset,
        label_space=label_space(setting),
        bank=data.bank(pairing.setting, pairing.model),
        sample_indices=indices.astype(np.int64),
        targets=targets,
        label_sets=label_sets,
        num_classes=len(samples.class_names),
        epsilon=setting.shift.epsilon if setting.shift and pairing.setting.needs_separation else None,
        fit_indices=found.fit_indices,
    )


def _is_whole(setting: EvalSetting, samples: Samples, indices: IntArray) -> bool:
    return setting.idx_subsample_list is None and setting.limit is None and len(indices) == len(samples)


def _ready(pairing: Pairing, found: Located, task: int, numbers: Mapping[str, Any]) -> Ready:
    model = model_version(pairing.model)
    return Ready(
        pairing=pairing,
        setting=found.setting,
        task=task,
        model_version=model,
        setting_version=found.version,
        dataset_version=found.dataset_version,
        key=EvaluationKey(
            model_fingerprint=model.fingerprint,
            setting_fingerprint=found.version.fingerprint,
            fit_seed=pairing.fit_seed,
            noise_seed=pairing.noise_seed,
            numerics=numbers,
        ),
        num_samples=len(found.indices),
        shard_size=shard_size(pairing.model, len(found.indices), pairing.batch_size),
    )


def shard_size(model: Model, num_samples: int, batch_size: int) -> int:
    """Samples per unit: whole batches, about 128 samples for small data sets and 1,024 for large ones.

    A model that adapts to what it is shown gets all of them, since another worker would begin anew.
    """
    if model.adapts:
        return num_samples
    target = UNIT_SAMPLES if num_samples < SMALL_DATASET else LARGE_UNIT_SAMPLES
    return -(-target // batch_size) * batch_size


def check_disk_space(num_bytes: int, folder: Path) -> None:
    """Raises: StoreError: the logits of the plan do not fit beside the database."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if num_bytes > free:
        raise StoreError(
            f"The plan stores {size_words(num_bytes)} of logits but {folder} has {size_words(free)} free. "
            "Free some space, choose another place with --db-url or --logdir, or ask for less with --store-logits, "
            "--limit or --draws."
        )
