"""Settings that look at some of a data set's classes only: which targets and names count, and at which position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.records import IntArray


def targets_in_subset(targets: IntArray, sublist: Sequence[int] | None, *, num_classes: int) -> NDArray[np.int32]:
    """Targets as positions in `sublist`: -1 for a class that is not in it.

    Where the data set has as many classes as the list, its folders are the subset's, and its targets are positions
    already; else they are indices of the label space.

    Args:
        targets: [n] class indices of the data set.
        sublist: columns of the logits that count, in their order; None for all.
        num_classes: classes of the data set.
    """
    if sublist is None or len(sublist) == num_classes:
        return np.asarray(targets, np.int32)
    positions = np.full(max(num_classes, max(sublist) + 1), -1, np.int32)
    positions[list(sublist)] = np.arange(len(sublist))
    return positions[targets]


def names_in_subset(names: Sequence[str], sublist: Sequence[int] | None) -> tuple[str, ...]:
    """Names of the classes that count, in the order of their positions."""
    if sublist is None or len(sublist) == len(names):
        return tuple(names)
    return tuple(names[column] if column < len(names) else f"class {column}" for column in sublist)


def columns_in_subset(logits: NDArray[Any], sublist: Sequence[int] | None, *, is_cut: bool) -> NDArray[Any]:
    """Logits [n, classes] of the classes that count; those that the model `is_cut` to already stay as they are."""
    return logits if sublist is None or is_cut else logits[:, list(sublist)]
