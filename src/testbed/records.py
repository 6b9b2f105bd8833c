"""Frozen values that cross borders between modules, processes and the store: plain data, checked when built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from testbed.errors import DataError, DefinitionError

Norm = Literal["linf", "l2", "l1"]
NORMS: tuple[Norm, ...] = ("linf", "l2", "l1")
ShiftNorm = Literal["linf", "l2", "l1", "l0"]  # l0 counts values that differ: noise has it, a separation does not

ADVERSARIAL = "adversarial-"  # begins the families of shifts that are attacks on the model; the norm follows

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]
# Columns of logits that are a setting's classes, in their order; several columns in a tuple are one class.
ClassSublist = tuple[int | tuple[int, ...], ...]
LabelSets = tuple[tuple[int, ...], ...]  # for each sample all classes that count as right


@dataclass(frozen=True, kw_only=True)
class Shift:
    """How a setting departs from its clean parent; metrics and figures join on it, nobody parses names.

    Args:
        family: kind of shift, e.g. 'uniform-linf' or 'common-corruption'.
        name: the shift within its family, e.g. 'mscr', 'noise', 'fog'.
        severity: 1 to 5 where the family has severities.
        norm: 'linf', 'l2', 'l1' or 'l0' where the shift is measured in a norm.
        epsilon: radius in [0, 1] pixel units, for 'l0' the fraction of the values; without a norm the size of the
            noise, such as sigma. None until a separation decides it, or where there is none.
        clean_eval_setting: name of the clean parent.
    """

    family: str
    name: str
    clean_eval_setting: str
    severity: int | None = None
    norm: ShiftNorm | None = None
    epsilon: float | None = None

    def __post_init__(self) -> None:
        if self.severity is not None and self.severity not in range(1, 6):
            raise DefinitionError(f"Shift '{self.name}' has severity {self.severity}. Severities go from 1 to 5.")
        norms = get_args(ShiftNorm)
        if self.norm is not None and self.norm not in norms:
            raise DefinitionError(f"Shift '{self.name}' has norm '{self.norm}'. Use one of {', '.join(norms)}.")
        if self.norm == "l0" and self.epsilon is None:
            raise DefinitionError(f"Shift '{self.name}' in l0 has no epsilon, and no separation gives it one. Set it.")
        if self.epsilon is not None and not 0 <= self.epsilon < float("inf"):
            raise DefinitionError(f"Shift '{self.name}' has epsilon {self.epsilon}. It must be 0 or a positive number.")

    @property
    def is_attack(self) -> bool:
        """Whether the shift is made for the model, against it."""
        return self.family.startswith(ADVERSARIAL)


@dataclass(frozen=True, kw_only=True)
class Samples:
    """One split of a data set as it lies on disk or in memory, before any transform.

    Args:
        dataset: name of the data set.
        split: name of the split, e.g. 'test'.
        items: an array of samples [n, H, W], [n, H, W, C] (uint8, or float in [0, 1]) or [n, D] (float, any range);
            or for each sample an image file, or the pixels uint8 [H, W, 3] of an image that is decoded when asked for.
        targets: [n] int32 class indices into `class_names`; -1 for all, or None, where the samples have no labels.
        sample_ids: n distinct names: a path relative to the data set's root, or `test/17`.
        class_names: names of the classes in the order of the model's outputs.
        fingerprint: of the pixels, or of the manifest of files, with targets and class names.
        color_mode: 'L' (one channel) or 'RGB' for images; None for rows of numbers.
        label_sets: for each sample all classes that count as right, its target the first; None where only that does.
        notes: what a person should know of how it was found, a sentence each.
    """

    dataset: str
    split: str
    items: NDArray[Any] | Sequence[Path] | Sequence[NDArray[np.uint8]]
    targets: IntArray
    sample_ids: tuple[str, ...]
    class_names: tuple[str, ...]
    fingerprint: str
    color_mode: Literal["L", "RGB"] | None = "RGB"
    label_sets: LabelSets | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given: IntArray | None = self.targets
        targets = np.full(len(self.items), -1, np.int32) if given is None else self._whole_numbers(given)
        object.__setattr__(self, "targets", targets)
        counts = {len(self.items), len(self.targets), len(self.sample_ids)}
        if len(counts) != 1:
            raise DataError(
                f"Data set '{self.dataset}' ({self.split}) has {len(self.items)} samples, {len(self.targets)} targets "
                f"and {len(self.sample_ids)} sample ids. The three must be equal."
            )
        is_labelled = bool(np.any(np.asarray(self.targets) != -1))
        if is_labelled and not 0 <= int(self.targets.min()) <= int(self.targets.max()) < len(self.class_names):
            raise DataError(
                f"Data set '{self.dataset}' ({self.split}) has targets from {self.targets.min()} to "
                f"{self.targets.max()} but {len(self.class_names)} classes. Targets count from 0."
            )
        if self.label_sets is not None:
            self._check_label_sets(self.label_sets)

    def _whole_numbers(self, targets: Any) -> IntArray:
        try:
            found: NDArray[Any] | None = np.asarray(targets)
        except ValueError:  # rows of several lengths
            found = None
        is_number = found is not None and found.ndim == 1 and found.dtype.kind in "iubf"
        if found is None or not is_number or (found.dtype.kind == "f" and (found % 1).any()):
            raise DataError(
                f"Data set '{self.dataset}' ({self.split}) has the targets {targets!r:.60}. Give each sample the index "
                "of its class; several right ones are its label set; None says that there are no labels."
            )
        return found

    def _check_label_sets(self, label_sets: LabelSets) -> None:
        where = f"Data set '{self.dataset}' ({self.split})"
        if len(label_sets) != len(self):
            raise DataError(f"{where} has {len(self)} samples but {len(label_sets)} label sets. Give one per sample.")
        classes = set(range(len(self.class_names)))
        for sample, target, labels in zip(self.sample_ids, self.targets, label_sets, strict=True):
            if not labels or labels[0] != target or len(classes.intersection(labels)) < len(labels):
                raise DataError(
                    f"{where}: '{sample}' has the target {target} and the label set {list(labels)}. The set must name "
                    f"the target first, and no class twice or beyond the {len(classes)} that there are, counted from 0."
                )

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, indices: NDArray[np.int64]) -> Samples:
        """The samples at these positions of an array, in this order, under the fingerprint of the whole."""
        return replace(
            self,
            items=np.asarray(self.items)[indices],
            targets=self.targets[indices],
            sample_ids=tuple(self.sample_ids[index] for index in indices),
            label_sets=self.label_sets and tuple(self.label_sets[index] for index in indices),
        )


@dataclass(frozen=True, kw_only=True)
class Separation:
    """The smallest distance between two points of different class, and the pair that attains it.

    Args:
        norm: 'linf', 'l2' or 'l1'.
        min_distance: in [0, 1] pixel units (units of the data for rows of numbers).
        pair: positions of the two points in the searched points, smaller first; the first such pair.
        num_points: how many points were searched.
    """

    norm: Norm
    min_distance: float
    pair: tuple[int, int]
    num_points: int

    @property
    def epsilon_min(self) -> float:
        """Half the minimal class separation (Siedel et al. 2022, eq. 1)."""
        return self.min_distance / 2


@dataclass(frozen=True, kw_only=True)
class MetricValue:
    """A number with its sample count and 95 % interval; percent unless the metric says otherwise.

    `value` is None where the metric is undefined, and `reason` then says why.
    """

    name: str
    value: float | None
    n: int
    ci_low: float | None = None
    ci_high: float | None = None
    method: str = ""
    reason: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PublishedResult:
    """A number that somebody else published: it has no logits and no interval, and is never mixed with our own.

    Args:
        source: name it was imported under.
        source_sha256: of the file it was read from.
        model, eval_setting, metric: as the source calls them.
        protocol: how the source evaluated; numbers of two protocols are not compared in silence.
        value: percent; None for a cell that the source leaves empty.
        input_size: side of the model's images in pixels, where the source tells.
        flag: what is known to be wrong with it; else empty.
    """

    source: str
    source_sha256: str
    model: str
    eval_setting: str
    metric: str
    protocol: str
    value: float | None
    input_size: int | None = None
    flag: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelVersion:
    """A model as the store knows it: a name, and the fingerprint that identifies what stands behind it."""

    name: str
    label_space: str
    fingerprint: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class DatasetVersion:
    """A data set's targets, label sets (see `Samples`) and sample ids, stored once however many settings use it."""

    name: str
    split: str
    fingerprint: str
    targets: IntArray
    sample_ids: tuple[str, ...]
    class_names: tuple[str, ...]
    label_sets: LabelSets | None = None


