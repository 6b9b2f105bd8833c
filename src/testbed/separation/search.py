"""The nearest reference of another class for every query, exact, on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from testbed.cores import available_cores
from testbed.records import Norm
from testbed.separation.bounds import in_blocks, make_bound
from testbed.separation.kernels import compiled_search
from testbed.separation.points import Indices, Points, in_chunks

T = TypeVar("T")
Pair = tuple[Any, int, int]  # distance in the numbers compared, smaller and larger position
Progress = Callable[[int, int], None]  # queries done, queries in all

NOBODY = np.iinfo(np.int64).max  # the position of no point, larger than any; and a distance larger than any
_QUERIES_PER_CALL = 256  # a compiled loop cannot be interrupted; this is a fraction of a second
_VALUES_PER_CALL = 1 << 34
_FIRST_LOOK = 32
_SAMPLE_QUERIES, _SAMPLE_REFERENCES = 512, 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """What a search found for each query.

    Args:
        best: (n,) smallest distance in the numbers compared: int64 for 8-bit images, else float64; squared for l2.
        nearest: (n,) int64 position of the reference at that distance, the lowest of several; NOBODY for none.
        ties: (n,) int64 how many references are at that distance.
    """

    best: NDArray[Any]
    nearest: Indices
    ties: Indices

    def take(self, rows: Any) -> Found:
        """A copy of the results of the queries `rows`."""
        return Found(best=self.best[rows].copy(), nearest=self.nearest[rows].copy(), ties=self.ties[rows].copy())

    def put(self, rows: Any, other: Found) -> None:
        """Replaces the results of the queries `rows`."""
        self.best[rows], self.nearest[rows], self.ties[rows] = other.best, other.nearest, other.ties

    def lower(self, rows: Any, other: Found) -> None:
        """Lowers the results of the queries `rows` to what was found for them among other references."""
        known = self.take(rows)
        is_nearer, is_equal = other.best < known.best, other.best == known.best
        known.ties[:] = np.where(is_nearer, other.ties, known.ties + np.where(is_equal, other.ties, 0))
        lowest = np.minimum(other.nearest, known.nearest)
        known.nearest[:] = np.where(is_nearer, other.nearest, np.where(is_equal, lowest, known.nearest))
        known.best[:] = np.minimum(other.best, known.best)
        self.put(rows, known)


def nothing_found(queries: Points, references: Points) -> Found:
    """The results before any search."""
    num, is_whole = len(queries), queries.is_whole and references.is_whole
    best = np.full(num, NOBODY) if is_whole else np.full(num, np.inf)
    return Found(best=best, nearest=np.full(num, NOBODY), ties=np.zeros(num, np.int64))


class Search:
    """References, sorted by class, and the bounds that spare most exact distances from them.

    Args:
        references: the points to find.
        queries: the points to find them for.
        norm: 'linf', 'l2' or 'l1'.
        typical: distance beyond which pairs should be rejected cheaply, in the units of the rows.
        rng: chooses the points that the bounds are made from; results do not depend on it.
    """

    def __init__(
        self, references: Points, queries: Points, norm: Norm, *, typical: float, rng: np.random.Generator
    ) -> None:
        self._search, is_whole = compiled_search(norm), queries.is_whole and references.is_whole
        self._ids = np.argsort(references.classes, kind="stable").astype(np.int64)
        self._classes = references.classes[self._ids]
        # The most varied values come first, so that pairs end early. Sums of floats keep their order, and so bits.
        varied = np.argsort(-references.rows[: 1 << 10].var(axis=0), kind="stable")
        columns = varied if is_whole else np.arange(len(varied))
        self._rows = in_chunks(references.rows, self._ids, columns)
        is_same = queries is references
        order = np.arange(len(queries))
        self._queries = self._rows if is_same else in_chunks(queries.rows, order, columns)
        self._places = np.argsort(self._ids) if is_same else order  # of the queries in their rows
        self._query_classes = queries.classes
        whole_zero = np.uint8(0) if norm == "linf" else np.int32(0)  # wide enough for a chunk
        self._part_zero = whole_zero if is_whole else np.float64(0)
        bound = make_bound(references.rows, norm, other_rows=queries.rows, typical=typical, rng=rng)
        features = bound.features(references.rows, self._ids)
        self._features = features if is_same else bound.features(queries.rows, order)
        self._blocks, self._scale = in_blocks(features), bound.scale
        self._margin = bound.margin(features, self._features)

    def all(self, found: Found, *, threads: int, progress: Progress | None = None) -> None:
        """Lowers `found` to the nearest reference of another class, for every query."""

        def search(rows: Indices) -> None:
            part = found.take(rows)
            self._run(rows, part, later_only=False, block_step=_FIRST_LOOK)  # what it finds is found again
            part.nearest[:], part.ties[:] = NOBODY, 0
            self._run(rows, part, later_only=False)
            found.put(rows, part)

        for _ in self._in_parallel(search, threads, progress):
            pass

    def smallest(self, start: float, *, threads: int, progress: Progress | None = None) -> tuple[Any, int, int]:
        """Smallest distance of all, with the first pair at it, where the queries are the references.

        Args:
            start: a distance that is not exceeded, in the numbers compared.
        """
        smallest: Pair = (start, NOBODY, NOBODY)

        def search(rows: Indices) -> Pair:
            best = np.full(len(rows), smallest[0])  # other threads may lower it meanwhile: an old one only costs time
            part = Found(best=best, nearest=np.full(len(rows), NOBODY), ties=np.zeros(len(rows), np.int64))
            self._run(rows, part, later_only=True)
            return first_pair(part, rows)

        for pair in self._in_parallel(search, threads, progress):
            smallest = min(smallest, pair)
        return smallest

    def _run(self, rows: Indices, found: Found, *, later_only: bool, block_step: int = 1) -> None:
        """Searches for a few queries; `later_only` leaves out references of classes before the query's own."""
        classes = self._query_classes[rows]
        starts = np.searchsorted(self._classes, classes, side="left")
        stops = np.searchsorted(self._classes, classes, side="right")
        own = np.stack([np.zeros_like(starts) if later_only else starts, stops], axis=1)
        places = self._places[rows]
        self._search(
            self._queries[places], self._features[places], own, self._rows, self._ids, self._blocks, block_step,
            found.best, found.nearest, found.ties, self._scale, self._margin,
            found.best.dtype.type(0), self._part_zero, self._blocks.dtype.type(0),
        )  # fmt: skip

    def _in_parallel(self, search: Callable[[Indices], T], threads: int, progress: Progress | None) -> Iterator[T]:
        """Results of `search` over parts of the queries, sorted by class; a KeyboardInterrupt drops what is waiting."""
        order = np.argsort(self._query_classes, kind="stable").astype(np.int64)
        size = max(1, min(_QUERIES_PER_CALL, _VALUES_PER_CALL // self._rows.size))
        parts = [order[start : start + size] for start in range(0, len(order), size)]
        done = 0
        with ThreadPoolExecutor(threads) as pool, closing(_results(pool, search, parts)) as results:
            for part, result in zip(parts, results, strict=True):
                done += len(part)
                if progress is not None:
                    progress(done, len(order))
                yield result


def _results(pool: ThreadPoolExecutor, search: Callable[[Indices], T], parts: list[Indices]) -> Generator[T]:
    """Results in the order of the parts; parts that have not begun are dropped when it is closed."""
    futures = [pool.submit(search, part) for part in parts]
    try:
        while futures:
            yield futures.pop(0).result()
    finally:
        for future in futures:
            future.cancel()


def first_pair(found: Found, rows: Indices) -> Pair:
    """The smallest distance of the queries `rows` and the first pair at it, smaller position first."""
    is_pair = found.nearest != NOBODY
    pairs = zip(found.best[is_pair], rows[is_pair], found.nearest[is_pair], strict=True)
    return min(((best, int(min(a, b)), int(max(a, b))) for best, a, b in pairs), default=(np.inf, NOBODY, NOBODY))


def default_threads() -> int:
    """As many threads as the user allows numerical libraries, else one for each core that this process may use."""
    for variable in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(variable, "")
        if value.isdecimal() and int(value):
            return int(value)
    return available_cores()


def search_all(
    queries: Points, references: Points, norm: Norm, *, threads: int | None = None, progress: Progress | None = None,
    found: Found | None = None,
) -> Found:  # fmt: skip
    """The nearest reference of another class for every query; `found` has distances that are not exceeded."""
    found = nothing_found(queries, references) if found is None else found
    rng = np.random.default_rng(0)
    expected = _sample_distances(queries, references, norm, rng)
    search = Search(references, queries, norm, typical=float(np.median(expected)), rng=rng)
    search.all(found, threads=threads or default_threads(), progress=progress)
    return found


def search_smallest(
    points: Points, norm: Norm, *, threads: int | None = None, progress: Progress | None = None
) -> Pair:
    """The smallest distance between two points of different class, with the first pair at it."""
    rng = np.random.default_rng(0)
    start = _sample_distances(points, points, norm, rng).min()
    search = Search(points, points, norm, typical=float(start), rng=rng)
    return search.smallest(start, threads=threads or default_threads(), progress=progress)


def _sample_distances(queries: Points, references: Points, norm: Norm, rng: np.random.Generator) -> NDArray[Any]:
    """Distances of some queries from the nearest of some references, which tell what is to be expected."""
    some = references.take(np.sort(rng.permutation(len(references))[:_SAMPLE_REFERENCES]))
    few = queries.take(np.sort(rng.permutation(len(queries))[:_SAMPLE_QUERIES]))
    found = nothing_found(few, some)
    Search(some, few, norm, typical=0.0, rng=rng).all(found, threads=1)
    return found.best
