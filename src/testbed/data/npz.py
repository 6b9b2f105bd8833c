"""Data sets in one .npz file: `x` and `y`, or `x_train`, `y_train`, `x_test`, ...

`x` is described in `testbed.data.arrays`. `y` holds one label per sample. Integers from 0 on are class indices as they
stand, up to the largest one of all splits; an array `class_names` names the classes, and may name more. Any other
labels (integers that start elsewhere, text) are names: the sorted distinct ones of all splits are the classes, unless
`class_names` or a class order says otherwise, or they are those of a known label space (`testbed.data.class_order`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.data.array_files import opened_arrays
from testbed.data.arrays import array_samples
from testbed.data.class_order import ClassMap, ClassOrder, class_map, numbered_names
from testbed.errors import DataError
from testbed.records import Samples

_SUFFIXES = {"train": "train", "validation": "validation", "val": "validation", "test": "test"}
_ARRANGEMENT = "Save with numpy.savez(path, x=..., y=...), or x_train, y_train, x_test, y_test"


def npz_splits(path: Path) -> dict[str, str]:
    """Split -> what its arrays' names end in: '' for plain `x` and `y` (the split 'test'), '_train' for `x_train`.

    Raises: DataError: the file cannot be read, or has no such arrays.
    """
    with opened_arrays(path, remedy=f"{_ARRANGEMENT}.") as archive:
        keys = set(archive.names)
    splits = {split: f"_{suffix}" for suffix, split in _SUFFIXES.items() if f"x_{suffix}" in keys}
    if "x" in keys and splits:
        raise DataError(f"{path} has both x and x{next(iter(splits.values()))}. {_ARRANGEMENT}, not both.")
    splits = splits or {"test": ""}
    if missing := [f"{axis}{end}" for end in splits.values() for axis in "xy" if f"{axis}{end}" not in keys]:
        raise DataError(
            f"{path} lacks {', '.join(missing)}; it has {', '.join(sorted(keys)) or 'nothing'}. {_ARRANGEMENT}."
        )
    return splits


def npz_holds_rows(path: Path) -> bool:
    """Whether the samples are rows of numbers [n, D] and not images; no sample is read.

    Raises: DataError: as `npz_splits`.
    """
    name = f"x{next(iter(npz_splits(path).values()))}"
    with opened_arrays(path, remedy=f"{_ARRANGEMENT}.") as archive, archive.values(name) as (header, _):
        return len(header.shape) == 2


def npz_class_map(path: Path, *, order: ClassOrder | None, label_space: str | None) -> ClassMap:
    """The classes of all splits together, by the text of their labels.

    Raises: DataError: labels that are neither integers nor text, or do not fit the class order.
    """
    ends = npz_splits(path).values()
    arrays = _read(path, tuple(f"y{end}" for end in ends), optional=("class_names",))
    labels = np.concatenate([_checked_labels(arrays[f"y{end}"], path) for end in ends])
    is_integer = labels.dtype.kind == "i"
    named = _names(arrays["class_names"], path) if "class_names" in arrays else None
    if is_integer and order is None and labels.size and labels.min() == 0:
        return _index_map(int(labels.max()) + 1, named, label_space, path)
    order = order or named or ("numeric" if is_integer and label_space is None else None)
    return class_map(map(str, np.unique(labels).tolist()), order=order, label_space=label_space, where=str(path))


def npz_samples(path: Path, split: str, *, dataset: str, order: ClassOrder | None, label_space: str | None) -> Samples:
    """One split of an .npz file.

    Raises: DataError: no such split, or arrays that are not what this file's docstring says.
    """
    splits = npz_splits(path)
    if split not in splits:
        raise DataError(f"{path} has no split '{split}'. Its splits: {', '.join(splits)}.")
    end = splits[split]
    arrays = _read(path, (f"x{end}", f"y{end}"))
    x, labels = arrays[f"x{end}"], _checked_labels(arrays[f"y{end}"], path)
    if len(x) != len(labels):
        raise DataError(f"{path} has {len(x)} samples in x{end} but {len(labels)} labels in y{end}. Save equally many.")
    classes = npz_class_map(path, order=order, label_space=label_space)
    values, positions = np.unique(labels, return_inverse=True)
    targets = np.array([classes.indices[str(value)] for value in values.tolist()], dtype=np.int32)[positions]
    return array_samples(x, targets, dataset=dataset, split=split, class_names=classes.class_names)


def _index_map(num_classes: int, named: tuple[str, ...] | None, label_space: str | None, path: Path) -> ClassMap:
    """Integers as they stand. Their label space is told by `class_names` alone: numbers could be anybody's classes."""
    names = named or numbered_names(num_classes, where=str(path))
    if len(names) < num_classes:
        raise DataError(f"{path} has labels up to {num_classes - 1} but {len(names)} class_names. Name every class.")
    if named and label_space is None:
        label_space = class_map(named, order=named, label_space=None, where=str(path)).label_space
    indices = {str(index): index for index in range(num_classes)}
    return ClassMap(class_names=names, indices=indices, label_space=label_space)


def _checked_labels(labels: NDArray[Any], path: Path) -> NDArray[Any]:
    """Labels [n] as int64 or text."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or labels.dtype.kind not in "iuU":
        raise DataError(
            f"{path} has labels of type {labels.dtype} and shape {labels.shape}. Give [n] integers, or text of a fixed "
            "type such as '<U20'."
        )
    return labels.astype(np.int64) if labels.dtype.kind == "u" else labels


def _names(names: NDArray[Any], path: Path) -> tuple[str, ...]:
    if names.ndim != 1 or names.dtype.kind not in "iuU":
        raise DataError(f"{path} has class_names of type {names.dtype} and shape {names.shape}. Give [n] texts.")
    return tuple(map(str, names.tolist()))


def _read(path: Path, names: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, NDArray[Any]]:
    """The named arrays, and those of `optional` that are there."""
    with opened_arrays(path, remedy=f"{_ARRANGEMENT}.") as archive:
        return {name: archive.array(name) for name in (*names, *optional) if name in archive.names}
