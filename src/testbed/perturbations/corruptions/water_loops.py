"""How thick drops of water look: edges of the drops, distances to them, and a relief made of those, in whole numbers.

The published code takes these steps with OpenCV, to whose results they are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from testbed.perturbations.corruptions.compiled import compiled

_LOW, _HIGH = 50, 150  # gradients of an edge, and of what starts one
_TAN_22 = 13573  # tan(22.5 degrees), in units of 2^-15
_ONE, _DIAGONAL, _KNIGHT = 10000, 14000, 21969  # steps to the neighbours, in 10^-4 pixels
_FARTHEST = 20 * _ONE  # distances are cut there
_UNREACHED = 1 << 30


def _mirrored(place: int, size: int) -> int:
    """The pixel that stands at -1, or at `size`, beyond a row: its neighbour's neighbour."""
    return 1 if place < 0 else size - 2 if place >= size else place


def _find_edges(levels: Any, down: Any, right: Any, slope: Any, edges: Any, stack: Any) -> None:
    """Canny's edges of grey levels: 1 on an edge, else another number.

    Args:
        levels: (H, W) 0 to 255; beyond the rim, the rim's.
        down, right, slope, stack: room for numbers; `slope`, (H + 2, W + 2), has a rim of 0.
        edges: (H, W), for the result: 1 edge, 2 edge if it touches one, 0 none.
    Source: Canny, IEEE PAMI 1986; Sobel gradients, |x| + |y|, two thresholds, as in OpenCV.
    """
    height, width = levels.shape
    for y in range(height):
        above, row, below = levels[max(y - 1, 0)], levels[y], levels[min(y + 1, height - 1)]
        for x in range(width):
            left, next_ = max(x - 1, 0), min(x + 1, width - 1)
            step_right = above[next_] - above[left] + 2 * (row[next_] - row[left]) + below[next_] - below[left]
            step_down = below[left] - above[left] + 2 * (below[x] - above[x]) + below[next_] - above[next_]
            right[y, x], down[y, x] = step_right, step_down
            slope[y + 1, x + 1] = abs(step_right) + abs(step_down)
    depth = 0
    for y in range(height):
        for x in range(width):
            edges[y, x], here = 0, slope[y + 1, x + 1]
            if here <= _LOW:
                continue
            flat, steep = abs(right[y, x]) * _TAN_22, abs(down[y, x]) << 15
            if steep < flat:
                is_ridge = here > slope[y + 1, x] and here >= slope[y + 1, x + 2]
            elif steep > flat + (abs(right[y, x]) << 16):
                is_ridge = here > slope[y, x + 1] and here >= slope[y + 2, x + 1]
            else:
                side = -1 if (right[y, x] < 0) != (down[y, x] < 0) else 1
                is_ridge = here > slope[y, x + 1 - side] and here > slope[y + 2, x + 1 + side]
            if is_ridge:
                edges[y, x] = 1 if here > _HIGH else 2
            if edges[y, x] == 1:
                stack[depth], depth = y * width + x, depth + 1
    while depth:
        depth -= 1
        y, x = stack[depth] // width, stack[depth] % width
        for near_y in range(max(y - 1, 0), min(y + 2, height)):
            for near_x in range(max(x - 1, 0), min(x + 2, width)):
                if edges[near_y, near_x] == 2:
                    edges[near_y, near_x] = 1
                    stack[depth], depth = near_y * width + near_x, depth + 1


def _measure(edges: Any, distance: Any) -> None:
    """Distances to the nearest edge, in 10^-4 pixels, along steps of a king or a knight in chess.

    Args:
        edges: (H, W), 1 on an edge.
        distance: (H + 4, W + 4), for the result, with a rim of `_UNREACHED`.
    Source: Borgefors, Distance transformations in digital images, 1986, with the lengths that OpenCV has.
    """
    height, width = edges.shape
    for y in range(2, height + 2):
        row, reached = distance[y, 2:-2], _UNREACHED
        _reach(distance[y - 2], distance[y - 1], row)
        for x in range(width):
            reached = 0 if edges[y - 2, x] == 1 else min(row[x], reached + _ONE)
            row[x] = reached
    for y in range(height + 1, 1, -1):
        row, reached = distance[y, 2:-2], _UNREACHED
        before = row.copy()
        _reach(distance[y + 2], distance[y + 1], row)
        for x in range(width - 1, -1, -1):
            reached = min(before[x], min(row[x], reached + _ONE))
            row[x] = reached


