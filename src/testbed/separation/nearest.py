"""The two questions of a separation: how near is the next point of another class, of each point and of all."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from testbed.records import Norm, Separation
from testbed.separation.device import Device, is_on_cuda, search_device
from testbed.separation.points import Distances, Indices, Points, checked_points, checked_sets
from testbed.separation.search import NOBODY, Found, Progress, first_pair, search_all, search_smallest
from testbed.separation.trees import MOST_DIMENSIONS, search_trees


def minimal_class_separation(
    images: ArrayLike,
    labels: ArrayLike,
    *,
    norm: Norm,
    threads: int | None = None,
    device: Device = "auto",
    progress: Progress | None = None,
) -> Separation:
    """The smallest distance between two points of different class, exact, with the first pair that attains it.

    8-bit images are compared in integers and the result is divided by 255 at the end; anything else in float64. Two
    equal points of different class give 0. The result is the same bits for any number of threads and on any device.

    Args:
        images: (n, ...) uint8 images, or numbers of any range: floats in [0, 1] for images, rows for tables.
        labels: (n,) class of each point, of any kind that can be sorted.
        norm: 'linf', 'l2' or 'l1', over all values of a point.
        threads: of the search; as many as NUMBA_NUM_THREADS or OMP_NUM_THREADS say, else one for each core.
        device: 'cpu', 'cuda', or 'auto' for CUDA where there is a device and the search is long.
        progress: called now and then with the number of points done and of all points.
    Returns: pair is the first in lexicographic order, smaller position first.
    Raises: ShapeError: lengths differ. DataError: fewer than two points or classes, or values that are not finite.
        DeviceError: 'cuda' is asked for, and there is none.
    Source: Siedel et al. 2022, eq. 1; Yang et al., NeurIPS 2020 (r-separation).

    >>> minimal_class_separation(np.array([[0, 0], [3, 4], [9, 9]], np.uint8), ["a", "b", "b"], norm="l1").pair
    (0, 1)
    """
    points = checked_points(images, labels, norm)
    if points.rows.shape[1] <= MOST_DIMENSIONS or is_on_cuda(device, points, points):
        found = find_nearest(points, points, norm, threads=threads, device=device, progress=progress)
        smallest, first, second = first_pair(found, np.arange(len(points)))
    else:
        smallest, first, second = search_smallest(points, norm, threads=threads, progress=progress)
    distance = float(points.to_distances(np.asarray(smallest), norm))
    return Separation(norm=norm, min_distance=distance, pair=(first, second), num_points=len(points))


def nearest_other_class(
    images: ArrayLike,
    labels: ArrayLike,
    *,
    norm: Norm,
    references: tuple[ArrayLike, ArrayLike] | None = None,
    threads: int | None = None,
    device: Device = "auto",
    progress: Progress | None = None,
) -> tuple[Distances, Indices]:
    """Distance of every point from the nearest point of another class, exact, and that point's position.

    Args:
        references: images and labels among which the nearest is looked for (of a test set in a training set, say); the
            points themselves if not given.
        images, labels, norm, threads, device, progress: as for `minimal_class_separation`.
    Returns: (n,) float64 distances in [0, 1] pixel units (units of the data for floats), and (n,) int64 positions, of
        several equally near the lowest; inf and -1 where all references are of the point's own class.
    Raises: as `minimal_class_separation`; ShapeError where references have another shape or type.

    >>> nearest_other_class(np.array([[0.0], [3.0], [9.0]]), ["a", "b", "b"], norm="l1")
    (array([3., 3., 9.]), array([1, 0, 0]))
    """
    queries, others = checked_sets((images, labels), references, norm)
    found = find_nearest(queries, others, norm, threads=threads, device=device, progress=progress)
    return as_arrays(found, queries, norm)


def find_nearest(
    queries: Points,
    references: Points,
    norm: Norm,
    *,
    threads: int | None = None,
    device: Device = "auto",
    progress: Progress | None = None,
) -> Found:
    """The nearest reference of another class for every query, by the way that suits the data and the machine."""
    if is_on_cuda(device, queries, references):
        return search_device(queries, references, norm, progress=progress)
    search = search_trees if queries.rows.shape[1] <= MOST_DIMENSIONS else search_all
    return search(queries, references, norm, threads=threads, progress=progress)


def as_arrays(found: Found, queries: Points, norm: Norm) -> tuple[Distances, Indices]:
    """Distances and positions as users get them."""
    is_found = found.nearest != NOBODY
    distances = np.where(is_found, queries.to_distances(found.best, norm), np.inf)
    return distances, np.where(is_found, found.nearest, -1)
