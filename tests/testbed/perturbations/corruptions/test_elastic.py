"""Elastic deformation against scipy's interpolation and Gaussian, and against OpenCV's affine map."""

from __future__ import annotations

import json
from typing import Any, Literal

import numpy as np
import pytest
import torch
from scipy import ndimage
from tests.corruption_images import keys, photo
from tests.weather_reference import PARAMETERS

from testbed.perturbations.corruptions.elastic import (
    CORRUPTIONS,
    Border,
    bend_torch,
    displacements,
    elastic_transform,
    inverse_maps,
)

TABLES = CORRUPTIONS[0].parameters
STRONG: dict[str, Any] = {"alpha": 60.0, "sigma": 3.0, "jitter": 6.0}
BORDERS = pytest.mark.parametrize("border", ["mirror", "constant"])


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.skipif(not PARAMETERS.is_file(), reason="the published parameters are not beside this checkout")
def test_parameters_are_the_published_ones(table: str) -> None:
    ours = [[row[name] for name in ("alpha", "sigma", "jitter")] for row in TABLES[table]]
    assert ours == json.loads(PARAMETERS.read_text())[table]["elastic_transform"]


@pytest.mark.parametrize("table", TABLES)
def test_mnists_border_alone_is_constant(table: str) -> None:
    borders = {row.get("border", "mirror") for row in TABLES[table]}
    assert borders == {"constant" if table == "mnist28" else "mirror"}


def scipy_bent(image: np.ndarray, inverse: np.ndarray, moves: np.ndarray, border: Border) -> np.ndarray:
    """One image (C, H, W) by scipy: mapped with mirrored edges or zeros outside, then displaced with reflected ones."""
    mode: Literal["mirror", "grid-constant"] = "mirror" if border == "mirror" else "grid-constant"
    y, x = np.mgrid[: image.shape[1], : image.shape[2]].astype(float)
    mapped_x, mapped_y = (row[0] * x + row[1] * y + row[2] for row in inverse)
    mapped = [ndimage.map_coordinates(plane, (mapped_y, mapped_x), order=1, mode=mode) for plane in image]
    places = (y + moves[1], x + moves[0])
    return np.stack([ndimage.map_coordinates(plane, places, order=1, mode="reflect") for plane in mapped])


@BORDERS
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width"), [(8, 8), (32, 32), (20, 45)])
def test_images_are_mapped_then_displaced_as_scipy_does(height: int, width: int, channels: int, border: Border) -> None:
    images = photo(height, width, channels)
    maps = inverse_maps(keys(4), height, width, jitter=STRONG["jitter"])
    moves = displacements(keys(4), images, alpha=STRONG["alpha"], sigma=STRONG["sigma"]).numpy()
    bent = elastic_transform(images, keys=keys(4), **STRONG, border=border)
    for index, image in enumerate(images.double().numpy()):
        expected = scipy_bent(image, maps[index], moves[index], border)
        assert np.abs(bent[index].numpy() - expected).max() < 1e-5  # 0.003 grey levels


@BORDERS
@pytest.mark.parametrize("side", [8, 33])
def test_same_bits_in_torch_and_compiled(side: int, border: Border) -> None:
    images = photo(side, side + 3)
    maps = torch.from_numpy(inverse_maps(keys(4), side, side + 3, jitter=6))
    moves = displacements(keys(4), images, alpha=60, sigma=3)
    by_torch = bend_torch(images, maps, moves, border=border).clamp(0, 1)
    assert torch.equal(by_torch, elastic_transform(images, keys=keys(4), **STRONG, border=border))


@BORDERS
def test_without_jitter_and_displacement_images_stay(border: Border) -> None:
    images = photo(32, 20)
    bent = elastic_transform(images, keys=keys(4), alpha=0, sigma=0, jitter=0, border=border)
    assert torch.allclose(bent, images, atol=1e-6)


