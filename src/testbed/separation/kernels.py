"""The compiled loops of the search: bounds in float32 for many references at once, then exact distances for the few.

Points are in `in_chunks` form, features in `in_blocks` form. A norm is a number here; each gets a compiled loop of its
own, on first use, as numba is slow to import, and kept on disk where that is possible.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from testbed.records import Norm

# Compiled code on disk is made anew when this file changes, not when another does: its constants are all here.
CHUNK = 64  # values compared before looking whether a pair is already too far apart
LANES = 128  # references whose bounds are computed at a time
STAGE = 8  # features added before looking whether any of them is still near enough
SLACK = 1 + 1e-5  # for the rounding of a bound's sum: 64 terms err by less than 64 * 2^-24

_LINF, _L2, _L1 = 0, 1, 2
_NUMBERS = {"linf": _LINF, "l2": _L2, "l1": _L1}
GROUP = 16  # lanes that are passed over together


def _larger(a: Any, b: Any) -> Any:
    return a if a > b else b


def _whole_gap(a: Any, b: Any) -> Any:
    """|a - b| of 8-bit values in 8 bits."""
    return np.uint8((a if a > b else b) - (b if a > b else a))


def _gap(a: Any, b: Any) -> Any:
    return abs(a - b)


def _as_whole(bound: float, like: Any) -> Any:
    return np.uint8(min(bound, 255.0))


def _as_like(bound: float, like: Any) -> Any:
    """A bound in the type of the features."""
    return np.float32(bound)


def _add_whole(part: Any, a: Any, b: Any, norm: int) -> Any:
    """`_add` of 8-bit values in 32 bits."""
    difference = np.int32(a) - np.int32(b)
    return np.int32(part + (difference * difference if norm == _L2 else abs(difference)))


def _add(part: Any, a: Any, b: Any, norm: int) -> Any:
    """`part` with the difference of two values added (l2: squared)."""
    difference = np.float64(a) - np.float64(b)
    return part + (difference * difference if norm == _L2 else abs(difference))


def _threshold(best: Any, norm: int, scale: float, margin: float, like: Any) -> Any:
    """The largest bound with which a pair can be as near as `best`."""
    root = np.sqrt(np.float64(best)) if norm == _L2 else np.float64(best)
    bound = (root / scale * SLACK + margin) * SLACK
    return _as_like(bound * bound if norm == _L2 else bound, like)


def _four_more(bound: Any, d0: Any, d1: Any, d2: Any, d3: Any, norm: int) -> Any:
    """A bound with four more differences of features."""
    if norm == _LINF:
        return _larger(bound, _larger(_larger(d0, d1), _larger(d2, d3)))
    if norm == _L2:
        return bound + ((d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3))
    return bound + ((d0 + d1) + (d2 + d3))


def _searcher(norm: int) -> Callable[..., None]:
    """The function, for numba to compile, that searches for a few queries in one norm.

    It is long because it must be: handing an array to another function costs more than a bound does.
    """

    def search(
        queries: Any, features: Any, skips: Any, references: Any, ids: Any, blocks: Any, block_step: int,
        best: Any, nearest: Any, ties: Any, scale: float, margin: float,
        total_zero: Any, part_zero: Any, bound_zero: Any,
    ) -> None:  # fmt: skip
        """Lowers `best` and `nearest` of each query to its nearest reference outside skips[0] .. skips[1] - 1.

        `ties` counts the references at that distance; of these `nearest` is the one with the lowest id. The zeros give
        sums their types.
        """
        bounds = np.empty(LANES, blocks.dtype)
        for block in range(0, len(blocks), block_step):
            first, last = block * LANES, min(block * LANES + LANES, len(references))
            for query in range(len(queries)):
                if skips[query, 0] <= first and last <= skips[query, 1]:
                    continue
                threshold = _threshold(best[query], norm, scale, margin, bound_zero)
                for lane in range(LANES):
                    bounds[lane] = bound_zero
                near = np.int32(0)
                for stage in range(features.shape[1] // STAGE):
                    for four in range(STAGE // 4):
                        f = stage * STAGE + four * 4
                        q0, q1, q2, q3 = (
                            features[query, f],
                            features[query, f + 1],
                            features[query, f + 2],
                            features[query, f + 3],
                        )
                        for lane in range(LANES):
                            d0, d1 = _gap(blocks[block, f, lane], q0), _gap(blocks[block, f + 1, lane], q1)
                            d2, d3 = _gap(blocks[block, f + 2, lane], q2), _gap(blocks[block, f + 3, lane], q3)
                            bounds[lane] = _four_more(bounds[lane], d0, d1, d2, d3, norm)
                    near = np.int32(0)
                    for lane in range(LANES):
                        near = np.int32(near + (1 if bounds[lane] <= threshold else 0))
                    if near == 0:
                        break
                if near == 0:
                    continue
                for group in range(LANES // GROUP):
                    near = np.int32(0)
                    for lane in range(GROUP):
                        near = np.int32(near + (1 if bounds[group * GROUP + lane] <= threshold else 0))
                    if near == 0:
                        continue
                    for lane in range(GROUP):
                        reference = first + group * GROUP + lane
                        if bounds[group * GROUP + lane] > threshold or reference >= last:
                            continue
                        if skips[query, 0] <= reference < skips[query, 1]:
                            continue
                        limit = best[query]
                        distance = total_zero
                        for chunk in range(queries.shape[1]):
                            part = part_zero
                            for column in range(CHUNK):
                                a, b = queries[query, chunk, column], references[reference, chunk, column]
                                part = _larger(part, _gap(a, b)) if norm == _LINF else _add(part, a, b, norm)
                            distance = max(distance, part) if norm == _LINF else distance + part
                            if distance > limit:
                                break
                        if distance < limit:
                            best[query], nearest[query], ties[query] = distance, ids[reference], 1
                            threshold = _threshold(distance, norm, scale, margin, bound_zero)
                        elif distance == limit:
                            nearest[query] = min(nearest[query], ids[reference])
                            ties[query] += 1

    search.__qualname__ = f"search_{norm}"  # names the cache file: one for each norm
    return search


@cache
def _numba() -> Any:
    """The numba module, told how to compile the functions that the loops call."""
    import numba

    for function in (_larger, _threshold, _four_more):
        numba.extending.register_jitable(forceinline=True)(function)

    @numba.extending.overload(_gap, jit_options={"forceinline": True})
    def choose_gap(a: Any, b: Any) -> Any:
        return _whole_gap if a == b == numba.uint8 else _gap

    @numba.extending.overload(_as_like, jit_options={"forceinline": True})
    def choose_type(bound: float, like: Any) -> Any:
        return _as_whole if like == numba.uint8 else _as_like

    @numba.extending.overload(_add, jit_options={"forceinline": True})
    def choose_sum(part: Any, a: Any, b: Any, norm: int) -> Any:
        return _add_whole if a == b == numba.uint8 else _add

    return numba


@cache
def compiled_search(norm: Norm) -> Callable[..., None]:
    """The inner loop for a norm, which lets other threads run."""
    search = _searcher(_NUMBERS[norm])
    try:
        compiled: Callable[..., None] = _numba().njit(cache=True, nogil=True)(search)
    except RuntimeError:  # neither the source folder nor the user's cache folder can be written: compile every time
        compiled = _numba().njit(nogil=True)(search)
    return compiled
