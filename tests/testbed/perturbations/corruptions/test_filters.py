"""Filters: their values are scipy's, and the compiled and the torch forms agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import ndimage
from tests.corruption_images import photo

from testbed.perturbations.corruptions import filters
from testbed.perturbations.corruptions.filters import (
    border_indices,
    box_filter,
    clipped_zoom,
    correlate,
    gaussian_filter,
    line_filter,
    zoom_sum,
)

MODES = pytest.mark.parametrize("mode", ["nearest", "reflect", "mirror"])
# A kernel with a plateau in its middle, one without, and one whose columns have runs of different lengths.
KERNELS = {
    "box": np.full((5, 5), 0.04),
    "peak": np.outer([1, 2, 4, 2, 1], [1, 3, 5, 3, 1]) / 130,
    "cross": np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]]) / 5,
    "point": np.ones((1, 1)),
}


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("nearest", [0, 0, 0, 1, 2, 2, 2]), ("reflect", [1, 0, 0, 1, 2, 2, 1]), ("mirror", [2, 1, 0, 1, 2, 1, 0])],
)
def test_edges_are_continued_as_scipy_names_them(mode: filters.Mode, expected: list[int]) -> None:
    assert border_indices(3, 2, mode=mode).tolist() == expected


@MODES
def test_edges_continue_beyond_several_sides(mode: filters.Mode) -> None:
    line = np.arange(5.0)
    far = ndimage.correlate1d(line, [1.0, *[0.0] * 38], mode=mode)  # what stands 19 places to the left
    assert border_indices(5, 19, mode=mode)[:5].tolist() == far.tolist()


@MODES
@pytest.mark.parametrize(("height", "width"), [(8, 8), (24, 40)])
@pytest.mark.parametrize(("sigma", "truncate"), [(0.4, 4.0), (1.5, 4.0), (2.4, 3.0), (30.0, 3.0)])
def test_gaussian_has_the_bits_of_scipy(
    mode: filters.Mode, height: int, width: int, sigma: float, truncate: float
) -> None:
    images = photo(height, width, n=1)
    smooth = gaussian_filter(images, sigma, truncate=truncate, mode=mode)
    for ours, plane in zip(smooth[0], images[0].double().numpy(), strict=True):
        expected = ndimage.gaussian_filter(plane, sigma, truncate=truncate, mode=mode)
        assert np.array_equal(ours.numpy(), expected.astype(np.float32))


@MODES
def test_box_is_the_mean_of_a_square(mode: filters.Mode) -> None:
    images = (photo(9, 12, 1, n=1) * 255).round()
    expected = ndimage.uniform_filter(images[0, 0].double().numpy(), 3, mode=mode)
    assert np.allclose(box_filter(images, 3, mode=mode)[0, 0], expected, atol=1e-4, rtol=0)
    assert (box_filter(images, 3, mode=mode) * 9).round().sum() == pytest.approx(expected.sum() * 9, abs=0.1)


@MODES
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("height", "width"), [(8, 8), (70, 90)])
def test_correlation_has_the_values_of_scipy(mode: filters.Mode, name: str, height: int, width: int) -> None:
    images = photo(height, width, n=1)
    for ours, plane in zip(correlate(images, KERNELS[name], mode=mode)[0], images[0].double().numpy(), strict=True):
        assert np.allclose(ours, ndimage.correlate(plane, KERNELS[name], mode=mode), atol=2e-6, rtol=0)


def test_line_starts_at_the_pixel_and_weights_fall_off() -> None:
    """At angle 0 the three samples of radius 1 lie 0, 1 and 2 pixels to the right; beyond the edge it is replicated."""
    row = torch.tensor([0.0, 1.0, 0.0, 0.5])
    images = row.expand(1, 1, 2, 4)
    weights = np.exp([0.0, -0.5, -2.0])
    near, next_one, far = (weights / weights.sum()).tolist()
    expected = [next_one, near + 0.5 * far, 0.5 * (next_one + far), 0.5]
    line = line_filter(images, radius=1, sigma=1, angles=torch.zeros(1))
    assert torch.allclose(line, torch.tensor(expected).expand(1, 1, 2, 4), atol=1e-7)


@pytest.mark.parametrize("degrees", [-135, -90, -45, -20, 0, 33, 45])
def test_samples_lie_at_rounded_steps_along_the_angle(degrees: float) -> None:
    """A single bright pixel returns at minus the offsets (ceil(i cos a - 1/2), ceil(i sin a - 1/2)) of the samples."""
    images = torch.zeros(1, 1, 41, 41)
    images[0, 0, 20, 20] = 1
    angle = math.radians(degrees)
    expected = np.zeros((41, 41))
    weights = np.exp(-(np.arange(11) ** 2) / (2 * 3.0**2))
    for step, weight in enumerate(weights / weights.sum()):
        right, down = math.ceil(step * math.cos(angle) - 0.5), math.ceil(step * math.sin(angle) - 0.5)
        expected[20 - down, 20 - right] += weight
    line = line_filter(images, radius=5, sigma=3, angles=torch.tensor([angle], dtype=torch.float64))
    assert np.allclose(line[0, 0], expected, atol=1e-6)


def test_lines_longer_than_the_image_replicate_its_edge() -> None:
    images = photo(8, 8, n=1)
    far = line_filter(images, radius=200, sigma=1e6, angles=torch.zeros(1))
    assert torch.allclose(far, images[..., -1:].expand_as(images), atol=0.02)


def test_each_image_has_its_own_line() -> None:
    images, angles = photo(16, 16, n=3), torch.tensor([0.0, 0.7, -0.7])
    together = line_filter(images, radius=4, sigma=2, angles=angles)
    for index in range(3):
        alone = line_filter(images[index : index + 1], radius=4, sigma=2, angles=angles[index : index + 1])
        assert torch.equal(alone[0], together[index])


@pytest.mark.parametrize("factor", [1.0, 1.03, 1.11, 1.25, 2.0, 3.0, 4.5])
@pytest.mark.parametrize(("height", "width"), [(8, 8), (32, 32), (96, 160)])
def test_zoom_is_the_middle_of_scipys_zoom_of_the_middle(factor: float, height: int, width: int) -> None:
    images = photo(height, width, 1, n=1)
    tops, sides = [], []
    for side in (height, width):
        sides.append(math.ceil(side / factor))
        tops.append((side - sides[-1]) // 2)
    middle = images[0, 0].numpy()[tops[0] : tops[0] + sides[0], tops[1] : tops[1] + sides[1]]
    large = ndimage.zoom(middle, factor, order=1)
    top, left = (large.shape[0] - height) // 2, (large.shape[1] - width) // 2
    expected = large[top : top + height, left : left + width]
    assert np.allclose(clipped_zoom(images, factor)[0, 0], expected, atol=1e-6, rtol=0)


def test_zooms_add_up() -> None:
    images, factors = photo(24, 16, n=2), (1.0, 1.1, 1.3)
    expected = torch.stack([clipped_zoom(images, factor) for factor in factors]).sum(0)
    assert torch.allclose(zoom_sum(images, factors), expected, atol=1e-6)


@pytest.mark.parametrize(("height", "width"), [(8, 8), (24, 40)])
def test_torch_forms_agree_with_the_compiled_ones(height: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    images, angles = photo(height, width, n=3), torch.tensor([0.0, 0.7, -2.2])

    def results() -> list[torch.Tensor]:
        return [
            gaussian_filter(images, 1.5, mode="nearest"),
            gaussian_filter(images, 9.0, mode="mirror"),
            box_filter(images, 3, mode="reflect"),
            *(correlate(images, kernel, mode="mirror") for kernel in KERNELS.values()),
            line_filter(images, radius=6, sigma=2, angles=angles),
            zoom_sum(images, (1.0, 1.1, 1.25)),
        ]

    compiled = results()
    monkeypatch.setattr(filters, "on_cpu", lambda images: False)
    for ours, other in zip(compiled, results(), strict=True):
        assert torch.allclose(ours, other, atol=2e-6, rtol=0)


def test_filters_take_views_and_leave_them_alone() -> None:
    images = photo(12, 10, n=4).transpose(2, 3)[::2]
    before = images.clone()
    for filtered in (
        gaussian_filter(images, 1.0, mode="nearest"),
        correlate(images, KERNELS["cross"], mode="mirror"),
        line_filter(images, radius=2, sigma=1, angles=torch.zeros(2)),
        clipped_zoom(images, 1.2),
    ):
        assert filtered.shape == images.shape
        assert torch.equal(images, before)
    assert torch.equal(gaussian_filter(images, 1.0, mode="nearest"), gaussian_filter(before, 1.0, mode="nearest"))


def test_no_images_are_filtered_to_none() -> None:
    assert gaussian_filter(torch.zeros(0, 3, 8, 8), 1.0, mode="nearest").shape == (0, 3, 8, 8)
    assert line_filter(torch.zeros(0, 3, 8, 8), radius=1, sigma=1, angles=torch.zeros(0)).shape == (0, 3, 8, 8)
