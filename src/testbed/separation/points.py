"""The points of a search, checked: rows of 8-bit integers or of float64, and class numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import DataError, DefinitionError, ShapeError
from testbed.records import NORMS, Norm
from testbed.separation.kernels import CHUNK

Rows = NDArray[Any]
Indices = NDArray[np.int64]
Distances = NDArray[np.float64]

_LARGEST = 1e150  # a larger difference has no square
_VALUES_PER_COPY = 1 << 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Points:
    """Points with their classes.

    Args:
        rows: (n, dimensions) uint8, or finite float64.
        classes: (n,) class numbers; the same class has the same number in all sets that are compared.
    """

    rows: Rows
    classes: Indices

    def __len__(self) -> int:
        return len(self.classes)

    @property
    def is_whole(self) -> bool:
        """Whether distances (of L2: their squares) are whole numbers, computed without rounding."""
        return self.rows.dtype == np.uint8

    def take(self, positions: NDArray[Any]) -> Points:
        """The points at `positions`, in that order; without a copy where they follow one another."""
        first = int(positions[0]) if len(positions) else 0
        if np.array_equal(positions, np.arange(first, first + len(positions))):
            return Points(rows=self.rows[first : first + len(positions)], classes=self.classes[positions])
        return Points(rows=self.rows[positions], classes=self.classes[positions])

    def to_distances(self, searched: NDArray[Any], norm: Norm) -> Distances:
        """Distances in [0, 1] pixel units (units of the data for floats) from the numbers that the search compares."""
        distances = np.sqrt(searched.astype(np.float64)) if norm == "l2" else searched.astype(np.float64)
        return distances / 255 if self.is_whole else distances


def checked_points(images: ArrayLike, labels: ArrayLike, norm: str) -> Points:
    """Images of any shape and labels of any kind as points of at least two classes.

    Raises: ShapeError: lengths differ. DataError: fewer than two points or classes, or values that are not finite.
    """
    points, _ = checked_sets((images, labels), None, norm)
    return points


def checked_sets(
    queries: tuple[ArrayLike, ArrayLike], references: tuple[ArrayLike, ArrayLike] | None, norm: str
) -> tuple[Points, Points]:
    """Two sets of images and labels as points; without `references` the same points twice.

    Raises: as `checked_points`; ShapeError also where the points of the sets differ in size, DataError in type.
    """
    if norm not in NORMS:
        raise DefinitionError(f"Separation is asked for in norm '{norm}'. Use one of {', '.join(NORMS)}.")
    sets = [queries] if references is None else [queries, references]
    images, labels = zip(*(_checked_shapes(*each) for each in sets), strict=True)
    total = sum(map(len, images))
    if total < 2 or any(len(each) == 0 for each in images):
        raise DataError(
            f"A separation needs at least two points, but there are {' and '.join(map(str, map(len, images)))}."
        )
    names, classes = np.unique(np.concatenate(labels), return_inverse=True)
    if len(names) < 2:
        raise DataError(f"All {total} points are of class {names[0].item()!r}. A separation needs two classes.")
    if len({each[0].size for each in images}) > 1 or len({each.dtype == np.uint8 for each in images}) > 1:
        kinds = " and ".join(f"{each.dtype} of shape {each.shape[1:]}" for each in images)
        raise ShapeError(f"Points of two sets are compared that are {kinds}. Give both the same shape and type.")
    parts = np.split(classes.astype(np.int64), [len(images[0])])
    points = [Points(rows=_checked_rows(each), classes=part) for each, part in zip(images, parts, strict=False)]
    return points[0], points[-1]


def _checked_shapes(images: ArrayLike, labels: ArrayLike) -> tuple[Rows, Rows]:
    images, labels = np.asarray(images), np.asarray(labels)
    if images.ndim == 0 or labels.shape != images.shape[:1]:
        raise ShapeError(f"Images have shape {images.shape}, labels {labels.shape}. Give one label for each image.")
    if len(images) and images.size == 0:
        raise ShapeError(f"Images have shape {images.shape}: there is nothing to compare.")
    return images, labels


def exact_distances(rows: Rows, others: Rows, norm: Norm) -> NDArray[Any]:
    """Distances (l2: squared) of pairs of points, as the compiled search computes them, to the bit."""
    is_whole = rows.dtype == others.dtype == np.uint8
    shape = np.broadcast_shapes(rows.shape, others.shape)
    total: NDArray[Any] = np.zeros(shape[0], np.int64 if is_whole else np.float64)
    for start in range(0, shape[1], CHUNK):
        part: NDArray[Any] = np.zeros_like(total)
        for column in range(start, min(start + CHUNK, shape[1])):
            gap = np.abs(np.subtract(rows[:, column], others[:, column], dtype=total.dtype))
            part = np.maximum(part, gap) if norm == "linf" else part + (gap * gap if norm == "l2" else gap)
        total = np.maximum(total, part) if norm == "linf" else total + part
    return total


def in_chunks(rows: Rows, order: Indices, columns: Indices) -> Rows:
    """(n, num_chunks, CHUNK): the rows in `order`, their values in the order of `columns`, then 0, which all share."""
    num_chunks = -(-rows.shape[1] // CHUNK)
    chunks = np.zeros((len(order), num_chunks * CHUNK), rows.dtype)
    step = max(1, _VALUES_PER_COPY // rows.shape[1])
    for start in range(0, len(order), step):
        chunks[start : start + step, : len(columns)] = rows[order[start : start + step]][:, columns]
    return chunks.reshape(len(order), num_chunks, CHUNK)


def _checked_rows(images: Rows) -> Rows:
    rows = images.reshape(len(images), -1)
    if rows.dtype == np.uint8:
        return np.ascontiguousarray(rows)
    rows = rows.astype(np.float64) + 0.0  # -0 becomes 0: equal points have equal bytes
    is_usable = (np.abs(rows) < _LARGEST).all(axis=1)  # not true of NaN either
    if not is_usable.all():
        row = int(np.flatnonzero(~is_usable)[0])
        if np.isfinite(rows[row]).all():
            raise DataError(f"Point {row} has a value of {_LARGEST:g} or more. Rescale the data.")
        raise DataError(f"Point {row} has a value that is not a finite number. Remove or repair it.")
    return np.ascontiguousarray(rows)
