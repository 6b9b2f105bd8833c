"""Elastic deformation: a random affine map, then random displacements that vary smoothly over the image."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from testbed.perturbations.corruptions.chunks import chunks
from testbed.perturbations.corruptions.compiled import compiled
from testbed.perturbations.corruptions.corruption import Corruption, severities
from testbed.perturbations.corruptions.filters import border_indices, gaussian_filter, gaussian_weights
from testbed.randomness import SampleKeys

if TYPE_CHECKING:
    from torch import Tensor

_TRUNCATE = 3.0  # the Gaussian ends at so many sigma
Matrix = NDArray[np.float64]
Border = Literal["mirror", "constant"]
Edge = Literal["mirror", "reflect", "constant"]
_MIRROR, _REFLECT, _CONSTANT = range(3)  # the same for numba: about the outer pixels, about the outer rims, zeros


def elastic_transform(
    images: Tensor, *, keys: SampleKeys, alpha: float, sigma: float, jitter: float, border: Border = "mirror"
) -> Tensor:
    """`images` bent: mapped so that three points about the middle move at random, then each pixel displaced.

    The points (middle + s (1, 1), + s (1, -1), - s (1, 1), s a third of the shorter side) move by U(-jitter, jitter) in
    x and y; the affine map that does this is applied by linear interpolation, beyond the edges as `border` says.
    Then pixel (x, y) is taken from (x + dx, y + dy), edges mirrored about the outer rims; dx and dy are alpha times
    uniform noise in (-1, 1) smoothed by a Gaussian of `sigma`, one field for all channels.

    The `imagecorruptions` package has replaced this by another deformation. The published code of this one takes the
    middle of an image that is not square for (H / 2, W / 2) in place of (W / 2, H / 2), which is not followed.
    MNIST-C's published description says no more than "constant border": here that is 0, and of the affine map alone.

    Args:
        images: (n, C, H, W) float32 in [0, 1].
        keys: of the n samples.
        alpha: pixels that noise of 1 everywhere would displace by.
        sigma: of the Gaussian, in pixels.
        jitter: largest move of a point along x or y, in pixels.
        border: what the affine map finds outside the image: 'mirror', its pixels mirrored about the outer ones;
            'constant', zeros, towards which it interpolates from the outer pixels.
    Returns: (n, C, H, W) float32 in [0, 1]; the same bits in any batch.
    Source: Hendrycks & Dietterich, ICLR 2019, after Simard, Steinkraus & Platt, ICDAR 2003.
    """
    import torch

    out = torch.empty_like(images, memory_format=torch.contiguous_format)
    height, width = images.shape[2:]
    for part in chunks(images):
        some = keys.take(part.start, part.stop)
        maps = inverse_maps(some, height, width, jitter=jitter)
        moves = displacements(some, images[part], alpha=alpha, sigma=sigma)
        if images.device.type == "cpu":
            planes = _with_zero(images[part]).contiguous().numpy()
            edge = _CONSTANT if border == "constant" else _MIRROR
            _bend(planes, maps, moves.numpy(), edge, out[part].flatten(2).numpy())
        else:
            out[part] = bend_torch(images[part], torch.from_numpy(maps), moves, border=border)
    return out.clamp_(0, 1)


def inverse_maps(keys: SampleKeys, height: int, width: int, *, jitter: float) -> Matrix:
    """Where pixels come from: (n, 2, 3) float64 A with source (x, y) = A (x, y, 1)."""
    middle, step = np.array([width // 2, height // 2]), min(height, width) // 3
    points = middle + step * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    units = keys.uniform("elastic_transform/affine", (3, 2), dtype="float64").numpy()
    moved = points + jitter * (2 * units - 1)
    corners = np.concatenate([moved, np.ones((len(moved), 3, 1))], axis=2)
    return np.ascontiguousarray(np.linalg.solve(corners, np.broadcast_to(points, moved.shape)).transpose(0, 2, 1))


def displacements(keys: SampleKeys, images: Tensor, *, alpha: float, sigma: float) -> Tensor:
    """dx and dy in pixels, (n, 2, H, W) float32 on the device of `images`, whose shape they are for."""
    height, width = images.shape[2:]
    if not alpha:
        return images.new_zeros(len(images), 2, height, width)
    noise = keys.uniform("elastic_transform/displacement", (2, height, width), images.device).mul_(2).sub_(1)
    if images.device.type != "cpu":
        return gaussian_filter(noise, sigma, truncate=_TRUNCATE, mode="reflect").mul_(alpha)
    _smooth(noise.view(-1, height, width).numpy(), *_smoother(height, sigma), *_smoother(width, sigma))
    return noise.mul_(alpha)


@lru_cache(maxsize=16)
def _smoother(side: int, sigma: float) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """The Gaussian with reflected edges as a matrix (side, side), and where the numbers of its rows begin and end.

    A Gaussian wider than the image has no more than `side` different pixels to add up.
    """
    weights = gaussian_weights(sigma, truncate=_TRUNCATE)
    radius = len(weights) // 2
    sources = np.lib.stride_tricks.sliding_window_view(border_indices(side, radius, mode="reflect"), len(weights))
    matrix = np.zeros((side, side))
    np.add.at(matrix, (np.arange(side)[:, None], sources), weights)
    places = np.arange(side)
    return matrix.astype(np.float32), np.maximum(places - radius, 0), np.minimum(places + radius + 1, side)


def _smooth_columns(plane: Any, matrix: Any, first: Any, end: Any, line: Any, out: Any) -> None:
    """`matrix` times `plane`, transposed into `out`; four terms at a time, which halves the traffic to `line`."""
    width = plane.shape[1]
    for y in range(len(matrix)):
        line[:] = 0
        row, k = matrix[y], first[y]
        while k + 4 <= end[y]:
            a, b, c, d = plane[k], plane[k + 1], plane[k + 2], plane[k + 3]
            for x in range(width):
                line[x] += (row[k] * a[x] + row[k + 1] * b[x]) + (row[k + 2] * c[x] + row[k + 3] * d[x])
            k += 4
        while k < end[y]:
            a = plane[k]
            for x in range(width):
                line[x] += row[k] * a[x]
            k += 1
        for x in range(width):
            out[x, y] = line[x]


@compiled(_smooth_columns)
def _smooth(planes: Any, rows: Any, first: Any, end: Any, columns: Any, left: Any, right: Any) -> None:
    """Smooths planes (num_planes, H, W) in their places."""
    height, width = planes.shape[1:]
    turned, line = np.empty((width, height), np.float32), np.empty(max(height, width), np.float32)
    for index in range(len(planes)):
        _smooth_columns(planes[index], rows, first, end, line[:width], turned)
        _smooth_columns(turned, columns, left, right, line[:height], planes[index])


def _with_zero(images: Tensor) -> Tensor:
    """(n, C, H * W + 1): the pixels of `images` and then a zero, for places outside."""
    from torch.nn.functional import pad

    return pad(images.flatten(2), (0, 1))


def bend_torch(images: Tensor, maps: Tensor, moves: Tensor, *, border: Border = "mirror") -> Tensor:
    """`images` mapped by `maps` (n, 2, 3), then displaced by `moves` (n, 2, H, W): the reference, in plain torch."""
    import torch

    height, width = images.shape[2:]
    y = torch.arange(height, dtype=torch.float64, device=images.device)[:, None]
    x = torch.arange(width, dtype=torch.float64, device=images.device)
    source_x, source_y = maps.to(images.device)[..., None, None].unbind(1)
    mapped_x = source_x[:, 0] * x + source_x[:, 1] * y + source_x[:, 2]
    mapped_y = source_y[:, 0] * x + source_y[:, 1] * y + source_y[:, 2]
    mapped = _interpolated_torch(images, mapped_x, mapped_y, edge=border)
    return _interpolated_torch(mapped, x + moves[:, 0].double(), y + moves[:, 1].double(), edge="reflect")


def _interpolated_torch(images: Tensor, x: Tensor, y: Tensor, *, edge: Edge) -> Tensor:
    import torch

    n, channels, height, width = images.shape
    left, top = x.floor(), y.floor()
    across, down = (x - left).float()[:, None], (y - top).float()[:, None]
    pixels, lines = _with_zero(images), []
    for row in (top.long(), top.long() + 1):
        places = [_places_torch(row, left.long() + step, height, width, edge=edge) for step in (0, 1)]
        sources = [place.view(n, 1, -1).expand(-1, channels, -1) for place in places]
        first, second = (torch.gather(pixels, 2, source).view_as(images) for source in sources)
        lines.append(first + across * (second - first))
    return lines[0] + down * (lines[1] - lines[0])


def _places_torch(row: Tensor, column: Tensor, height: int, width: int, *, edge: Edge) -> Tensor:
    """Where in the pixels of `_with_zero` those of a row and a column are."""
    if edge == "constant":
        is_inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        return (row * width + column).where(is_inside, height * width)
    repeats_edge = edge == "reflect"
    row = _mirrored_torch(row, height, repeats_edge=repeats_edge)
    return row * width + _mirrored_torch(column, width, repeats_edge=repeats_edge)


def _mirrored_torch(index: Tensor, size: int, *, repeats_edge: bool) -> Tensor:
    period = 2 * size if repeats_edge else 2 * size - 2
    index = index.remainder(period)
    return index.where(index < size, period - index - int(repeats_edge))


def _mirrored(index: int, size: int, repeats_edge: int) -> int:
    if 0 <= index < size:
        return index
    period = 2 * size - 2 * (1 - repeats_edge)
    index %= period
    return index if index < size else period - index - repeats_edge


def _place(row: int, column: int, height: int, width: int, edge: int) -> int:
    if edge != _CONSTANT:
        return _mirrored(row, height, edge) * width + _mirrored(column, width, edge)
    return row * width + column if 0 <= row < height and 0 <= column < width else height * width


def _interpolate_row(image: Any, size: Any, xs: Any, ys: Any, edge: int, scratch: Any, out: Any) -> None:
    """Sets a row of `out` (C, W) to `image` (C, H * W + 1), see `_with_zero`, at points (x, y)."""
    (height, width), (places, weights) = size, scratch
    for i in range(width):
        left, top = math.floor(xs[i]), math.floor(ys[i])
        weights[0, i], weights[1, i] = xs[i] - left, ys[i] - top
        if 0 <= left < width - 1 and 0 <= top < height - 1:
            place = top * width + left
            places[0, i], places[1, i], places[2, i], places[3, i] = place, place + 1, place + width, place + width + 1
        else:
            for corner in range(4):
                places[corner, i] = _place(top + corner // 2, left + corner % 2, height, width, edge)
    for channel in range(len(image)):
        plane, target = image[channel], out[channel]
        for i in range(width):
            upper, lower = plane[places[0, i]], plane[places[2, i]]
            upper += weights[0, i] * (plane[places[1, i]] - upper)
            lower += weights[0, i] * (plane[places[3, i]] - lower)
            target[i] = upper + weights[1, i] * (lower - upper)


@compiled(_mirrored, _place, _interpolate_row)
def _bend(images: Any, maps: Any, moves: Any, edge: int, out: Any) -> None:
    """`bend_torch` of images (n, C, H * W + 1) to results (n, C, H * W) for numba, to the same bits."""
    height, width = moves.shape[2:]
    # unsigned places, which need no check for negative ones at every access
    scratch = np.empty((4, width), np.uint32), np.empty((2, width), np.float32)
    xs, ys, mapped = np.empty(width), np.empty(width), np.empty(images.shape[1:], np.float32)
    for index in range(len(images)):
        a, dx, dy = maps[index], moves[index, 0], moves[index, 1]
        for y in range(height):
            row = slice(y * width, (y + 1) * width)
            for x in range(width):
                xs[x] = a[0, 0] * x + a[0, 1] * y + a[0, 2]
                ys[x] = a[1, 0] * x + a[1, 1] * y + a[1, 2]
            _interpolate_row(images[index], (height, width), xs, ys, edge, scratch, mapped[:, row])
        for y in range(height):
            row = slice(y * width, (y + 1) * width)
            for x in range(width):
                xs[x], ys[x] = x + dx[y, x], y + dy[y, x]
            _interpolate_row(mapped, (height, width), xs, ys, _REFLECT, scratch, out[index][:, row])


_NAMES = "alpha sigma jitter"
_MNIST_C = severities(
    _NAMES, (56, 19.6, 2.8), (56, 2.24, 5.6), (1.4, 0.28, 0.56), (1.96, 0.28, 0.56), (3.36, 0.28, 0.56)
)

CORRUPTIONS = (
    Corruption(
        name="elastic_transform",
        group="digital",
        function=elastic_transform,
        parameters={
            "imagenet224": severities(
                _NAMES, (488, 170.8, 24.4), (488, 19.52, 48.8), (12.2, 2.44, 4.88), (17.08, 2.44, 4.88),
                (29.28, 2.44, 4.88),
            ),
            "tinyimagenet64": severities(
                _NAMES, (0, 0, 5.12), (3.2, 19.2, 3.84), (6.4, 5.12, 3.84), (6.4, 1.92, 1.92), (10.24, 1.92, 1.28)
            ),
            "cifar32": severities(
                _NAMES, (0, 0, 2.56), (1.6, 6.4, 2.24), (2.56, 1.92, 1.92), (3.2, 1.28, 1.6), (3.2, 0.96, 0.96)
            ),
            "mnist28": tuple({**row, "border": "constant"} for row in _MNIST_C),
        },
        description="an affine jitter and smooth displacements",
    ),
)  # fmt: skip