def _reach(far: Any, near: Any, row: Any) -> None:
    """Sets a row of distances to those by way of the row beside it and the row beside that, which have a rim of 2."""
    far_left, far_right, straight = far[1:-3], far[3:-1], near[2:-2]
    left, right, wide_left, wide_right = near[1:-3], near[3:-1], near[:-4], near[4:]
    for x in range(len(row)):
        diagonal, knight = min(left[x], right[x]), min(min(far_left[x], far_right[x]), min(wide_left[x], wide_right[x]))
        row[x] = min(min(straight[x] + _ONE, diagonal + _DIAGONAL), min(knight + _KNIGHT, _UNREACHED))


def _sum_nine(plane: Any, out: Any) -> None:
    """Sums over 3 x 3 pixels, mirrored at the rim."""
    height, width = plane.shape
    for y in range(height):
        above, row, below = plane[_mirrored(y - 1, height)], plane[y], plane[_mirrored(y + 1, height)]
        last = above[1] + row[1] + below[1]
        here = above[0] + row[0] + below[0]
        for x in range(width):
            right = _mirrored(x + 1, width)
            following = above[right] + row[right] + below[right]
            out[y, x] = last + here + following
            last, here = here, following


def _equalise(levels: Any) -> None:
    """Spreads grey levels, in place, so that as many pixels lie in any range of them; a single one stays."""
    counts = np.zeros(256, np.int64)
    for level in levels.flat:
        counts[level] += 1
    lowest = 0
    while counts[lowest] == 0:
        lowest += 1
    if counts[lowest] == levels.size:
        return
    scale, total = np.float32(255) / np.float32(levels.size - counts[lowest]), 0
    table = np.zeros(256, np.int64)
    for level in range(lowest + 1, 256):
        total += counts[level]
        table[level] = np.int64(np.rint(np.float32(total) * scale))
    for y in range(levels.shape[0]):
        for x in range(levels.shape[1]):
            levels[y, x] = table[levels[y, x]]


def _relief(levels: Any, out: Any) -> None:
    """Grey levels as lit from one corner: a 3 x 3 filter, mirrored at the rim and cut to 0 to 255."""
    height, width = levels.shape
    for y in range(height):
        above, row, below = levels[_mirrored(y - 1, height)], levels[y], levels[_mirrored(y + 1, height)]
        for x in range(width):
            left, right = _mirrored(x - 1, width), _mirrored(x + 1, width)
            value = row[x] + row[right] + below[x] + 2 * below[right] - 2 * above[left] - above[x] - row[left]
            out[y, x] = min(max(value, 0), 255)


@compiled(_mirrored, _find_edges, _reach, _measure, _sum_nine, _equalise, _relief)
def thicken(levels: Any, out: Any) -> None:
    """Thickness of water in whole numbers, 0 to 255^2.

    Args:
        levels: (n, H, W) int64 grey levels of the drops, 0 to 255, 0 beside them.
        out: (n, H, W) int64, for the result.
    """
    n, height, width = levels.shape
    down, right, edges = np.empty((3, height, width), np.int64)
    slope = np.zeros((height + 2, width + 2), np.int64)
    distance = np.full((height + 4, width + 4), _UNREACHED)
    stack = np.empty(height * width, np.int64)
    for index in range(n):
        _find_edges(levels[index], down, right, slope, edges, stack)
        _measure(edges, distance)
        near = np.minimum(distance[2:-2, 2:-2], _FARTHEST)
        _sum_nine(near, down)
        down //= 9 * _ONE
        _equalise(down)
        _relief(down, right)
        _sum_nine(right, down)
        for y in range(height):
            for x in range(width):
                out[index, y, x] = levels[index, y, x] * ((2 * down[y, x] + 9) // 18)
