"""The separation of a data set: which samples are searched, from the store, or found and stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eval_settings.dataset_base import Dataset
from testbed.errors import DataError
from testbed.fingerprint import fingerprint
from testbed.progress import SearchProgress
from testbed.records import IntArray, Norm, Samples
from testbed.separation import SeparationReport, separation_report
from testbed.store.store import Store
from testbed.store.views import StoredSeparation

MOST_SAMPLES = 200_000  # of all splits together: each is compared with each
GREY_LEVEL = 1 / 255
WITHOUT_CONFLICTING = "without conflicting"


class Source(Protocol):
    """Where samples come from and separations are kept: the data of a plan."""

    store: Store
    is_kept: bool
    is_quiet: bool

    def samples(self, dataset: Dataset, split: str) -> Samples: ...

    def points(self, dataset: Dataset, samples: Samples) -> NDArray[Any]: ...

    def warn_once(self, line: str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Searched:
    """The samples that a separation is searched over, together.

    Args:
        dataset: what they are of.
        splits: in the order in which samples are counted.
        parts: the samples of each split.
    """

    dataset: Dataset
    splits: tuple[str, ...]
    parts: tuple[Samples, ...]

    @cached_property
    def targets(self) -> IntArray:
        """(n,) class indices."""
        return np.concatenate([part.targets for part in self.parts])

    @cached_property
    def sample_ids(self) -> tuple[str, ...]:
        """The n names."""
        return tuple(name for part in self.parts for name in part.sample_ids)

    @cached_property
    def classes(self) -> dict[str, str]:
        """Name of the class by sample id."""
        names = self.parts[0].class_names
        return {name: names[target] for name, target in zip(self.sample_ids, self.targets, strict=True)}

    @property
    def is_pixels(self) -> bool:
        """Whether distances are those of 8-bit images."""
        return not any(isinstance(part.items, np.ndarray) and part.items.dtype != np.uint8 for part in self.parts)

    @property
    def space(self) -> str:
        """What distances are measured in."""
        if not self.is_pixels:
            return "units of the data"
        return f"{self.dataset.canonical_size} px" if self.dataset.canonical_size else "as stored"

    def key(self, norm: Norm, *, exclude_conflicting: bool) -> dict[str, Any]:
        """Under what the store keeps the separation, as keyword arguments."""
        return {
            "dataset": self.dataset.name,
            "splits": self.splits,
            "data_fingerprint": fingerprint([part.fingerprint for part in self.parts]),
            "norm": norm,
            "space": f"{self.space}, {WITHOUT_CONFLICTING}" if exclude_conflicting else self.space,
        }


def searched_samples(data: Source, dataset: Dataset, splits: tuple[str, ...] = ()) -> Searched:
    """The samples of the named splits, in the data set's order of splits.

    Without names: of the data set's own `separation_splits`, else of all, or where these have more than MOST_SAMPLES
    samples of the split that is evaluated.

    Raises: DataError: no such split, or all samples are of one class.
    """
    named = splits or dataset.separation_splits or _usual_splits(data, dataset)
    parts = {split: data.samples(dataset, split) for split in named}
    order = [split for split in dict.fromkeys((*(dataset.separation_splits or ()), *dataset.splits)) if split in parts]
    searched = Searched(dataset=dataset, splits=tuple(order), parts=tuple(parts[split] for split in order))
    if len(classes := np.unique(searched.targets)) < 2:
        name = searched.parts[0].class_names[int(classes[0])]
        raise DataError(
            f"Data set '{dataset.name}' ({' + '.join(order)}) has samples of one class only, '{name}'. A separation "
            "needs two classes: search other splits, or check the labels."
        )
    return searched


def _usual_splits(data: Source, dataset: Dataset) -> tuple[str, ...]:
    total = sum(len(data.samples(dataset, split)) for split in dataset.splits)
    if total <= MOST_SAMPLES or len(dataset.splits) == 1:
        return dataset.splits
    data.warn_once(
        f"'{dataset.name}' has {total:,} samples in {' + '.join(dataset.splits)}, too many to compare each with each: "
        f"its minimal class separation is that of '{dataset.eval_split}' alone."
    )
    return (dataset.eval_split,)


def find_separation(
    data: Source, searched: Searched, norm: Norm, *, exclude_conflicting: bool = False, with_detail: bool = False
) -> StoredSeparation:
    """The minimal class separation of samples, from the store, or found and stored with all that is behind it.

    Args:
        exclude_conflicting: leave out samples that are equal to one of another class.
        with_detail: search again where the store has the separation without its detail, as earlier versions kept it.
    Raises: DataError: the samples of two splits cannot be compared.
    """
    key = searched.key(norm, exclude_conflicting=exclude_conflicting)
    stored = data.store.get_separation(**key)
    if stored is not None and (stored.detail or not with_detail):
        return stored
    if data.is_kept:
        data.store.lock(f"a search for the separation of '{searched.dataset.name}'")
    what = f"the {norm} separation of {searched.dataset.name}, {len(searched.targets):,} samples"
    with SearchProgress(f"Searching {what}.", is_quiet=data.is_quiet) as progress:
        report = separation_report(
            _points(data, searched),
            searched.targets,
            norm=norm,
            splits=np.repeat(searched.splits, [len(part) for part in searched.parts]),
            exclude_conflicting=exclude_conflicting,
            progress=progress,
        )
    found = _as_stored(report, searched)
    if data.is_kept:
        data.store.put_separation(report.separation, **key, pair_ids=found.pair_ids, detail=found.detail)
    return found


def check_level(separation: StoredSeparation, searched: Searched, warn: Callable[[str], None]) -> None:
    """Warns of a noise level that changes little.

    Raises: DataError: the separation is 0, since equal samples bear different labels; a pair of them is named.
    """
    name, norm, (first, second) = searched.dataset.name, separation.norm, separation.pair_ids
    if separation.min_distance == 0:
        raise DataError(
            f"Data set '{name}' holds equal samples of different class ({first} and {second}), so its minimal class "
            "separation is 0 and no noise level follows from it. Remove or relabel them; python db.py --separation "
            f"{name} lists them. Or use {name}-mscr-{norm}-without-conflicting, at the level of the other samples, or "
            f"{name}-noise-{norm}-EPS, at a level of your own."
        )
    if line := low_level(separation, searched):
        warn(line)


def low_level(separation: StoredSeparation, searched: Searched) -> str:
    """What is to be said of a noise level below one grey level; empty where it is not."""
    if not searched.is_pixels or separation.norm != "linf" or not 0 < separation.epsilon_min < GREY_LEVEL:
        return ""
    first, second = separation.pair_ids
    return (
        f"Half the minimal class separation of '{searched.dataset.name}' is {separation.epsilon_min:.5f}, less than "
        f"one grey level (1/255): {first} and {second} are nearly equal. Noise at this level changes little."
    )


def facts(separation: StoredSeparation, searched: Searched) -> Mapping[str, Any]:
    """The separation that a setting's noise level is half of, as its definition keeps it."""
    excluded = separation.detail.get("num_excluded", 0)
    return {
        "splits": list(searched.splits),
        "num_points": separation.num_points,
        "min_distance": separation.min_distance,
        "pair": list(separation.pair),
        **({"num_excluded": excluded} if excluded else {}),
    }


def _points(data: Source, searched: Searched) -> NDArray[Any]:
    """(n, ...) the samples in the canonical space. Raises: DataError: those of two splits differ in kind or shape."""
    points = [data.points(searched.dataset, part) for part in searched.parts]
    kinds = {
        split: f"{'8-bit' if each.dtype == np.uint8 else 'floating-point'} samples of shape {each.shape[1:]}"
        for split, each in zip(searched.splits, points, strict=True)
    }
    if len(set(kinds.values())) > 1:
        told = ", ".join(f"'{split}' has {kind}" for split, kind in kinds.items())
        raise DataError(
            f"The splits of data set '{searched.dataset.name}' cannot be compared: {told}. Bring images to one size "
            "with canonical_size (--canonical-size PX), or search each split alone."
        )
    return np.concatenate(points)


def _as_stored(report: SeparationReport, searched: Searched) -> StoredSeparation:
    separation = report.separation
    first, second = separation.pair
    return StoredSeparation(
        norm=separation.norm,
        min_distance=separation.min_distance,
        pair=separation.pair,
        num_points=separation.num_points,
        pair_ids=(searched.sample_ids[first], searched.sample_ids[second]),
        detail=report.detail(searched.sample_ids),
    )