def test_a_constant_border_is_black_and_met_by_interpolation() -> None:
    """White images moved by 1.25 pixels: a column of zeros, then one that is three quarters of the first pixel."""
    maps = torch.tensor([[1, 0, -1.25], [0, 1, 0]], dtype=torch.float64)[None]
    bent = bend_torch(torch.ones(1, 1, 8, 9), maps, torch.zeros(1, 2, 8, 9), border="constant")
    assert torch.equal(bent[0, 0], torch.tensor([0, 0.75, 1, 1, 1, 1, 1, 1, 1]).expand(8, -1))


def test_displacements_find_mirrored_edges_whatever_the_border() -> None:
    images, row = torch.ones(4, 1, 28, 28), STRONG | {"jitter": 0.0}
    assert torch.allclose(elastic_transform(images, keys=keys(4), **row, border="constant"), images, atol=1e-6)


def test_three_points_about_the_middle_move_by_no_more_than_the_jitter() -> None:
    height, width, jitter = 60, 90, 5.0
    points = np.array([[45 + 20, 30 + 20, 1], [45 + 20, 30 - 20, 1], [45 - 20, 30 - 20, 1]])
    moves = []
    for inverse in inverse_maps(keys(200), height, width, jitter=jitter):
        forward = np.linalg.inv(np.vstack([inverse, [0, 0, 1]]))
        moves.append(points @ forward.T[:, :2] - points[:, :2])
    assert jitter * 0.98 < np.abs(moves).max() <= jitter + 1e-9
    assert np.abs(np.mean(moves, axis=0)).max() < 4 * jitter / np.sqrt(3 * 200)


@pytest.mark.parametrize(
    ("table", "height", "width"),
    [("cifar32", 32, 32), ("tinyimagenet64", 64, 50), ("imagenet224", 130, 224), ("mnist28", 28, 28),
     ("cifar32", 8, 8)],
)  # fmt: skip
def test_displacements_are_scipys_gaussian_of_uniform_noise(table: str, height: int, width: int) -> None:
    noise = 2 * keys(2).uniform("elastic_transform/displacement", (2, height, width)).double().numpy() - 1
    for row in TABLES[table]:
        if not row["alpha"]:
            continue
        found = displacements(keys(2), photo(height, width, n=2), alpha=row["alpha"], sigma=row["sigma"]).numpy()
        for plane, expected in zip(found.reshape(-1, height, width), noise.reshape(-1, height, width), strict=True):
            smooth = ndimage.gaussian_filter(expected, row["sigma"], mode="reflect", truncate=3)
            assert np.abs(plane - smooth * row["alpha"]).max() < 1e-4  # pixels


def test_all_channels_move_alike() -> None:
    grey = photo(32, 32, 1).expand(-1, 3, -1, -1)
    bent = elastic_transform(grey, keys=keys(4), **STRONG)
    assert torch.equal(bent[:, 0], bent[:, 1])
    assert torch.equal(bent[:, :1], elastic_transform(grey[:, :1], keys=keys(4), **STRONG))
    assert (bent - grey).abs().max() > 0.1


@BORDERS
def test_affine_map_is_opencvs(border: Border) -> None:
    cv2 = pytest.importorskip("cv2", reason="opt-in: pip install opencv-python-headless")
    images = photo(64, 64)
    maps = inverse_maps(keys(4), 64, 64, jitter=5)
    mode = cv2.BORDER_REFLECT_101 if border == "mirror" else cv2.BORDER_CONSTANT  # of zeros
    bent = elastic_transform(images, keys=keys(4), alpha=0, sigma=0, jitter=5, border=border)
    for image, inverse, ours in zip(images, maps, bent, strict=True):
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        pixels = image.movedim(0, 2).contiguous().numpy()
        theirs = cv2.warpAffine(pixels, inverse, (64, 64), flags=flags, borderMode=mode)
        difference = np.abs(theirs - ours.movedim(0, 2).numpy()) * 255
        assert difference.mean() < 0.1  # grey levels: before version 5, OpenCV takes places in 32nds of a pixel
        assert difference.max() < 5
