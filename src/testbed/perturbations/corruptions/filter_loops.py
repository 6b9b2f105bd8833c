"""The filters' loops over the pixels of planes (num_planes, H, W): images of one channel after another.

Inner loops run along a row and have no branches: the compiler makes vector code of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from testbed.perturbations.corruptions.compiled import Loop, compiled

__all__ = ["LEVEL_ROUNDING", "Loop", "add_along_lines", "add_zooms", "correlate", "smooth", "smooth_moved"]

LEVEL_ROUNDING = 2.0**-12  # grey levels: further from a whole one, a float32 in [0, 1] does not stand for it
_BLOCK = 2048  # numbers: a few such lines fit into the nearest cache


def smooth_plane(plane: Any, weights: Any, rows: Any, columns: Any, out: Any) -> None:
    """Correlates a plane with symmetric weights along columns, then rows, in float64.

    `rows` and `columns` say which pixel stands where beyond the edges. The order of additions is scipy's.
    """
    height, width = plane.shape
    last = len(weights) - 1
    radius = last // 2
    line, padded = np.empty(width), np.empty(width + last)
    for y in range(height):
        middle, weight = plane[y], weights[radius]
        for x in range(width):
            line[x] = middle[x] * weight
        for tap in range(radius):
            above, below, weight = plane[rows[y + tap]], plane[rows[y + last - tap]], weights[tap]
            for x in range(width):
                line[x] += (np.float64(above[x]) + np.float64(below[x])) * weight
        for x in range(width + last):
            padded[x] = line[columns[x]]
        weight = weights[radius]
        for x in range(width):
            line[x] *= weight
        for tap in range(radius):
            left, right, weight = padded[tap : tap + width], padded[last - tap : last - tap + width], weights[tap]
            for x in range(width):
                line[x] += (left[x] + right[x]) * weight
        target = out[y]
        for x in range(width):
            target[x] = line[x]


@compiled(smooth_plane)
def smooth(planes: Any, weights: Any, rows: Any, columns: Any, out: Any) -> None:
    """`smooth_plane` of every plane."""
    for index in range(len(planes)):
        smooth_plane(planes[index], weights, rows, columns, out[index])


@compiled(smooth_plane)
def smooth_moved(images: Any, sources: Any, weights: Any, rows: Any, columns: Any, out: Any) -> None:
    """Every plane of `images` (n, C, H, W) smoothed, cut to 8 bits, its pixels moved, and smoothed again, in float64.

    The pixel at each place comes from `sources` (n, H W). A float32 that stands for a whole grey level is that level.
    """
    n, channels, height, width = images.shape
    exact, soft, moved = np.empty((height, width)), np.empty((height, width)), np.empty((height, width))
    for index in range(n):
        for channel in range(channels):
            plane = images[index, channel]
            for y in range(height):
                for x in range(width):
                    level = np.float64(plane[y, x]) * 255
                    nearest = np.rint(level)
                    exact[y, x] = (nearest if abs(level - nearest) < LEVEL_ROUNDING else level) / 255
            smooth_plane(exact, weights, rows, columns, soft)
            levels, pixels = soft.ravel(), moved.ravel()
            for place in range(height * width):
                pixels[place] = np.floor(levels[sources[index, place]] * 255) / 255
            smooth_plane(moved, weights, rows, columns, out[index, channel])


@compiled()
def correlate(planes: Any, plateau: Any, runs: Any, quarter: Any, rows: Any, columns: Any, out: Any) -> None:
    """Correlates every plane with a kernel that is symmetric both ways and has a plateau around its middle.

    Column `x` of the kernel has the value `plateau` on the `runs[x]` rows around the middle one; what it has beyond is
    in `quarter`, up to the middle. Running sums down the padded plane, which grow and so are float64, give the sum over
    a run in one step. A block of padded rows is one line of numbers: what the last columns get from the row below is
    never used.
    """
    height, width = planes.shape[1:]
    last = 2 * (len(quarter) - 1)
    step = width + last  # from a row to the next
    padded, sums = np.empty((height + last) * step, np.float32), np.zeros((height + last + 1) * step)
    block = max(_BLOCK // step, 1) * step
    column, total = np.zeros(block + last, np.float32), np.empty(block, np.float32)
    for index in range(len(planes)):
        for y in range(height + last):
            source, row = planes[index, rows[y]], padded[y * step : (y + 1) * step]
            before, after = sums[y * step : (y + 1) * step], sums[(y + 1) * step : (y + 2) * step]
            for x in range(step):
                row[x] = source[columns[x]]
            for x in range(step):
                after[x] = before[x] + row[x]
        for start in range(0, height * step, block):
            size = min(block, height * step - start)
            total[:] = 0
            for x_tap in range(len(quarter)):
                first = start + (last // 2 - runs[x_tap] // 2) * step
                above, below = sums[first : first + size], sums[first + runs[x_tap] * step :][:size]
                for i in range(size):
                    column[i] = np.float32(below[i] - above[i]) * plateau
                for tap in range(len(quarter)):
                    weight = quarter[tap, x_tap]
                    if weight != 0:
                        above, below = padded[start + tap * step :][:size], padded[start + (last - tap) * step :][:size]
                        for i in range(size):
                            column[i] += (above[i] + below[i]) * weight
                left, right = column[x_tap : x_tap + size], column[last - x_tap : last - x_tap + size]
                share = np.float32(0.5 if 2 * x_tap == last else 1)
                for i in range(size):
                    total[i] += (left[i] + right[i]) * share
            for place in range(0, size, step):
                out[index, (start + place) // step] = total[place : place + width]


@compiled()
def add_along_lines(planes: Any, weights: Any, right: Any, down: Any, channels: int, out: Any) -> None:
    """Adds up samples `right` and `down` (num_images, num_samples) of each pixel; edges are replicated."""
    height, width = planes.shape[1:]
    for index in range(len(planes)):
        plane, across, along = planes[index], right[index // channels], down[index // channels]
        for y in range(height):
            target = out[index, y]
            target[:] = 0
            for tap in range(len(weights)):
                weight = weights[tap]
                row = plane[min(max(y + along[tap], 0), height - 1)]
                step = min(max(across[tap], -width), width)
                start, stop = max(-step, 0), min(width - step, width)
                first, last = row[0] * weight, row[width - 1] * weight
                for x in range(start):
                    target[x] += first
                inner, source = target[start:stop], row[start + step : stop + step]
                for x in range(stop - start):
                    inner[x] += source[x] * weight
                for x in range(stop, width):
                    target[x] += last


@compiled()
def add_zooms(planes: Any, rows: Any, row_weights: Any, columns: Any, column_weights: Any, out: Any) -> None:
    """Adds up planes enlarged by linear interpolation; the arrays are (num_zooms, H) and (num_zooms, W)."""
    height, width = planes.shape[1:]
    line = np.empty(width, np.float32)
    for index in range(len(planes)):
        plane = planes[index]
        for y in range(height):
            target = out[index, y]
            target[:] = 0
            for zoom in range(len(rows)):
                above, below, weight = plane[rows[zoom, y]], plane[rows[zoom, y] + 1], row_weights[zoom, y]
                for x in range(width):
                    line[x] = above[x] + weight * (below[x] - above[x])
                places, weights = columns[zoom], column_weights[zoom]
                for x in range(width):
                    place = places[x]
                    target[x] += line[place] + weights[x] * (line[place + 1] - line[place])
