"""Whether the data of a data set or a setting lie on disk as they should: what `db.py --check-data` tells."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting
from eval_settings.source_base import DataSource
from testbed.class_subset import names_in_subset, targets_in_subset
from testbed.data.class_order import label_space_names, some_of
from testbed.data.datasets import load_samples, picked_positions, published_difference
from testbed.data.decoding import is_image
from testbed.data.pipelines import samples_of
from testbed.errors import DataError, TestbedError
from testbed.fingerprint import file_sha256
from testbed.paths import data_root as default_root
from testbed.records import ClassSublist, IntArray, Samples


@dataclass(frozen=True, kw_only=True)
class DataCheck:
    """What was found of one split of a data set, or of what a setting takes.

    Args:
        what: the data set and its split, or the setting.
        place: where it lies; None where nothing was found, or nothing lies anywhere.
        num_samples: how many were found; None where they could not be loaded.
        num_classes: of how many classes there is one.
        content: the beginning of a fingerprint of all content: equal where two copies are.
        faults: what is wrong, a sentence each.
        notes: what a person should know though it need not be wrong, a sentence each.
        is_needed: whether settings evaluate it; a split that models are fitted on may be absent.
    """

    what: str
    place: Path | None
    num_samples: int | None = None
    num_classes: int | None = None
    content: str | None = None
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_needed: bool = True

    @property
    def is_wrong(self) -> bool:
        """Whether something that is evaluated is not as it should be."""
        return bool(self.faults) and self.is_needed


def check_dataset(
    dataset: Dataset,
    *,
    evaluated: Collection[str] = (),
    columns: ClassSublist | None = None,
    data_root: Path | None = None,
) -> Iterator[DataCheck]:
    """Looks at every split of a data set.

    Args:
        dataset: what is looked at.
        columns: the classes of its label space that it has samples of; None where that is not known.
        evaluated: splits that settings name, beside the data set's own `eval_split`.
        data_root: folder that holds data sets; TESTBED_DATA, or `data`, if None.
    """
    source, needed = dataset.source, {dataset.eval_split, *evaluated}
    for split in dataset.splits:
        what = f"{dataset.name} ({split})"
        try:
            samples = load_samples(dataset, split, data_root=data_root)
        except TestbedError as error:
            place = place_of(source, data_root)
            yield DataCheck(what=what, place=place, faults=(str(error),), is_needed=split in needed)
            continue
        expected = None if source is None else source.num_samples.get(split)
        classes = _class_faults(samples, source, expected)
        faults = [*_count_faults(samples, expected, columns), *classes, *_file_faults(samples)]
        faults += _checksum_faults(source, data_root)
        yield _check(what, samples, samples.targets, source, data_root, faults)


def check_setting(setting: EvalSetting, *, data_root: Path | None = None) -> DataCheck:
    """Looks at what a setting takes: the samples that it picks, and the classes that it looks at.

    Args: data_root: folder that holds data sets; TESTBED_DATA, or `data`, if None.
    """
    try:
        dataset, samples = samples_of(setting, data_root)
        targets = samples.targets[_positions(setting, samples)]
    except TestbedError as error:
        return DataCheck(what=setting.name, place=None, faults=(str(error),))
    source = source_of(dataset, setting)
    expected = published_size(setting, dataset)
    known = label_space_names(dataset.label_space or "") or samples.class_names
    faults = [*_setting_faults(setting, samples, targets, expected, num_known=len(known)), *_file_faults(samples)]
    if setting.idx_subsample_list is None:
        faults += _class_faults(samples, dataset.source, expected)
    return _check(setting.name, samples, targets, source, data_root, faults)


def _positions(setting: EvalSetting, samples: Samples) -> IntArray:
    """Of the samples that a setting picks. Raises: DataError: one is not there."""
    if setting.idx_subsample_list is None:
        return np.arange(len(samples))
    positions = picked_positions(setting, samples)
    if positions.max(initial=0) >= len(samples):
        raise DataError(f"it picks position {positions.max()}, but there are only {len(samples):,} samples")
    return positions


def source_of(dataset: Dataset, setting: EvalSetting) -> DataSource | None:
    """Where people get what a setting takes: the data set, or published copies of it."""
    copies = dataset.copies.get(setting.dataset.copies) if setting.dataset.corrupted else None
    return dataset.source if copies is None else copies.origin


def published_size(setting: EvalSetting, dataset: Dataset) -> int | None:
    """How many samples a setting takes, as it or the data's authors say; None where neither does."""
    if setting.size is not None or setting.idx_subsample_list is not None or dataset.source is None:
        return setting.size
    return dataset.source.num_samples.get(setting.dataset.split or dataset.eval_split)


