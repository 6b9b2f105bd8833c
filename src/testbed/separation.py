"""Exact minimal class separation: the smallest distance between two points of different class, and who attains it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import DataError, DefinitionError, ShapeError
from testbed.records import NORMS, Norm, Separation

_TREE_DIMENSIONS = 8  # up to here a k-d tree prunes; beyond it looks at nearly every point
_ROWS = 128  # points searched per call of the compiled loop, which cannot be interrupted
_CHUNK = 64  # values compared before looking whether a pair is already too far apart

Points = NDArray[Any]
Best = tuple[float, int, int]  # distance (L2: its square, integers for 8-bit images), first and second point


def minimal_class_separation(images: ArrayLike, labels: ArrayLike, *, norm: Norm) -> Separation:
    """The smallest distance between two points of different class, exact, with the first pair that attains it.

    8-bit images are compared in integers and the result is divided by 255 at the end; anything else in float64. Two
    equal points of different class give 0.

    Args:
        images: (n, ...) uint8 images, or numbers of any range: floats in [0, 1] for images, rows for tables.
        labels: (n,) class of each point, of any kind that can be sorted.
        norm: 'linf', 'l2' or 'l1', over all values of a point.
    Returns: pair is the first in lexicographic order, smaller position first.
    Raises: ShapeError: lengths differ. DataError: fewer than two points or classes, or values that are not finite.
    Source: Siedel et al. 2022, eq. 1; Yang et al., NeurIPS 2020 (r-separation).

    >>> minimal_class_separation(np.array([[0, 0], [3, 4], [9, 9]], np.uint8), ["a", "b", "b"], norm="l1").pair
    (0, 1)
    """
    points, classes = _check(np.asarray(images), np.asarray(labels), norm)
    few_dimensions = points.shape[1] <= _TREE_DIMENSIONS
    queries = _tree_candidates(points, classes, norm) if few_dimensions else np.arange(len(points))
    distance, first, second = _search(points, classes, queries, norm)
    distance = float(np.sqrt(distance)) if norm == "l2" else float(distance)
    scale = 255 if points.dtype == np.uint8 else 1
    return Separation(norm=norm, min_distance=distance / scale, pair=(first, second), num_points=len(points))


def _check(images: Points, labels: Points, norm: str) -> tuple[Points, NDArray[np.int64]]:
    """Points as contiguous rows, uint8 or float64, and class numbers from 0."""
    if norm not in NORMS:
        raise DefinitionError(f"Separation is asked for in norm '{norm}'. Use one of {', '.join(NORMS)}.")
    if images.ndim == 0 or labels.shape != images.shape[:1]:
        raise ShapeError(f"Images have shape {images.shape}, labels {labels.shape}. Give one label for each image.")
    if len(images) < 2:
        raise DataError(f"A separation needs at least two points, but there are {len(images)}.")
    if images.size == 0:
        raise ShapeError(f"Images have shape {images.shape}: there is nothing to compare.")
    names, classes = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        raise DataError(f"All {len(images)} points are of class {names[0]!r}. A separation needs two classes.")
    points = images.reshape(len(images), -1)
    if points.dtype != np.uint8:
        points = points.astype(np.float64)
        if not np.isfinite(points).all():
            row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
            raise DataError(f"Point {row} has a value that is not a finite number. Remove or repair it.")
    return np.ascontiguousarray(points), classes.astype(np.int64)


def _tree_candidates(points: Points, classes: NDArray[np.int64], norm: Norm) -> NDArray[np.intp]:
    """Positions that include one member of every pair at the minimal distance, found with k-d trees.

    The classes, in order, are split in two halves, one is searched from the other, and so on within each half.
    """
    from scipy.spatial import cKDTree

    values, power = points.astype(np.float64), {"linf": np.inf, "l2": 2, "l1": 1}[norm]
    order = np.argsort(classes, kind="stable")
    starts = np.append(np.flatnonzero(np.diff(classes[order], prepend=-1)), len(order))
    slack = 1 + 1e-9  # a tree may round sums differently from the comparison of the candidates that follows
    best, found, halves = np.inf, [], [(0, len(starts) - 1)]
    while halves:
        low, high = halves.pop()
        if high - low < 2:
            continue
        middle = (low + high) // 2
        halves += [(low, middle), (middle, high)]
        few, many = sorted((order[starts[low] : starts[middle]], order[starts[middle] : starts[high]]), key=len)
        bound = best * slack + 1e-150  # the tree looks strictly below it, and squares it
        distances, _ = cKDTree(values[many]).query(values[few], p=power, distance_upper_bound=bound)
        distances = np.asarray(distances)
        best = min(best, float(distances.min()))
        found.append((distances, few))
    return np.unique(np.concatenate([rows[distances <= best * slack] for distances, rows in found]))


def _search(points: Points, classes: NDArray[np.int64], queries: NDArray[np.intp], norm: Norm) -> Best:
    """The closest pair of different class with a member among `queries`; of equal ones the first, in order."""
    whole = points.dtype == np.uint8
    # The most varied values come first, so that most pairs end early. Sums of floats keep their order, and so bits.
    columns = np.argsort(-points.var(axis=0), kind="stable") if whole else np.arange(points.shape[1])
    points = np.ascontiguousarray(points[:, columns])
    one = np.int64(1) if whole else np.float64(1)
    best: Best = (np.iinfo(np.int64).max if whole else np.inf, len(points), len(points))
    everything = len(queries) == len(points)
    search = _compiled_search(norm)
    for start in range(0, len(queries), _ROWS):
        rows = queries[start : start + _ROWS]
        best = search(points, classes, rows, everything, one, *best)
    return best


@cache
def _compiled_search(norm: Norm) -> Callable[..., Best]:
    """The inner loop, compiled for a norm and the types it is called with; on first use, as numba is slow to import."""
    import numba

    is_linf, is_l2 = norm == "linf", norm == "l2"

    @numba.njit(nogil=True)
    def search(points, classes, rows, later_only, one, best, first, second):  # type: ignore[no-untyped-def]
        num_points, dimensions = points.shape
        for row in rows:
            for other in range(row + 1 if later_only else 0, num_points):
                if classes[row] == classes[other]:
                    continue
                distance = one - one
                for start in range(0, dimensions, _CHUNK):
                    for column in range(start, min(start + _CHUNK, dimensions)):
                        # `one` widens 8-bit values to the type of the sum.
                        difference = abs(one * points[row, column] - one * points[other, column])
                        if is_linf:
                            distance = max(distance, difference)
                        elif is_l2:
                            distance += difference * difference
                        else:
                            distance += difference
                    if distance > best:
                        break
                low, high = min(row, other), max(row, other)
                if distance < best or (distance == best and (low, high) < (first, second)):
                    best, first, second = distance, low, high
        return best, first, second

    return search
