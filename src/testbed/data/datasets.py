"""Data sets by name or path: where they lie, which splits and classes they have, and their samples."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eval_settings.dataset_base import Dataset
from eval_settings.source_base import DataSource
from testbed import paths
from testbed.data.arrays import array_samples
from testbed.data.class_order import (
    ClassDifference,
    ClassMap,
    ClassOrder,
    class_difference,
    class_map,
    label_space_names,
    nearly_known,
    numbered_names,
    some_of,
)
from testbed.data.decoding import ColorMode
from testbed.data.imagefolder import folder_layout, folder_samples
from testbed.data.npz import npz_class_map, npz_holds_rows, npz_samples, npz_splits
from testbed.errors import DataError, DefinitionError, suggestion
from testbed.records import Samples
from testbed.signatures import argument_names
from testbed.users_code import asked

if TYPE_CHECKING:
    from eval_settings.eval_setting_base import EvalSetting, StandardDataset

_REMEDY = f"Put it there, or give the folder that holds data sets with --data-root or {paths.DATA_VARIABLE}."
_SPLIT_ORDER = ("train", "validation", "test")


def resolve_dataset(
    standard: StandardDataset, registered: Mapping[str, Dataset], data_root: Path | None = None
) -> Dataset:
    """The data set that a setting names; one that lies on disk is completed with its splits and label space.

    A name is that of a registered data set, else of `NAME` or `NAME.npz` under the data root.

    Args:
        standard: as written in the setting.
        registered: data sets by name.
        data_root: folder that holds data sets; TESTBED_DATA, or `data`, if None.
    Raises: DataError: nothing is there; the message says where it was looked for.
    """
    root = (data_root or paths.data_root()).absolute()
    if standard.path is not None:
        path = Path(os.path.normpath(root / Path(standard.path).expanduser()))
        return _completed(Dataset(name=_name_of(path, root), path=path), root)
    name = str(standard.name)
    if (dataset := registered.get(name)) is not None:
        return dataset if dataset.path is None else _completed(dataset, root)
    for path in (root / name, root / f"{name}.npz"):
        if path.exists():
            return _completed(Dataset(name=name, path=path), root)
    raise DataError(
        f"Data set '{name}' is not registered, and neither {root / name} nor {root / name}.npz exists. "
        + " ".join(filter(None, (suggestion(name, registered), _REMEDY)))
    )


def user_dataset(
    name: str,
    path: str | Path,
    *,
    canonical_size: int | None = None,
    color_mode: ColorMode = "RGB",
    class_order: ClassOrder | None = None,
    label_space: str | None = None,
) -> Dataset:
    """The data set of `--dataset NAME=PATH`, complete with its splits and label space.

    Args:
        name: what users type.
        path: a folder or an .npz file, relative to the current folder.
        canonical_size, color_mode, class_order, label_space: see `Dataset`.
    Raises: DataError: nothing usable is there.
    """
    absolute = Path(path).expanduser().resolve()
    if not absolute.exists():
        raise DataError(f"Data set '{name}': {absolute} does not exist. Check the path.")
    dataset = Dataset(
        name=name,
        path=absolute,
        canonical_size=canonical_size,
        color_mode=color_mode,
        class_order=class_order,
        label_space=label_space,
    )
    return _completed(dataset, absolute.parent)


def load_samples(dataset: Dataset, split: str, *, data_root: Path | None = None) -> Samples:
    """The samples of one split; files are listed and hashed, no image is decoded.

    Raises: DataError: no such split, nothing in it, or data that is missing or not as it should be.
    """
    if split not in dataset.splits:
        raise DataError(f"Data set '{dataset.name}' has no split '{split}'. Its splits: {', '.join(dataset.splits)}.")
    samples = _samples(dataset, split, data_root or paths.data_root())
    if not len(samples):
        raise DataError(f"Data set '{dataset.name}' ({split}) has no samples. Check what was extracted or saved.")
    return samples


def picked_positions(setting: EvalSetting, samples: Samples) -> NDArray[np.int64]:
    """The positions in a split that a setting's idx_subsample_list names. Raises: DataError: its function failed."""
    picked: Any = setting.idx_subsample_list
    if callable(picked):
        picked = asked(partial(picked, samples), what=f"The idx_subsample_list of '{setting.name}'")
    return np.asarray(picked, np.int64)


def no_fit_split(model: str, dataset: str) -> str:
    """What is wrong where a model is fitted in the run and the data set has no split for that."""
    return (
        f"Model '{model}' is fitted on a training split, and data set '{dataset}' has none. Give it one (x_train and "
        'y_train in an .npz, a folder train, or registry.add_dataset(..., splits=("train", "test"), fit_split="train") '
        "for a loader), or use a model that is trained already."
    )


def check_size(
    *, setting: str, declared: int | None, found: int, where: str, definition: str = "its definition"
) -> None:
    """Raises a DataError if a setting declares another number of samples than `where` has."""
    if declared is not None and declared != found:
        raise DataError(
            f"EvalSetting '{setting}' expects {declared} images but found {found} under {where}. Check the extraction, "
            f"or set size={found} in {definition}."
        )


def published_difference(samples: Samples, source: DataSource | None) -> ClassDifference | None:
    """How the classes of samples differ from those that the data set is published with; None where they do not.

    Args: source: of the data set; one that does not say which classes it has tells nothing.
    """
    if source is None or source.classes is None or (samples.targets < 0).any():  # whose classes are not known
        return None
    names = samples.class_names
    found = {names[index] for index in np.unique(samples.targets)}
    return class_difference(found, [names[index] for index in source.classes])


