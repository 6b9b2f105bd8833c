"""Spatter: water against stored values and OpenCV, mud by hand, and the reference given the same draws."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import ndimage
from tests.corruption_images import keys, photo
from tests.weather_reference import PARAMETERS, STEPS, Levels, differences, spatter_by_reference, stored

from testbed.perturbations.corruptions.colour import luma
from testbed.perturbations.corruptions.corruption import TABLES
from testbed.perturbations.corruptions.filters import gaussian_filter
from testbed.perturbations.corruptions.spatter import CORRUPTIONS, mud_thickness, spatter, water_thickness
from testbed.perturbations.corruptions.water_loops import thicken

(SPATTER,) = CORRUPTIONS
SEVERITIES = range(1, 6)
DRY: dict[str, Any] = {"mean": 0.2, "deviation": 0.01, "sigma": 1.0, "threshold": 0.7}
SIZES = [(8, 8), (32, 32), (28, 45), (224, 224), (96, 160)]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.skipif(not PARAMETERS.is_file(), reason="the published parameters are not beside this checkout")
def test_parameters_are_the_published_ones(table: str) -> None:
    published = json.loads(PARAMETERS.read_text())[table]["spatter"]
    rows = SPATTER.parameters[table]
    assert [list(row.values())[:5] for row in rows] == [values[:5] for values in published]
    if table != "mnist28":  # whose code has no water, although its numbers came with the flags
        assert [float("mud_sigma" in row) for row in rows] == [values[5] for values in published]


@pytest.mark.parametrize("severity", SEVERITIES)
def test_mnists_is_grey_mud_at_every_severity(severity: int) -> None:
    images, row = torch.ones(7, 1, 28, 28), SPATTER.at(severity, "mnist28")
    assert row["mud_sigma"] == (0.6, 0.6, 0.5, 1.5, 1.5)[severity - 1]
    grey = 63 / 255
    spattered = spatter(images, keys=keys(7), **row)
    assert spattered.min() >= grey - 1e-6
    assert spattered.max() <= 1 + 1e-6
    field = keys(7).normal("spatter/field", (1, 28, 28)).mul(row["deviation"]).add(row["mean"])
    field = gaussian_filter(field, row["sigma"], mode="nearest")
    mud = mud_thickness(field, threshold=row["threshold"], sigma=row["mud_sigma"])
    assert mud.max() > 0.8
    assert torch.allclose(spattered, 1 - mud * (1 - grey), atol=1e-6)


@pytest.mark.parametrize("kind", [{"intensity": 0.6}, {"mud_sigma": 1.5}])
def test_an_image_without_drops_stays_as_it_is(kind: dict[str, Any]) -> None:
    images = photo(16, 12)
    assert torch.equal(spatter(images, keys=keys(4), **DRY, **kind), images)


def test_water_is_added_in_pale_turquoise_up_to_its_intensity() -> None:
    images = torch.full((2, 3, 32, 32), 0.1)
    added = spatter(images, keys=keys(2), **SPATTER.at(3, "cifar32")) - 0.1
    assert torch.allclose(added[:, 0] * 238, added[:, 1] * 175, atol=1e-4)
    assert torch.equal(added[:, 1], added[:, 2])
    assert torch.allclose(added.amax((1, 2, 3)), torch.full((2,), 0.5 * 238 / 255))  # of each image by itself


def test_mud_covers_with_brown_where_it_is_thick() -> None:
    images, row = photo(40, 32, n=2), SPATTER.at(4, "imagenet224")
    field = keys(2).normal("spatter/field", (1, 40, 32)).double().numpy()[:, 0]
    for index, spattered in enumerate(spatter(images, keys=keys(2), **row)):
        smooth = ndimage.gaussian_filter(row["mean"] + row["deviation"] * field[index], 1, mode="nearest")
        mud = ndimage.gaussian_filter((smooth > 0.65).astype(float), 1.5, mode="nearest")
        mud[mud < 0.8] = 0
        brown = np.array([63, 42, 20]).reshape(3, 1, 1) / 255
        np.testing.assert_allclose(spattered, images[index].numpy() * (1 - mud) + mud * brown, atol=1e-5)


def test_mud_is_thick_or_not_there() -> None:
    mud = mud_thickness(torch.rand(1, 1, 30, 30), threshold=0.3, sigma=1.0)
    assert ((mud == 0) | (mud >= 0.8)).all()
    assert (mud == 0).any()
    assert (mud > 0.8).any()


@pytest.mark.parametrize("severity", [3, 5])
def test_grey_images_are_spattered_in_colour_and_come_back_by_luma(severity: int) -> None:
    grey, row = photo(32, 32, 1), SPATTER.at(severity, "cifar32")
    in_colour = spatter(grey.expand(-1, 3, -1, -1).contiguous(), keys=keys(4), **row)
    assert torch.equal(spatter(grey, keys=keys(4), **row), luma(in_colour))


def test_a_field_beyond_1_wraps_round_to_dark() -> None:
    field = torch.full((1, 1, 12, 12), 0.8)
    field[..., 5, 5] = 1.01  # 257 of 255 levels, which 8 bits hold as 1
    assert water_thickness(field, threshold=0.7)[0, 0, 5, 5] < 0.01


def test_water_without_an_edge_is_flat() -> None:
    """Every pixel is as far from an edge as any: the steps that spread grey levels must leave a single one alone."""
    assert (water_thickness(torch.full((1, 1, 9, 14), 0.8), threshold=0.7) == 1).all()


@pytest.mark.parametrize("dim", [2, 3])
def test_a_straight_edge_counts_although_its_two_steepest_pixels_tie(dim: int) -> None:
    field = torch.full((1, 1, 24, 24), 0.8)
    field.narrow(dim, 0, 12).fill_(0)
    thickness = water_thickness(field, threshold=0.7).narrow(dim, 12, 12)
    assert thickness.unique().numel() > 3  # thinner at the edge than away from it


def drops(height: int, width: int, seed: int) -> NDArray[np.uint8]:
    """Grey levels of water of some kind."""
    rng = np.random.default_rng(seed)
    field = ndimage.gaussian_filter(rng.normal(0.65, 0.3, (height, width)), (0.7, 1, 2, 4)[seed % 4], mode="nearest")
    field[field < (0.65, 0.7)[seed % 2]] = 0
    return (255 * field).astype(np.int64).astype(np.uint8)


def thickness(levels: NDArray[np.uint8]) -> NDArray[np.int64]:
    out = np.empty((1, *levels.shape), np.int64)
    thicken(levels[None].astype(np.int64), out)
    return out[0]


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_thickness_is_what_opencv_makes_of_it(height: int, width: int) -> None:
    cv2 = pytest.importorskip("cv2", reason="opt-in: pip install opencv-python-headless")
    for seed in range(8):
        levels = drops(height, width, seed)
        distance = cv2.distanceTransform(255 - cv2.Canny(levels, 50, 150), cv2.DIST_L2, 5)
        near = cv2.equalizeHist(cv2.blur(np.minimum(distance, 20), (3, 3)).astype(np.uint8))
        lit = cv2.filter2D(near, cv2.CV_8U, np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]))
        assert (thickness(levels) == levels.astype(np.int64) * cv2.blur(lit, (3, 3))).all()


def remade(monkeypatch: pytest.MonkeyPatch) -> Levels:
    """What is stored: the reference's spatter on a photo of 24 x 26 pixels, given our draws."""
    return np.stack([spatter_by_reference(photo(24, 26, n=1), severity, monkeypatch) for severity in SEVERITIES])


@pytest.mark.parametrize("severity", SEVERITIES)
def test_equals_the_stored_values_of_the_reference(severity: int) -> None:
    assert differences(SPATTER, photo(24, 26, n=1), stored("spatter")[severity - 1], severity).max() < 0.51 / STEPS


def test_stored_values_are_those_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    np.testing.assert_allclose(stored("spatter"), remade(monkeypatch), atol=0.51 / STEPS)


@pytest.mark.parametrize(("height", "width"), [(224, 224), (96, 160)])
@pytest.mark.parametrize("severity", SEVERITIES)
def test_equals_the_reference_given_its_draws(
    monkeypatch: pytest.MonkeyPatch, height: int, width: int, severity: int
) -> None:
    image = photo(height, width, n=1)
    assert differences(SPATTER, image, spatter_by_reference(image, severity, monkeypatch), severity).max() < 0.01
