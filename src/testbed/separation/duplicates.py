"""Points that are equal to others, found by their bytes; those of different class make the separation 0."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from testbed.separation.points import Indices, Points


@dataclass(frozen=True, kw_only=True)
class Duplicates:
    """Which points of a set are equal.

    Args:
        num_duplicates: points that are equal to an earlier one.
        conflicting: positions of the points that are equal to one of another class.
        num_conflicting_pairs: pairs of equal points of different class.
        conflicting_pairs: the first of these pairs, smaller position first.
    """

    num_duplicates: int
    conflicting: tuple[int, ...]
    num_conflicting_pairs: int
    conflicting_pairs: tuple[tuple[int, int], ...]


def find_duplicates(points: Points, *, max_pairs: int) -> Duplicates:
    """The equal points of a set, with at most `max_pairs` conflicting pairs in lexicographic order."""
    groups = _groups(points)
    sizes = np.bincount(groups)
    cells, cell_sizes = np.unique(np.stack([groups, points.classes], axis=1), axis=0, return_counts=True)
    is_conflicting = (np.bincount(cells[:, 0]) > 1)[groups]
    num_same_class = np.bincount(cells[:, 0], weights=cell_sizes.astype(np.float64) ** 2)
    pairs = sorted(
        pair
        for group in np.unique(groups[is_conflicting])
        for pair in islice(_pairs(np.flatnonzero(groups == group), points.classes), max_pairs)
    )
    return Duplicates(
        num_duplicates=len(points) - len(sizes),
        conflicting=tuple(np.flatnonzero(is_conflicting).tolist()),
        num_conflicting_pairs=int(((sizes.astype(np.float64) ** 2 - num_same_class) / 2).sum()),
        conflicting_pairs=tuple(pairs[:max_pairs]),
    )


def _groups(points: Points) -> Indices:
    """(n,) number of the distinct point that each point is."""
    known: dict[bytes, int] = {}
    digests = (hashlib.blake2b(row.tobytes(), digest_size=32).digest() for row in points.rows)
    return np.array([known.setdefault(digest, len(known)) for digest in digests], dtype=np.int64)


def _pairs(members: NDArray[np.intp], classes: Indices) -> Iterator[tuple[int, int]]:
    pairs = combinations(members.tolist(), 2)
    return ((first, second) for first, second in pairs if classes[first] != classes[second])
