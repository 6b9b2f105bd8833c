"""Everything that can fail cheaply, before any model runs: a plan becomes tasks and evaluations that are ready."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from eval_settings.eval_setting_base import EvalSetting
from testbed.class_subset import targets_in_subset
from testbed.engine.data import Data, limited
from testbed.engine.identity import model_version, numerics, setting_version
from testbed.engine.plan import Pairing, label_space
from testbed.engine.unit import Task
from testbed.errors import DataError, StoreError
from testbed.records import (
    DatasetVersion,
    EvaluationKey,
    IntArray,
    ModelVersion,
    Samples,
    SettingVersion,
    ShardRange,
)
from testbed.store.views import planned_ranges

SMALL_DATASET = 10_000
UNIT_SAMPLES, LARGE_UNIT_SAMPLES = 128, 1_024
FLOAT_BYTES = 4


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
    def num_bytes(self) -> int:
        """Size of its logits, in full."""
        num_classes = len(self.dataset_version.class_names)
        return self.num_samples * self.pairing.num_draws * num_classes * FLOAT_BYTES


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """A plan made ready."""

    tasks: tuple[Task, ...]
    evaluations: tuple[Ready, ...]


def prepare(pairings: Sequence[Pairing], data: Data, *, device: str, threads: int, limit: int | None) -> Preparation:
    """Loads, checks, decodes and measures all that the plan needs of its data.

    Raises: DataError: a data set is missing, damaged or of another size than declared.
    """
    tasks: dict[tuple[str, str], Task] = {}
    evaluations = []
    for pairing in pairings:
        separation = data.separation_facts(pairing.setting)
        setting = _at_noise_level(pairing.setting, separation)
        samples = data.setting_samples(setting)
        indices = _sample_indices(setting, samples, limit, data)
        if limit is not None:
            setting = replace(setting, name=f"{setting.name}@limit{limit}")
        key = (setting.name, data.bank(pairing.setting, pairing.model).fingerprint)
        if key not in tasks:
            tasks[key] = _task(pairing, setting, samples, indices, data)
        position = list(tasks).index(key)
        version = setting_version(
            setting,
            dataset_fingerprint=samples.fingerprint,
            sample_indices=None if _is_whole(setting, samples, indices) else indices,
            separation=separation,
        )
        numbers = numerics(device=device, batch_size=pairing.batch_size, threads=threads)
        evaluations.append(_ready(pairing, setting, version, samples, len(indices), position, numbers))
    return Preparation(tasks=tuple(tasks.values()), evaluations=tuple(evaluations))


def _at_noise_level(setting: EvalSetting, separation: Mapping[str, Any] | None) -> EvalSetting:
    return setting if separation is None else setting.at_epsilon(separation["min_distance"] / 2)


def _sample_indices(setting: EvalSetting, samples: Samples, limit: int | None, data: Data) -> IntArray:
    if setting.idx_subsample_list is None:
        indices: IntArray = np.arange(len(samples))
    else:
        indices = np.asarray(setting.idx_subsample_list, dtype=np.int64)
        if len(indices) == 0 or indices.min() < 0 or indices.max() >= len(samples):
            raise DataError(
                f"EvalSetting '{setting.name}' picks samples by position, but its idx_subsample_list is empty or names "
                f"positions outside 0 to {len(samples) - 1}. Correct the list."
            )
        if repeated := len(indices) - len(np.unique(indices)):
            data.warn_once(f"'{setting.name}' repeats {repeated} sample(s) in its idx_subsample_list; each counts.")
    if limit is None:
        return indices
    if not 1 <= limit <= len(indices):
        raise DataError(f"--limit {limit} is not possible: '{setting.name}' has {len(indices)} samples.")
    return indices[limited(len(indices), limit, dataset=samples.dataset)]


def _task(pairing: Pairing, setting: EvalSetting, samples: Samples, indices: IntArray, data: Data) -> Task:
    return Task(
        setting=pairing.setting.name,
        dataset=samples.dataset,
        label_space=label_space(setting),
        bank=data.bank(pairing.setting, pairing.model),
        sample_indices=indices.astype(np.int64),
        targets=targets_in_subset(
            samples.targets[indices], setting.class_sublist, num_classes=len(samples.class_names)
        ),
        num_classes=len(samples.class_names),
        epsilon=setting.shift.epsilon if setting.shift and pairing.setting.needs_separation else None,
    )


def _is_whole(setting: EvalSetting, samples: Samples, indices: IntArray) -> bool:
    return setting.idx_subsample_list is None and len(indices) == len(samples)


def _ready(
    pairing: Pairing,
    setting: EvalSetting,
    version: SettingVersion,
    samples: Samples,
    num_samples: int,
    task: int,
    numbers: Mapping[str, Any],
) -> Ready:
    model = model_version(pairing.model)
    return Ready(
        pairing=pairing,
        setting=setting,
        task=task,
        model_version=model,
        setting_version=version,
        dataset_version=DatasetVersion(
            name=samples.dataset,
            split=samples.split,
            fingerprint=samples.fingerprint,
            targets=samples.targets,
            sample_ids=samples.sample_ids,
            class_names=samples.class_names,
        ),
        key=EvaluationKey(
            model_fingerprint=model.fingerprint,
            setting_fingerprint=version.fingerprint,
            fit_seed=pairing.fit_seed,
            noise_seed=pairing.noise_seed,
            numerics=numbers,
        ),
        num_samples=num_samples,
        shard_size=shard_size(num_samples, pairing.batch_size),
    )


def shard_size(num_samples: int, batch_size: int) -> int:
    """Samples per unit: whole batches, about 128 samples for small data sets and 1,024 for large ones."""
    target = UNIT_SAMPLES if num_samples < SMALL_DATASET else LARGE_UNIT_SAMPLES
    return -(-target // batch_size) * batch_size


def check_disk_space(num_bytes: int, folder: Path) -> None:
    """Raises: StoreError: the logits of the plan do not fit beside the database."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if num_bytes > free:
        raise StoreError(
            f"The plan stores {num_bytes / 1e9:.1f} GB of logits but {folder} has {free / 1e9:.1f} GB free. "
            "Free some space, choose another place with --db-url or --logdir, or ask for less with --limit or --draws."
        )


def total_bytes(evaluations: Iterable[Ready]) -> int:
    """Size of the logits of all evaluations."""
    return sum(ready.num_bytes for ready in evaluations)