def place_of(source: DataSource | None, data_root: Path | None) -> Path | None:
    """The first place of a source that exists, absolute; one that is shown by what is in it, if that is there."""
    if source is None:
        return None
    root = (data_root or default_root()).absolute()
    return next((root / place for place in source.places if (root / place / source.shown_by).exists()), None)


def _check(
    what: str, samples: Samples, targets: IntArray, source: DataSource | None, data_root: Path | None, faults: list[str]
) -> DataCheck:
    return DataCheck(
        what=what,
        place=_common_folder(samples) or place_of(source, data_root),
        num_samples=len(targets),
        num_classes=len(np.unique(targets)),
        content=samples.fingerprint[:12],
        faults=tuple(faults),
        notes=samples.notes,
    )


def _common_folder(samples: Samples) -> Path | None:
    """The folder that the files of samples lie in or below; None where samples are no files."""
    parents = {path.parent for path in _files(samples)}
    return Path(os.path.commonpath(parents)) if parents else None


def _count_faults(samples: Samples, expected: int | None, columns: ClassSublist | None) -> Iterator[str]:
    targets = samples.targets
    if expected in (None, len(targets)):
        return
    names = names_in_subset(samples.class_names, columns)
    absent = _absent(targets_in_subset(targets, columns, num_classes=len(samples.class_names)), len(names))
    is_telling = len(absent) < len(names) / 2  # many sets have some of the label space's classes only
    yield _wrong_count(targets, expected, [names[index] for index in absent] if is_telling else [])


def _class_faults(samples: Samples, source: DataSource | None, expected: int | None) -> Iterator[str]:
    """Classes that are others than those that the data set is published with, even where their number is right.

    Where there are too few samples, their count names the classes that there are none of.
    """
    difference = None if source is None else published_difference(samples, source)
    if difference is not None and (difference.too_many or expected in (None, len(samples))):
        yield f"its classes are not those that it is published with: {difference}"


def _setting_faults(
    setting: EvalSetting, samples: Samples, targets: IntArray, expected: int | None, *, num_known: int
) -> Iterator[str]:
    """What is wrong with the samples that a setting picks, whose classes these are.

    Classes behind the `num_known` of the label space are none that models have: they are wrong on purpose.
    """
    columns, names = setting.columns, samples.class_names
    positions = targets_in_subset(targets, columns, num_classes=len(names))
    names = names_in_subset(names, columns)
    if expected not in (None, len(targets)):
        yield _wrong_count(targets, expected, [names[index] for index in _absent(positions, len(names))])
    if outside := np.count_nonzero((positions < 0) & (targets < num_known)):
        yield f"{outside:,} samples are of none of the {len(names)} classes that it tells apart"


def _wrong_count(targets: IntArray, expected: int | None, absent: Sequence[str]) -> str:
    none_of = f"; there is none of {some_of(absent)}" if absent else ""
    return f"{len(targets):,} samples of {len(np.unique(targets)):,} classes, but there should be {expected:,}{none_of}"


def _absent(targets: IntArray, num_classes: int) -> list[int]:
    return sorted({*range(num_classes)} - {*np.unique(targets).tolist()})


def _file_faults(samples: Samples) -> Iterator[str]:
    """Files that are no images, by how they begin; one that begins well may still be damaged further on."""
    files = _files(samples)
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        are_images = list(pool.map(is_image, files))
    if others := [str(path) for path, is_good in zip(files, are_images, strict=True) if not is_good]:
        yield f"no images, by how they begin: {some_of(others)}"


def _files(samples: Samples) -> list[Path]:
    """The files of samples that are one each; what lies several in a file would have to be decoded to be looked at."""
    is_listed = isinstance(samples.items, (list, tuple))
    return [item for item in samples.items if isinstance(item, Path)] if is_listed else []


def _checksum_faults(source: DataSource | None, data_root: Path | None) -> Iterator[str]:
    """Files whose SHA-256 is known and another one; those that are not there are told of by the loader."""
    if source is None:
        return
    root = (data_root or default_root()).absolute()
    for name, sha256 in source.sha256.items():
        file = next((root / place / name for place in source.places if (root / place / name).is_file()), None)
        if file is not None and file_sha256(file) != sha256:
            yield f"{file} is damaged or another file: its SHA-256 is not {sha256}"
