"""Everything there is to say about the separation of a data set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from testbed.errors import DataError, ShapeError
from testbed.records import Norm, Separation
from testbed.separation.device import Device
from testbed.separation.duplicates import Duplicates, find_duplicates
from testbed.separation.nearest import as_arrays, find_nearest
from testbed.separation.points import Distances, Indices, Points, checked_points, exact_distances
from testbed.separation.search import NOBODY, Found, Pair, Progress, first_pair, nothing_found
from testbed.separation.witness import Witness, run_witness

MAX_PAIRS = 100
NUM_BINS = 100
QUANTILES = tuple(np.linspace(0, 1, 201).round(3).tolist())


@dataclass(frozen=True, kw_only=True, eq=False)
class SeparationReport:
    """The separation of a data set, and what is behind it. Positions are those in the images that were given.

    Args:
        separation: the minimum, with the first pair.
        num_pairs: pairs that attain it.
        pairs: the first MAX_PAIRS of them in lexicographic order, smaller position first.
        distances: (num_points,) float64 distance of each point from the nearest of another class.
        nearest: (num_points,) int64 position of that point.
        positions: (num_points,) int64 the points that were searched: all but the excluded.
        duplicates: the equal points among all that were given.
        excluded: points that were left out since one of another class is equal to them.
        between: for two parts of the set, the smallest distance from one to the other and the first pair, or None.
        witness: the nearest-neighbour classifier within half the separation.
        is_whole: whether the points are 8-bit images, whose distances in linf are whole grey levels.
    """

    separation: Separation
    num_pairs: int
    pairs: tuple[tuple[int, int], ...]
    distances: Distances
    nearest: Indices
    positions: Indices
    duplicates: Duplicates
    excluded: tuple[int, ...]
    between: dict[tuple[str, str], tuple[float, tuple[int, int]] | None]
    witness: Witness
    is_whole: bool

    @property
    def name(self) -> str:
        """What the minimum is to be called."""
        base = "minimal class separation"
        return f"{base} without conflicting duplicates" if self.excluded else base

    def quantiles(self) -> Distances:
        """The distances at QUANTILES: values that points have, none between them."""
        values: Distances = np.quantile(self.distances, QUANTILES, method="inverted_cdf")
        return values

    def distribution(self) -> dict[str, Any]:
        """The distances in bins of one width: where the first begins, the width, and the points in each.

        A bin is a grey level for linf distances of 8-bit images, else a hundredth of the range of the distances.
        """
        low, high = float(self.distances.min()), float(self.distances.max())
        num_bins, width = NUM_BINS, (high - low) / NUM_BINS
        if self.is_whole and self.separation.norm == "linf":
            num_bins, width = round((high - low) * 255) + 1, 1 / 255
            low -= width / 2  # a level is in the middle of its bin
        elif low == high:
            num_bins, width = 1, high or 1.0
        bins = np.minimum((self.distances - low) / width, num_bins - 1).astype(np.int64)
        return {"start": low, "width": width, "counts": np.bincount(bins, minlength=num_bins).tolist()}

    def detail(self, sample_ids: Sequence[str]) -> dict[str, Any]:
        """All but the single points in plain values, to be stored beside the separation; of long lists the first part.

        Args:
            sample_ids: of the images that were given, by which points are named.
        """

        def named(points: Iterable[int]) -> list[str]:
            return [sample_ids[point] for point in points]

        return {
            "name": self.name,
            "num_pairs": self.num_pairs,
            "pairs": [named(pair) for pair in self.pairs],
            "mean": float(self.distances.mean()),
            "quantiles": dict(zip(map(str, QUANTILES), self.quantiles().tolist(), strict=True)),
            "distribution": self.distribution(),
            "duplicates": {
                "num_duplicates": self.duplicates.num_duplicates,
                "num_conflicting": len(self.duplicates.conflicting),
                "num_conflicting_pairs": self.duplicates.num_conflicting_pairs,
                "conflicting_pairs": [named(pair) for pair in self.duplicates.conflicting_pairs],
            },
            "num_excluded": len(self.excluded),
            "between": [
                {"splits": list(splits), "min_distance": found and found[0], "pair": found and named(found[1])}
                for splits, found in self.between.items()
            ],
            "witness": {
                "epsilon": self.witness.epsilon,
                "num_points": self.witness.num_points,
                "num_right": self.witness.num_right,
                "num_broken_pairs": len(self.witness.broken_pairs),
                "broken_pairs": [named(pair) for pair in self.witness.broken_pairs[:MAX_PAIRS]],
            },
        }


def separation_report(
    images: ArrayLike,
    labels: ArrayLike,
    *,
    norm: Norm,
    splits: ArrayLike | None = None,
    exclude_conflicting: bool = False,
    threads: int | None = None,
    device: Device = "auto",
    progress: Progress | None = None,
) -> SeparationReport:
    """The minimal class separation with all pairs at it, the distribution, the duplicates and the witness.

    Args:
        images, labels, norm, threads, device, progress: as for `minimal_class_separation`.
        splits: (n,) name of the part of the set that each image is from; separations between parts are then told too.
        exclude_conflicting: leaves out points that are equal to one of another class.
    Raises: as `minimal_class_separation`; DataError also where fewer than two classes are left.
    """
    points = checked_points(images, labels, norm)
    names = np.asarray(["all"] * len(points) if splits is None else splits).astype(str)
    if names.shape != (len(points),):
        raise ShapeError(f"There are {len(points)} images and split names of shape {names.shape}. Give one for each.")
    duplicates = find_duplicates(points, max_pairs=MAX_PAIRS)
    excluded = duplicates.conflicting if exclude_conflicting else ()
    positions = np.delete(np.arange(len(points)), excluded)
    kept = points.take(positions) if excluded else points
    if len(np.unique(kept.classes)) < 2:
        raise DataError(
            f"Without the {len(excluded)} points that are equal to one of another class, fewer than two classes are "
            "left. Look at the labels."
        )
    found, between = _search_splits(kept, names[positions], norm, threads, device, progress)
    smallest = first_pair(found, np.arange(len(kept)))
    num_pairs, pairs = _pairs_at(smallest[0], found, kept, norm)
    separation = _separation(smallest, kept, positions, norm)
    distances, nearest = as_arrays(found, kept, norm)
    epsilon = separation.epsilon_min
    witness = run_witness(kept, norm, epsilon=epsilon, always=smallest[1:], threads=threads, device=device)
    return SeparationReport(
        separation=separation,
        num_pairs=num_pairs,
        pairs=tuple(_named(pair, positions) for pair in pairs),
        distances=distances,
        nearest=positions[nearest],
        positions=positions,
        duplicates=duplicates,
        excluded=excluded,
        between={
            splits: None if pair[1] == NOBODY else _distance_and_pair(pair, kept, positions, norm)
            for splits, pair in between.items()
        },
        witness=_named_witness(witness, positions),
        is_whole=kept.is_whole,
    )


def _search_splits(
    points: Points,
    names: np.ndarray[Any, Any],
    norm: Norm,
    threads: int | None,
    device: Device,
    progress: Progress | None,
) -> tuple[Found, dict[tuple[str, str], Pair]]:
    """The nearest of another class in the whole set, and the closest pairs from each split to each."""
    found = nothing_found(points, points)
    parts = {str(name): np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())}
    between: dict[tuple[str, str], Pair] = {}
    done, total = 0, len(points) * len(parts)
    for first, ours in parts.items():
        for second, theirs in parts.items():
            step = None if progress is None else _shifted(progress, done, total)
            references = points.take(theirs) if len(parts) > 1 else points
            queries = references if first == second else points.take(ours)
            part = find_nearest(queries, references, norm, threads=threads, device=device, progress=step)
            part.nearest[:] = np.where(
                part.nearest == NOBODY, NOBODY, theirs[np.minimum(part.nearest, len(theirs) - 1)]
            )
            found.lower(ours, part)
            pair = first_pair(part, ours)
            key = (first, second) if (second, first) not in between else (second, first)
            between[key] = min(pair, between.get(key, pair))
            done += len(ours)
    return found, between


def _shifted(progress: Progress, done: int, total: int) -> Progress:
    return lambda part, _: progress(done + part, total)


def _pairs_at(smallest: Any, found: Found, points: Points, norm: Norm) -> tuple[int, list[tuple[int, int]]]:
    """How many pairs are at the smallest distance, and the first of them."""
    rows = np.flatnonzero((found.best == smallest) & (found.nearest != NOBODY))
    pairs: list[tuple[int, int]] = []
    for row in rows.tolist():
        if len(pairs) >= MAX_PAIRS:
            break
        pairs.extend((row, other) for other in _partners(row, found, points, norm) if other > row)
    return int(found.ties[rows].sum()) // 2, pairs[:MAX_PAIRS]


def _partners(row: int, found: Found, points: Points, norm: Norm) -> list[int]:
    """All points of another class at the distance of the nearest, in order."""
    if found.ties[row] == 1:
        return [int(found.nearest[row])]
    others = np.flatnonzero(points.classes != points.classes[row])
    distances = exact_distances(points.rows[row : row + 1], points.rows[others], norm)
    partners: list[int] = others[distances == found.best[row]].tolist()
    return partners


def _named(pair: tuple[int, int], positions: Indices) -> tuple[int, int]:
    return int(positions[pair[0]]), int(positions[pair[1]])


def _distance_and_pair(found: Pair, points: Points, positions: Indices, norm: Norm) -> tuple[float, tuple[int, int]]:
    return float(points.to_distances(np.asarray(found[0]), norm)), _named(found[1:], positions)


def _separation(smallest: Pair, points: Points, positions: Indices, norm: Norm) -> Separation:
    distance, pair = _distance_and_pair(smallest, points, positions, norm)
    return Separation(norm=norm, min_distance=distance, pair=pair, num_points=len(points))


def _named_witness(witness: Witness, positions: Indices) -> Witness:
    return replace(witness, broken_pairs=tuple(_named(pair, positions) for pair in witness.broken_pairs))
