"""Settings that look at some of a data set's classes only: which targets and names count, and at which position.

A class of a setting is one column of the model's logits, or a group of columns: an animal whose breeds are classes of
the model, say. A group has the largest of its members' logits, or the sum of their votes where a model counts votes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testbed.errors import DefinitionError
from testbed.records import ClassSublist, IntArray

if TYPE_CHECKING:
    from torch import Tensor

NO_LABEL = -1  # fills rows of label sets, and stands for a class that a setting does not look at


def class_sublist(
    columns: Iterable[int | Iterable[int]] | None, *, where: str = "class_sublist"
) -> ClassSublist | None:
    """The columns as plain whole numbers, groups as tuples; a group of one column is that column.

    Args:
        columns: of the logits, as written in a setting; None for all.
        where: they were given, for messages.
    Raises: DefinitionError: nothing is listed, a group is empty, or something is no column.
    """
    if columns is None:
        return None
    found = tuple(_one_class(entry, where) for entry in columns)
    if not found:
        raise DefinitionError(f"{where} is empty. List the columns that count, or leave it out for all.")
    return found


def _one_class(entry: int | Iterable[int], where: str) -> int | tuple[int, ...]:
    members = tuple(entry) if isinstance(entry, Iterable) else (entry,)
    numbers = tuple(int(member) for member in members if isinstance(member, (int, np.integer)) and member >= 0)
    if not numbers or len(set(numbers)) < len(members):
        raise DefinitionError(
            f"{where} has the entry {entry!r}. Each must be a column, counted from 0, or a tuple of different columns."
        )
    return numbers if len(numbers) > 1 else numbers[0]


def stored_sublist(columns: Sequence[int | Sequence[int]] | None) -> ClassSublist | None:
    """The columns as `class_sublist` made them, from JSON; nothing is checked again."""
    if columns is None:
        return None
    return tuple(tuple(entry) if isinstance(entry, Sequence) else entry for entry in columns)


def has_groups(sublist: ClassSublist | None) -> bool:
    """Whether a class has several columns."""
    return sublist is not None and any(isinstance(entry, tuple) for entry in sublist)


def columns_of(sublist: Iterable[int | Iterable[int]]) -> list[int]:
    """All columns that count, class by class."""
    return [column for entry in sublist for column in (entry if isinstance(entry, Iterable) else (entry,))]


def targets_in_subset(targets: IntArray, sublist: ClassSublist | None, *, num_classes: int) -> NDArray[np.int32]:
    """Targets as positions in `sublist`: -1 for a class that is not in it.

    Where the data set has as many classes as the list, its folders are the subset's, and its targets are positions
    already; else they are indices of the label space.

    Args:
        targets: class indices of the data set, of any shape; -1 stays -1.
        sublist: columns of the logits that count, in their order; None for all.
        num_classes: classes of the data set.
    Raises: DefinitionError: a class of the label space is two classes of the list.
    """
    if sublist is None or len(sublist) == num_classes:
        return np.asarray(targets, np.int32)
    columns = columns_of(sublist)
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise DefinitionError(f"class_sublist has column {twice} in two classes, so samples of it belong to both.")
    positions = np.full(max(num_classes, *columns) + 2, NO_LABEL, np.int32)  # the last entry is that of NO_LABEL
    for position, members in enumerate(_members(sublist)):
        positions[list(members)] = position
    return positions[targets]


def padded_label_sets(label_sets: Sequence[Sequence[int]]) -> NDArray[np.int32]:
    """Label sets as an array [n, most labels], filled up with -1."""
    rows = np.full((len(label_sets), max(map(len, label_sets), default=0)), NO_LABEL, np.int32)
    for row, labels in zip(rows, label_sets, strict=True):
        row[: len(labels)] = labels
    return rows


def names_in_subset(names: Sequence[str], sublist: ClassSublist | None) -> tuple[str, ...]:
    """Names of the classes that count, in the order of their positions; a group has the name of its first column."""
    if sublist is None or len(sublist) == len(names):
        return tuple(names)
    return tuple(_name(names, members) for members in _members(sublist))


def _name(names: Sequence[str], members: tuple[int, ...]) -> str:
    first = names[members[0]] if members[0] < len(names) else f"class {members[0]}"
    return first if len(members) == 1 else f"{first} +{len(members) - 1}"


def columns_in_subset(
    logits: NDArray[Any], sublist: ClassSublist | None, *, is_cut: bool, sums_votes: bool = False
) -> NDArray[Any]:
    """Logits [n, classes] of the classes that count.

    A class of several columns has the largest of their logits; NaN where one of them is not finite, so that the row
    counts as wrong, as it does where a single column is not.

    Args:
        logits: [n, num_outputs].
        sublist: columns that count; None for all.
        is_cut: the model picked them itself: its logits are those of the listed columns in their order, or of the
            classes already.
        sums_votes: logits are votes, and a class has the sum of its columns' votes.
    """
    if sublist is None or (is_cut and logits.shape[1] == len(sublist)):
        return logits
    picked = logits if is_cut else logits[:, columns_of(sublist)]
    if not has_groups(sublist):
        return picked
    starts = np.cumsum([0, *(len(members) for members in _members(sublist)[:-1])])
    merged: NDArray[Any] = (np.add if sums_votes else np.maximum).reduceat(picked, starts, axis=1)
    is_finite = np.isfinite(picked)
    if not is_finite.all():
        merged[~np.logical_and.reduceat(is_finite, starts, axis=1)] = np.nan
    return merged


def tensor_in_subset(logits: Tensor, sublist: ClassSublist | None, *, is_cut: bool) -> Tensor:
    """As `columns_in_subset` has it for logits, by steps that keep gradients."""
    if sublist is None or (is_cut and logits.shape[1] == len(sublist)):
        return logits
    picked = logits if is_cut else logits[:, columns_of(sublist)]
    if not has_groups(sublist):
        return picked
    import torch

    groups = torch.split(picked, [len(members) for members in _members(sublist)], dim=1)
    return torch.stack([group.amax(dim=1) for group in groups], dim=1)


def _members(sublist: ClassSublist) -> list[tuple[int, ...]]:
    return [entry if isinstance(entry, tuple) else (entry,) for entry in sublist]