@dataclass(frozen=True, kw_only=True)
class SettingVersion:
    """An evaluation setting as the store knows it: its definition, its shift, and the samples it uses."""

    name: str
    fingerprint: str
    dataset_fingerprint: str
    spec: Mapping[str, Any]
    shift: Shift | None = None
    sample_indices: IntArray | None = None  # positions in the data set, where the setting takes a subset
    class_sublist: ClassSublist | None = None


@dataclass(frozen=True, kw_only=True)
class EvaluationKey:
    """What makes an evaluation the same evaluation: definitions, seeds and numerics, never a machine or a moment."""

    model_fingerprint: str
    setting_fingerprint: str
    fit_seed: int
    noise_seed: int
    numerics: Mapping[str, Any]  # dtype, precision flags, device class, batch size, threads


@dataclass(frozen=True, kw_only=True)
class WantedEvaluation:
    """An evaluation that a run is to make.

    Args:
        num_draws: draws of the perturbation.
        num_samples: samples of the setting.
        shard_size: samples per shard.
    """

    key: EvaluationKey
    num_draws: int
    num_samples: int
    shard_size: int


@dataclass(frozen=True, kw_only=True)
class ShardRange:
    """A planned piece of an evaluation: samples `start` to `stop` of the setting, in one draw of the noise."""

    draw: int
    start: int
    stop: int


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A finished piece of an evaluation, its logits in their final encoding.

    Args:
        where: the piece of the evaluation this is.
        predictions: [count] int32, class with the largest logit over the setting's classes; -1 for a non-finite row.
        target_ranks: [count] int32, classes with a larger logit plus equal ones of lower index; the number of classes
            for a non-finite row.
        payload: encoded logits, see `testbed.codec`.
        codec: name of the encoding.
        num_outputs: width of the logits.
        sha256: hex digest of `payload`.
        num_nonfinite: rows with a NaN or infinite logit.
        batch_size: largest batch that was used.
        seconds: time in the classifier.
        worker: name of the worker, for provenance.
    """

    where: ShardRange
    predictions: IntArray
    target_ranks: IntArray
    payload: bytes
    codec: str
    num_outputs: int
    sha256: str
    num_nonfinite: int
    batch_size: int
    seconds: float
    worker: str
