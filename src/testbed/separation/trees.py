"""The search in few dimensions, where k-d trees prune."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.records import Norm
from testbed.separation.points import Distances, Indices, Points, exact_distances
from testbed.separation.search import Found, Progress, default_threads, nothing_found, search_all

MOST_DIMENSIONS = 8  # beyond it a tree looks at nearly every point

_POWERS = {"linf": np.inf, "l2": 2, "l1": 1}
_SLACK = 1 + 1e-9  # a tree may round sums differently from the comparison of points that follows


def search_trees(
    queries: Points, references: Points, norm: Norm, *, threads: int | None = None, progress: Progress | None = None
) -> Found:
    """The nearest reference of another class for every query.

    Where the trees see several at nearly the same distance, the points themselves are compared.
    """
    distances = np.full((len(queries), 2), np.inf)  # of the nearest and of the next
    nearest = np.zeros(len(queries), np.int64)
    for ours, theirs in _halves(queries.classes, references.classes):
        tree_distances, neighbours = _query(queries, ours, references, theirs, norm, threads or default_threads())
        both = np.concatenate([distances[ours], tree_distances], axis=1)
        is_nearer = tree_distances[:, 0] < distances[ours, 0]
        nearest[ours[is_nearer]] = theirs[neighbours[is_nearer, 0]]
        distances[ours] = np.sort(both, axis=1)[:, :2]
    found = nothing_found(queries, references)
    rows = np.flatnonzero(np.isfinite(distances[:, 0]))
    partners = nearest[rows]
    exact = exact_distances(queries.rows[rows], references.rows[partners], norm)
    found.best[rows], found.nearest[rows], found.ties[rows] = exact, partners, 1
    unsure = rows[distances[rows, 1] <= distances[rows, 0] * _SLACK]
    if len(unsure):
        found.put(unsure, _compare(queries.take(unsure), references, norm, found.best[unsure], threads))
    if progress is not None:
        progress(len(queries), len(queries))
    return found


def _halves(ours: Indices, theirs: Indices) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Positions of queries and references such that every two of different class meet exactly once.

    The classes are split in two halves, which meet each other, and so on within each half.
    """
    halves = [(0, int(max(ours.max(), theirs.max())) + 1)]
    while halves:
        low, high = halves.pop()
        if high - low < 2:
            continue
        middle = (low + high) // 2
        halves += [(low, middle), (middle, high)]
        for first, second in (((low, middle), (middle, high)), ((middle, high), (low, middle))):
            queries = np.flatnonzero((ours >= first[0]) & (ours < first[1]))
            references = np.flatnonzero((theirs >= second[0]) & (theirs < second[1]))
            if len(queries) and len(references):
                yield queries, references


def _query(
    queries: Points, ours: NDArray[np.intp], references: Points, theirs: NDArray[np.intp], norm: Norm, threads: int
) -> tuple[Distances, NDArray[np.intp]]:
    """Distances of the two nearest, and their numbers in `theirs`."""
    from scipy.spatial import cKDTree

    tree = cKDTree(references.rows[theirs].astype(np.float64))
    asked = queries.rows[ours].astype(np.float64)
    distances, neighbours = tree.query(asked, k=2, p=_POWERS[norm], workers=threads)
    return np.asarray(distances), np.asarray(neighbours)


def _compare(queries: Points, references: Points, norm: Norm, known: NDArray[Any], threads: int | None) -> Found:
    found = nothing_found(queries, references)
    found.best[:] = known
    return search_all(queries, references, norm, threads=threads, found=found)
