"""Elastic deformation against scipy's interpolation and Gaussian, and against OpenCV's affine map."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import ndimage
from tests.corruption_images import keys, photo

from testbed.perturbations.corruptions.elastic import (
    CORRUPTIONS,
    bend_torch,
    displacements,
    elastic_transform,
    inverse_maps,
)

TABLES = CORRUPTIONS[0].parameters
STRONG = {"alpha": 60.0, "sigma": 3.0, "jitter": 6.0}


def scipy_bent(image: np.ndarray, inverse: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """One image (C, H, W) by scipy: mapped with mirrored edges, then displaced with reflected ones."""
    y, x = np.mgrid[: image.shape[1], : image.shape[2]].astype(float)
    mapped_x, mapped_y = (row[0] * x + row[1] * y + row[2] for row in inverse)
    mapped = [ndimage.map_coordinates(plane, (mapped_y, mapped_x), order=1, mode="mirror") for plane in image]
    places = (y + moves[1], x + moves[0])
    return np.stack([ndimage.map_coordinates(plane, places, order=1, mode="reflect") for plane in mapped])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width"), [(8, 8), (32, 32), (20, 45)])
def test_images_are_mapped_then_displaced_as_scipy_does(height: int, width: int, channels: int) -> None:
    images = photo(height, width, channels)
    maps = inverse_maps(keys(4), height, width, jitter=STRONG["jitter"])
    moves = displacements(keys(4), images, alpha=STRONG["alpha"], sigma=STRONG["sigma"]).numpy()
    bent = elastic_transform(images, keys=keys(4), **STRONG)
    for index, image in enumerate(images.double().numpy()):
        expected = scipy_bent(image, maps[index], moves[index])
        assert np.abs(bent[index].numpy() - expected).max() < 1e-5  # 0.003 grey levels


@pytest.mark.parametrize("side", [8, 33])
def test_same_bits_in_torch_and_compiled(side: int) -> None:
    images = photo(side, side + 3)
    maps = torch.from_numpy(inverse_maps(keys(4), side, side + 3, jitter=6))
    moves = displacements(keys(4), images, alpha=60, sigma=3)
    assert torch.equal(bend_torch(images, maps, moves).clamp(0, 1), elastic_transform(images, keys=keys(4), **STRONG))


def test_without_jitter_and_displacement_images_stay() -> None:
    images = photo(32, 20)
    assert torch.allclose(elastic_transform(images, keys=keys(4), alpha=0, sigma=0, jitter=0), images, atol=1e-6)


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


def test_affine_map_is_opencvs() -> None:
    cv2 = pytest.importorskip("cv2", reason="opt-in: pip install opencv-python-headless")
    images = photo(64, 64)
    maps = inverse_maps(keys(4), 64, 64, jitter=5)
    bent = elastic_transform(images, keys=keys(4), alpha=0, sigma=0, jitter=5)
    for image, inverse, ours in zip(images, maps, bent, strict=True):
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        pixels = image.movedim(0, 2).contiguous().numpy()
        theirs = cv2.warpAffine(pixels, inverse, (64, 64), flags=flags, borderMode=cv2.BORDER_REFLECT_101)
        difference = np.abs(theirs - ours.movedim(0, 2).numpy()) * 255
        assert difference.mean() < 0.1  # grey levels: before version 5, OpenCV takes places in 32nds of a pixel
        assert difference.max() < 5
