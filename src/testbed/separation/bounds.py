"""Linear maps to few dimensions that never increase a distance: a pair too far apart there needs no exact look.

What a map keeps is chosen from the data, so that it rejects many pairs. Its results are rounded to float32, and
`margin` and `SLACK` are larger than all that rounding can do: no pair is ever lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.records import Norm
from testbed.separation.kernels import LANES, STAGE
from testbed.separation.points import Indices, Rows

_NUM_FEATURES = {"linf": 32, "l2": 32, "l1": 64}
_SAMPLE_ROWS = 512
_GROUPING_ROWS = 64
_FEWEST_PAIRS, _MOST_PAIRS = 256, 8192  # that columns are chosen by
_COMPARISONS_PER_PAIR = 1024  # of the search that follows: choosing must not take longer than it
_SAMPLE_VALUES = 1 << 23  # of the sample, held in float64
_VALUES_AT_A_TIME = 1 << 20  # of all points
_SUM_ROUNDING = 2.0**-52  # of sums in float64 of up to n terms up to 1, times n squared
_ROUNDING = 2.0**-22  # of a difference of two features, relative to the largest: four times that of float32

Floats = NDArray[np.float64]
Features = NDArray[Any]  # float32, or uint8


@dataclass(frozen=True, kw_only=True, eq=False)
class Bound:
    """A map x -> matrix (x - centre) / scale with |map(x) - map(y)| <= |x - y| / scale in its norm.

    Args:
        centre: (dimensions,) float64.
        scale: a positive number.
        matrix: (num_features, dimensions) float64; num_features is a multiple of STAGE.
        is_exact: whether features are 8-bit values as they are, which need no rounding and are compared faster.
    """

    centre: Floats
    scale: float
    matrix: Floats
    is_exact: bool

    def features(self, rows: Rows, order: Indices) -> Features:
        """(n, num_features) float32, or 8-bit: of the rows in `order`."""
        is_used = self.matrix.any(axis=0)
        matrix, centre = self.matrix[:, is_used].T, self.centre[is_used]
        features = np.empty((len(order), len(self.matrix)), np.uint8 if self.is_exact else np.float32)
        step = max(1, _VALUES_AT_A_TIME // rows.shape[1])
        for start in range(0, len(order), step):
            part = rows[order[start : start + step]]
            used = part if is_used.all() else part[:, is_used]
            features[start : start + step] = ((used - centre) / self.scale) @ matrix
        return features

    def margin(self, *features: Features) -> float:
        """How much larger the distance of two rounded features can be than that of the exact ones."""
        if self.is_exact:
            return 0.0
        largest = max((float(np.abs(each).max(initial=0)) for each in features), default=0.0)
        dimensions = len(self.centre)
        return len(self.matrix) * (_ROUNDING * largest + _SUM_ROUNDING * dimensions * dimensions)


def make_bound(rows: Rows, norm: Norm, *, other_rows: Rows, typical: float, rng: np.random.Generator) -> Bound:
    """The map for a search.

    Args:
        rows: (n, dimensions) references.
        other_rows: (m, dimensions) what is compared with them.
        typical: distance (linf) beyond which pairs should be rejected.
        rng: chooses the points that the map is made from.
    """
    sample = rows[np.sort(rng.permutation(len(rows))[: _sample_size(rows)])].astype(np.float64)
    is_exact = norm == "linf" and rows.dtype == other_rows.dtype == np.uint8
    centre = np.zeros(rows.shape[1]) if is_exact else sample.mean(axis=0)
    scale = 1.0 if is_exact else _largest_difference(centre, rows, other_rows)
    sample = (sample - centre) / scale
    count = min(_NUM_FEATURES[norm], rows.shape[1])
    if norm == "linf":
        num_pairs = len(rows) * len(other_rows) // _COMPARISONS_PER_PAIR
        matrix = _telling_columns(sample, typical / scale, count, num_pairs, rng)
    else:
        matrix = _principal_axes(sample, count) if norm == "l2" else _sums_of_similar(sample, count)
    padding = max(-len(matrix) % STAGE, STAGE - len(matrix))  # features that are 0 for all points change no bound
    return Bound(centre=centre, scale=scale, matrix=np.pad(matrix, ((0, padding), (0, 0))), is_exact=is_exact)


def in_blocks(features: Features) -> Features:
    """(num_blocks, num_features, LANES): the features of LANES points side by side; the last block is padded."""
    padded = np.pad(features, ((0, -len(features) % LANES), (0, 0)))
    return np.ascontiguousarray(padded.reshape(-1, LANES, features.shape[1]).transpose(0, 2, 1))


def _sample_size(rows: Rows) -> int:
    return max(2, min(_SAMPLE_ROWS, _SAMPLE_VALUES // int(rows.shape[1])))


def _largest_difference(centre: Floats, *sets: Rows) -> float:
    if all(rows.dtype == np.uint8 for rows in sets):
        return 255.0
    step = max(1, _VALUES_AT_A_TIME // len(centre))
    parts = (rows[start : start + step] for rows in sets for start in range(0, len(rows), step))
    return max(float(np.abs(part - centre).max()) for part in parts) or 1.0


def _telling_columns(sample: Floats, typical: float, count: int, num_pairs: int, rng: np.random.Generator) -> Floats:
    """Columns (as rows of a 0-1 matrix) that one after the other reject most of the pairs left in the sample."""
    num_pairs = min(max(num_pairs, _FEWEST_PAIRS), _MOST_PAIRS, max(2, _SAMPLE_VALUES // sample.shape[1]))
    first, second = rng.integers(0, len(sample), (2, num_pairs))
    values = sample.astype(np.float32)
    differences = np.abs(values[first] - values[second])
    chosen: list[int] = []
    level = typical
    for _ in range(count):
        rejects = (differences > level).sum(axis=0)
        rejects[chosen] = -1
        chosen.append(int(rejects.argmax()))
        differences = differences[differences[:, chosen[-1]] <= level]
        if len(differences) < 16:  # too few are left to tell columns apart: start again, at a stricter level
            level /= 1.5
            differences = np.abs(values[first] - values[second])
            differences = differences[(differences[:, chosen] <= level).all(axis=1)]
    matrix = np.zeros((count, sample.shape[1]))
    matrix[np.arange(count), chosen] = 1
    return matrix


def _principal_axes(sample: Floats, count: int) -> Floats:
    """Orthonormal directions of largest variance: a projection onto them is no longer than the vector."""
    values, vectors = np.linalg.eigh(sample @ sample.T)
    spread = values > 1e-12 * values[-1]
    axes = sample.T @ vectors[:, spread][:, ::-1][:, :count]
    orthonormal, _ = np.linalg.qr(axes)
    return np.ascontiguousarray(orthonormal.T)


def _sums_of_similar(sample: Floats, count: int) -> Floats:
    """Sums over groups of columns that vary together: |sum of differences| <= sum of |differences|.

    Columns are halved along the direction in which they differ most, and the halves again.
    """
    sample, groups = sample[:_GROUPING_ROWS], [np.arange(sample.shape[1])]
    while len(groups) < count:
        largest = max(range(len(groups)), key=lambda g: len(groups[g]))
        columns = groups.pop(largest)
        vectors = sample[:, columns]
        vectors = vectors - vectors.mean(axis=1, keepdims=True)
        _, directions = np.linalg.eigh(vectors @ vectors.T)
        along = np.argsort(directions[:, -1] @ vectors, kind="stable")
        groups += [columns[along[: len(along) // 2]], columns[along[len(along) // 2 :]]]
    matrix = np.zeros((len(groups), sample.shape[1]))
    for row, columns in zip(matrix, groups, strict=True):
        row[columns] = 1
    return matrix
