"""Filters that several corruptions share: compiled loops on the CPU, the same sums in torch on other devices.

Every sum has a fixed order, so that an image comes out with the same bits in any batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from testbed.perturbations.corruptions import filter_loops as loops

if TYPE_CHECKING:
    from torch import Tensor

Mode = Literal["nearest", "reflect", "mirror"]
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def gaussian_filter(images: Tensor, sigma: float, *, truncate: float = 4.0, mode: Mode) -> Tensor:
    """`images` smoothed by a Gaussian along rows and columns, as a new tensor.

    Args:
        images: (n, C, H, W) float32.
        sigma: standard deviation in pixels; the radius may exceed the side.
        truncate: the weights end at int(truncate * sigma + 0.5) pixels.
        mode: what lies beyond the edge, see `border_indices`.
    Returns: (n, C, H, W) float32; summed in float64 in the order of scipy.ndimage.gaussian_filter.
    """
    return separable_filter(images, gaussian_weights(sigma, truncate=truncate), mode=mode)


def box_filter(images: Tensor, size: int, *, mode: Mode) -> Tensor:
    """Mean of `images` (n, C, H, W) over `size` x `size` pixels, `size` odd, float32; sums of integers are exact."""
    return separable_filter(images, np.ones(size), mode=mode).div_(size * size)


def separable_filter(images: Tensor, weights: Floats, *, mode: Mode) -> Tensor:
    """`images` (n, C, H, W) correlated with the same odd number of symmetric weights along columns, then rows."""
    rows, columns = (border_indices(size, len(weights) // 2, mode=mode) for size in images.shape[2:])
    if on_cpu(images):
        return _on_planes(loops.smooth, images, weights, rows, columns)
    return smooth_torch(images.double(), weights, rows, columns).float()


def correlate(images: Tensor, kernel: Floats, *, mode: Mode) -> Tensor:
    """`images` (n, C, H, W) float32 correlated with a kernel of odd side, symmetric left-right and top-bottom."""
    radius = len(kernel) // 2
    rows, columns = (border_indices(size, radius, mode=mode) for size in images.shape[2:])
    if not on_cpu(images):
        return _correlate_torch(images, kernel, rows, columns)
    quarter = kernel[: radius + 1, : radius + 1].astype(np.float32)
    plateau = quarter[radius, radius]
    is_level = np.logical_and.accumulate(np.isclose(quarter, plateau, rtol=1e-6, atol=0)[::-1])[::-1]
    runs = np.maximum(2 * is_level.sum(axis=0) - 1, 0)
    rest = np.where(is_level, np.float32(0), quarter)
    rest[radius] /= 2  # the loop adds the row to itself
    return _on_planes(loops.correlate, images, plateau, runs, rest, rows, columns)


def line_filter(images: Tensor, *, radius: int, sigma: float, angles: Tensor) -> Tensor:
    """`images` blurred along a line that starts at each pixel, as a new tensor: ImageMagick's motion blur.

    Sample i = 0 ... 2 radius lies ceil(i cos a - 1/2) pixels to the right and ceil(i sin a - 1/2) down, replicated
    beyond the edge, and weighs exp(-i^2 / (2 sigma^2)). The line has one side, so the picture moves too.

    Args:
        images: (n, C, H, W) float32.
        radius: half the number of samples.
        sigma: in pixels.
        angles: (n,) in radians.
    Returns: (n, C, H, W) float32.
    """
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    weights = (weights / weights.sum()).astype(np.float32)
    turned = angles.double().cpu().numpy()[:, None]  # on the CPU always: an offset must not depend on the device
    right = np.ceil(steps * np.cos(turned) - 0.5).astype(np.int64)
    down = np.ceil(steps * np.sin(turned) - 0.5).astype(np.int64)
    if on_cpu(images):
        return _on_planes(loops.add_along_lines, images, weights, right, down, images.shape[1])
    return _line_torch(images, weights, right, down)


def clipped_zoom(images: Tensor, factor: float) -> Tensor:
    """The middle of `images` (n, C, H, W) float32 enlarged by `factor` >= 1 to the same size, see `zoom_sum`."""
    return zoom_sum(images, (factor,))


def zoom_sum(images: Tensor, factors: Sequence[float]) -> Tensor:
    """Sum over `factors` (each >= 1) of `images` (n, C, H, W) enlarged about their middle, float32.

    The middle ceil(side / factor) pixels are enlarged by linear interpolation, their outer pixels staying where they
    are (scipy.ndimage.zoom of order 1), to round(that * factor) pixels, of which the middle `side` are kept.
    """
    grids = [[_zoom_grid(size, factor) for factor in factors] for size in images.shape[2:]]
    places = [np.stack([first for first, _ in axis]) for axis in grids]
    weights = [np.stack([weight for _, weight in axis]) for axis in grids]
    if on_cpu(images):
        return _on_planes(loops.add_zooms, images, places[0], weights[0], places[1], weights[1])
    return _zooms_torch(images, places, weights)


def on_cpu(images: Tensor) -> bool:
    """Whether `images` are where compiled loops can reach them; elsewhere the torch forms run."""
    return images.device.type == "cpu"


def gaussian_weights(sigma: float, *, truncate: float = 4.0) -> Floats:
    """Normalised Gaussian weights, (2 int(truncate sigma + 1/2) + 1,)."""
    radius = int(truncate * sigma + 0.5)
    weights = np.exp(-0.5 / (sigma * sigma) * np.arange(-radius, radius + 1) ** 2)
    return np.asarray(weights / weights.sum())


def border_indices(size: int, radius: int, *, mode: Mode) -> Indices:
    """Which pixel of a row of `size` stands at -radius ... size - 1 + radius, (size + 2 radius,).

    Args:
        mode: 'nearest' (a a|a b c|c c), 'reflect' (b a|a b c|c b) or 'mirror' (c b|a b c|b a), scipy's names.
    """
    places: Indices = np.arange(-radius, size + radius, dtype=np.int64)
    if mode == "nearest":
        return places.clip(0, size - 1)
    period = 2 * size if mode == "reflect" else max(2 * size - 2, 1)
    places %= period
    return np.where(places < size, places, period - places - (mode == "reflect"))


def _zoom_grid(size: int, factor: float) -> tuple[Indices, NDArray[np.float32]]:
    """For each pixel of an enlarged side: the pixel left of where it comes from, and the weight of the next one."""
    crop = max(math.ceil(size / factor), 2)
    enlarged = max(round(crop * factor), size)
    places = (np.arange(size) + (enlarged - size) // 2) * ((crop - 1) / (enlarged - 1))
    first = np.minimum(np.floor(places).astype(np.int64), crop - 2)
    return first + (size - crop) // 2, (places - first).astype(np.float32)


def _on_planes(loop: loops.Loop, images: Tensor, *arguments: object) -> Tensor:
    """What a compiled loop makes of each channel of each image."""
    import torch

    images = images.contiguous()
    out = torch.empty_like(images)
    height, width = images.shape[2:]
    loop(images.view(-1, height, width).numpy(), *arguments, out.view(-1, height, width).numpy())
    return out


def smooth_torch(images: Tensor, weights: Floats, rows: Indices, columns: Indices) -> Tensor:
    """`separable_filter` in torch: `images` float64, `rows` and `columns` from `border_indices`."""
    radius = len(weights) // 2
    for dim, indices in ((2, rows), (3, columns)):
        size, padded = images.shape[dim], _taken(images, indices, dim=dim)
        images = images * weights[radius]
        for tap in range(radius):
            pair = padded.narrow(dim, tap, size) + padded.narrow(dim, 2 * radius - tap, size)
            images += pair.mul_(weights[tap])
    return images


def _correlate_torch(images: Tensor, kernel: Floats, rows: Indices, columns: Indices) -> Tensor:
    import torch

    (height, width), radius = images.shape[2:], len(kernel) // 2
    padded = _taken(_taken(images, rows, dim=2), columns, dim=3)
    total = torch.zeros_like(images)
    for x in range(radius + 1):
        column = torch.zeros_like(padded[:, :, :height])
        for y in range(radius + 1):
            if kernel[y, x]:
                column += kernel[y, x] * _both(padded, y, 2 * radius - y, size=height, dim=2)
        total += _both(column, x, 2 * radius - x, size=width, dim=3)
    return total


def _both(padded: Tensor, first: int, second: int, *, size: int, dim: int) -> Tensor:
    """Sum of the parts of `padded` that start at the two places, which counts once where they are the same."""
    part = padded.narrow(dim, first, size)
    return part if first == second else part + padded.narrow(dim, second, size)


def _line_torch(images: Tensor, weights: NDArray[np.float32], right: Indices, down: Indices) -> Tensor:
    import torch

    (n, channels, height, width), device = images.shape, images.device
    rows, columns = torch.arange(height, device=device), torch.arange(width, device=device)
    total = torch.zeros_like(images)
    for tap, weight in enumerate(weights.tolist()):
        y = (rows + torch.from_numpy(down[:, tap : tap + 1]).to(device)).clamp_(0, height - 1)
        x = (columns + torch.from_numpy(right[:, tap : tap + 1]).to(device)).clamp_(0, width - 1)
        places = (y[:, :, None] * width + x[:, None, :]).flatten(1)[:, None].expand(n, channels, -1)
        total += weight * images.flatten(2).gather(2, places).view_as(images)
    return total


def _zooms_torch(images: Tensor, places: list[Indices], weights: list[NDArray[np.float32]]) -> Tensor:
    import torch

    total = torch.zeros_like(images)
    for zoom in range(len(places[0])):
        layer = images
        for dim, shape in ((2, (-1, 1)), (3, (-1,))):
            first = places[dim - 2][zoom]
            low, high = _taken(layer, first, dim=dim), _taken(layer, first + 1, dim=dim)
            layer = low + torch.from_numpy(weights[dim - 2][zoom]).to(images.device).view(shape) * (high - low)
        total += layer
    return total


def _taken(images: Tensor, indices: Indices, *, dim: int) -> Tensor:
    import torch

    return images.index_select(dim, torch.from_numpy(indices).to(images.device))
