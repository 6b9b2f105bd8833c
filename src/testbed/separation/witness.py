"""The witness of a separation: within half of it the nearest-neighbour classifier makes no mistake."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from testbed.errors import DefinitionError
from testbed.randomness import permutation, stream_key, uniform_numpy
from testbed.records import Norm
from testbed.separation.device import Device
from testbed.separation.nearest import find_nearest
from testbed.separation.points import Distances, Indices, Points, checked_points, exact_distances
from testbed.separation.search import NOBODY, Found, nothing_found, search_all

NUM_POINTS = 512
_MOST_VALUES = 1 << 23  # noisy points are float64, all at once
_SHORT = 1 << 26  # compared values up to which comparing them in numpy is quicker than compiling a search
_INSIDE = 1 - 1e-6  # the ball is open: at its rim two classes may be equally near


@dataclass(frozen=True, kw_only=True)
class Witness:
    """How the nearest-neighbour classifier does on noisy points.

    Args:
        epsilon: radius of the noise, in [0, 1] pixel units (units of the data for floats).
        num_points: noisy points that were classified.
        num_right: of these, the ones all of whose nearest references are of the right class.
        broken_pairs: points that were classified wrongly with the reference that was taken for their neighbour.
    """

    epsilon: float
    num_points: int
    num_right: int
    broken_pairs: tuple[tuple[int, int], ...]


def check_witness(
    images: ArrayLike, labels: ArrayLike, *, norm: Norm, epsilon: float, seed: int = 0, threads: int | None = None
) -> Witness:
    """Whether the 1-nearest-neighbour classifier over the images is right within `epsilon` of them.

    Half of the noisy points are random in the ball of a random image. The others lie near the rim of the ball in the
    direction of the nearest image of another class, where a mistake is likeliest. It is always right where `epsilon`
    is at most half the minimal class separation, so a mistake names a pair that was mislabelled, or overlooked.

    Args:
        images, labels, norm, threads: as for `minimal_class_separation`; the references.
        epsilon: radius of the noise, as `Separation.epsilon_min`.
        seed: of the noise and the choice of the images.
    Raises: DefinitionError: `epsilon` is negative. Others as `minimal_class_separation`.
    Source: Yang et al., NeurIPS 2020, section 4.
    """
    points = checked_points(images, labels, norm)
    return run_witness(points, norm, epsilon=epsilon, always=(), seed=seed, threads=threads)


def run_witness(
    points: Points,
    norm: Norm,
    *,
    epsilon: float,
    always: tuple[int, ...],
    seed: int = 0,
    threads: int | None = None,
    device: Device = "auto",
) -> Witness:
    """The witness for points; `always` are positions that are among those moved towards another class."""
    if not epsilon >= 0:
        raise DefinitionError(
            f"The witness is asked for within epsilon {epsilon!r}. It must be 0 or a positive number."
        )
    key = stream_key(seed, purpose="split", dataset="witness", stream=norm)
    count = max(1, min(NUM_POINTS, _MOST_VALUES // points.rows.shape[1]) // 2)
    chosen = permutation(key, len(points))[:count]
    pushed = np.unique(np.append(chosen, always).astype(np.int64))
    radius = epsilon * _INSIDE * (255 if points.is_whole else 1)
    noisy = np.concatenate([
        points.rows[chosen] + radius * _unit_ball(chosen, points.rows.shape[1], norm, seed),
        _towards_others(points, pushed, norm, radius, threads, device),
    ])  # fmt: skip
    owners = np.concatenate([chosen, pushed])
    mistaken = _mistaken(points, noisy, owners, norm, threads)
    broken = {(int(owners[row]), int(other)) for row, other in mistaken}
    return Witness(
        epsilon=epsilon,
        num_points=len(noisy),
        num_right=len(noisy) - len(mistaken),
        broken_pairs=tuple(sorted(broken)),
    )


def _unit_ball(indices: Indices, dimensions: int, norm: Norm, seed: int) -> Distances:
    """(n, dimensions) points uniform in the unit ball, one for each index."""
    key = stream_key(seed, purpose="split", dataset="witness", stream=f"{norm}/direction")
    units = uniform_numpy(key, indices, draw=0, shape=(dimensions,), dtype="float64")
    if norm == "linf":
        return 2 * units - 1
    if norm == "l2":
        from scipy.special import ndtri

        directions = ndtri(units)
    else:
        directions = np.sign(0.5 - units) * np.log1p(-2 * np.abs(units - 0.5))
    key = stream_key(seed, purpose="split", dataset="witness", stream=f"{norm}/radius")
    radii = uniform_numpy(key, indices, draw=0, shape=(1,), dtype="float64") ** (1 / dimensions)
    points: Distances = directions / _lengths(directions, norm) * radii
    return points


def _towards_others(
    points: Points, chosen: Indices, norm: Norm, radius: float, threads: int | None, device: Device
) -> Distances:
    """The chosen points moved by `radius` towards the nearest point of another class, but not past it."""
    own = points.rows[chosen].astype(np.float64)
    nearest = find_nearest(points.take(chosen), points, norm, threads=threads, device=device).nearest
    steps = points.rows[nearest] - own
    lengths = _lengths(steps, norm)
    return own + steps * np.minimum(1, np.divide(radius, lengths, out=np.zeros_like(lengths), where=lengths > 0))


def _lengths(vectors: Distances, norm: Norm) -> Distances:
    orders = {"linf": np.inf, "l2": 2, "l1": 1}
    lengths: Distances = np.linalg.norm(vectors, ord=orders[norm], axis=1, keepdims=True)
    return lengths


def _mistaken(
    points: Points, noisy: Distances, owners: Indices, norm: Norm, threads: int | None
) -> list[tuple[int, int]]:
    """Rows of `noisy` that are as near to a reference of another class as to one of their own, with that reference."""
    moved = Points(rows=noisy, classes=points.classes[owners])
    found = nothing_found(moved, points)
    found.best[:] = exact_distances(noisy, points.rows[owners], norm)  # own class is at least as near as this
    if noisy.size * len(points) < _SHORT:
        _compare_all(moved, points, norm, found)
    else:
        search_all(moved, points, norm, threads=threads, found=found)
    mistaken = []
    for row in np.flatnonzero(found.nearest != NOBODY):
        own_class = points.rows[points.classes == moved.classes[row]]
        if found.best[row] <= exact_distances(noisy[row : row + 1], own_class, norm).min():
            mistaken.append((int(row), int(found.nearest[row])))
    return mistaken


def _compare_all(queries: Points, references: Points, norm: Norm, found: Found) -> None:
    """Lowers `found` as `search_all` does, without compiling a search for floats."""
    for row in range(len(queries)):
        others = np.flatnonzero(references.classes != queries.classes[row])
        distances = exact_distances(queries.rows[row : row + 1], references.rows[others], norm)
        if len(others) and distances.min() <= found.best[row]:
            found.best[row], found.nearest[row] = distances.min(), others[distances.argmin()]