def _samples(dataset: Dataset, split: str, root: Path) -> Samples:
    if dataset.loader is not None:
        extras = {"data_root": root} if "data_root" in argument_names(dataset.loader) else {}
        what = f"data set '{dataset.name}' ({split})"
        return _loaded(dataset, split, asked(partial(dataset.loader, split, **extras), what=f"The loader of {what}"))
    path = _path(dataset, root)
    if path.is_dir():
        samples = folder_samples(
            folder_layout(path),
            split,
            dataset=dataset.name,
            order=dataset.class_order,
            label_space=dataset.label_space,
            color_mode=dataset.color_mode,
        )
        return replace(samples, notes=(*samples.notes, *_class_notes(dataset, samples)))
    return npz_samples(path, split, dataset=dataset.name, order=dataset.class_order, label_space=dataset.label_space)


def _class_notes(dataset: Dataset, samples: Samples) -> Iterator[str]:
    """Classes that few samples are wanting of, and names that are nearly those of known classes."""
    names = samples.class_names
    found = {names[index] for index in np.unique(samples.targets)}
    absent = [name for name in names if name not in found]
    if 0 < len(absent) < len(names) / 2:  # many sets have some of a label space's classes only
        yield f"{len(absent)} of {len(names)} classes have no samples: {some_of(absent)}."
    if dataset.label_space is None and dataset.class_order is None and (nearly := nearly_known(found)):
        yield f"{nearly}, and count in sorted order. Rename folders, or give their order with --class-order FILE."


def _loaded(dataset: Dataset, split: str, found: object) -> Samples:
    """What a loader returned, as samples."""
    if isinstance(found, Samples):
        return found
    if not isinstance(found, tuple) or len(found) not in (2, 3):
        raise DefinitionError(
            f"The loader of data set '{dataset.name}' returned {type(found).__name__}. It must return Samples, or "
            "arrays: (images, classes) or (images, classes, class_names)."
        )
    where = f"What the loader of data set '{dataset.name}' ({split}) returned"
    images, classes = _arrays(found[0], found[1], where)
    if classes.shape != images.shape[:1] or classes.dtype.kind not in "iu" or classes.min(initial=0) < 0:
        raise DataError(
            f"The loader of data set '{dataset.name}' ({split}) returned images of shape {images.shape} and classes of "
            f"type {classes.dtype} and shape {classes.shape}. Each image must have one whole number from 0 on."
        )
    names = _names(found[2], where) if len(found) == 3 else label_space_names(dataset.label_space or "")
    names = names or numbered_names(int(classes.max(initial=0)) + 1, where=where)
    return array_samples(images, classes, dataset=dataset.name, split=split, class_names=names)


def _arrays(images: Any, classes: Any, where: str) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        return np.asarray(images), np.asarray(classes)
    except ValueError as error:
        raise DataError(f"{where} is no array ({error}). Each image must have one shape, and one class.") from error


def _names(names: Any, where: str) -> tuple[str, ...]:
    if not isinstance(names, Iterable):
        raise DataError(f"{where} has {names!r} for the names of classes. Give a list of text.")
    return tuple(map(str, names))


def _completed(dataset: Dataset, root: Path) -> Dataset:
    """`dataset` with an absolute path, and with the splits, the label space and the domain that lie there."""
    path = _path(dataset, root)
    found, classes = _splits_and_classes(path, dataset)
    splits = tuple(split for split in _SPLIT_ORDER if split in found)
    eval_split = dataset.eval_split
    if eval_split == "test" and "test" not in splits and "validation" in splits:
        eval_split = "validation"
    if eval_split not in splits:
        raise DataError(
            f"Data set '{dataset.name}' is evaluated on its split '{eval_split}', but {path} has only "
            f"{', '.join(splits)}. Add that split, or name the folder of one split as the data set."
        )
    return replace(
        dataset,
        path=path.resolve(),
        splits=splits,
        eval_split=eval_split,
        fit_split=dataset.fit_split or ("train" if "train" in splits else None),
        label_space=classes.label_space,
        domain="numbers" if path.is_file() and npz_holds_rows(path) else dataset.domain,
    )


def _splits_and_classes(path: Path, dataset: Dataset) -> tuple[Collection[str], ClassMap]:
    order, label_space = dataset.class_order, dataset.label_space
    if path.is_dir():
        layout = folder_layout(path)
        return layout.splits, class_map(layout.class_folders, order=order, label_space=label_space, where=str(path))
    return npz_splits(path), npz_class_map(path, order=order, label_space=label_space)


def _path(dataset: Dataset, root: Path) -> Path:
    path = root.absolute() / (dataset.path or "")
    if not path.exists():
        raise DataError(f"Data set '{dataset.name}': {path} does not exist. {_REMEDY}")
    if not path.is_dir() and path.suffix.lower() != ".npz":
        raise DataError(f"Data set '{dataset.name}': {path} is neither a folder of images nor an .npz file. Give one.")
    return path


def _name_of(path: Path, root: Path) -> str:
    """A permitted name for a data set given by path, the same wherever the data root lies, for noise depends on it."""
    shown = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    permitted = re.sub(r"[^A-Za-z0-9._:@+/=-]+", "-", shown.removesuffix(".npz"))
    return permitted.lstrip("._:@+/=-") or "data"
