"""Pixelate and JPEG compression are what Pillow makes of the same pixels."""

from __future__ import annotations

import io

import numpy as np
import PIL
import pytest
import torch
from PIL import Image
from tests.corruption_images import photo

from testbed.perturbations.corruptions.corruption import Corruption
from testbed.perturbations.corruptions.digital import CORRUPTIONS, jpeg_compression, pixelate

SCALES = (0.95, 0.9, 0.85, 0.75, 0.65, 0.6, 0.5, 0.4, 0.3, 0.25)
# Rows come first for 160 x 64 at a scale of 0.95, where the height loses just twice as many pixels.
TALL = [(64, 28), (97, 32), (160, 64), (28, 8), (201, 100)]


def as_pillow(image: torch.Tensor) -> Image.Image:
    pixels = (image * 255).round().byte().movedim(0, 2).numpy()
    return Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def levels(image: torch.Tensor) -> np.ndarray:
    return np.asarray(as_pillow(image))


def by_pillow(image: torch.Tensor, *sizes: tuple[int, int]) -> np.ndarray:
    """`image` (C, H, W) resized to one (width, height) after the other."""
    picture = as_pillow(image)
    for size in sizes:
        picture = picture.resize(size, Image.Resampling.BOX)
    return np.asarray(picture)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("height", "width"),
    [(8, 8), (28, 28), (32, 32), (37, 53), (96, 160), (224, 224), (28, 97), (8, 64), (64, 40), (200, 100)],
)
def test_pixelate_is_pillows_to_the_bit(height: int, width: int, channels: int) -> None:
    images = photo(height, width, channels, n=1)
    for scale in SCALES:
        expected = by_pillow(images[0], (int(width * scale), int(height * scale)), (width, height))
        assert np.array_equal(levels(pixelate(images, scale=scale)[0]), expected)


@pytest.mark.skipif(int(PIL.__version__.split(".")[0]) < 13, reason="Pillow took rows first, whatever the size")
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width"), TALL)
def test_pixelate_of_tall_images_is_pillows_to_the_bit(height: int, width: int, channels: int) -> None:
    images = photo(height, width, channels, n=1)
    for scale in SCALES:
        expected = by_pillow(images[0], (int(width * scale), int(height * scale)), (width, height))
        assert np.array_equal(levels(pixelate(images, scale=scale)[0]), expected)


@pytest.mark.parametrize(("height", "width"), TALL)
def test_columns_come_first_where_the_height_loses_more_than_twice_the_pixels(height: int, width: int) -> None:
    """In two steps of one direction each, which every version of Pillow takes alike."""
    images = photo(height, width, n=1)
    for scale in SCALES:
        small_width, small_height = int(width * scale), int(height * scale)
        is_tall = height - small_height > 2 * (width - small_width)
        middle = (width, small_height) if is_tall else (small_width, height)
        expected = by_pillow(images[0], middle, (small_width, small_height), (width, height))
        assert np.array_equal(levels(pixelate(images, scale=scale)[0]), expected)


def test_pixelate_of_tall_images_is_contiguous_and_takes_many() -> None:
    images = photo(64, 28)
    found = pixelate(images, scale=0.5)
    assert found.is_contiguous()
    assert torch.equal(found, torch.cat([pixelate(image[None], scale=0.5) for image in images]))


def test_pixelate_keeps_one_pixel_at_least() -> None:
    images = photo(8, 8)
    assert torch.equal(pixelate(images, scale=0.01).amax((2, 3)), pixelate(images, scale=0.01).amin((2, 3)))


def test_pixelate_rounds_to_grey_levels_first() -> None:
    images = photo(16, 16)
    assert torch.equal(pixelate(images + 0.4 / 255, scale=0.5), pixelate(images, scale=0.5))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("quality", [7, 25, 80])
def test_jpeg_is_pillows_with_colours_at_half_the_resolution(channels: int, quality: int) -> None:
    images = photo(33, 50, channels)
    for image, compressed in zip(images, jpeg_compression(images, quality=quality), strict=True):
        buffer = io.BytesIO()
        as_pillow(image).save(buffer, "JPEG", quality=quality, subsampling="4:2:0" if channels == 3 else -1)
        assert np.array_equal(levels(compressed), np.asarray(Image.open(buffer)))


def test_lower_quality_is_farther_from_the_image() -> None:
    images = photo(64, 64)
    errors = [(jpeg_compression(images, quality=quality) - images).square().mean() for quality in (80, 40, 25, 7)]
    assert errors == sorted(errors)


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("row", CORRUPTIONS, ids=[row.name for row in CORRUPTIONS])
def test_results_are_those_of_the_reference_package(row: Corruption, severity: int) -> None:
    reference = pytest.importorskip(
        "imagecorruptions.corruptions", reason="opt-in: pip install imagecorruptions-imaug==1.1.5"
    )
    image = photo(64, 96, n=1)  # at some sizes, as 160, the package's enlargement by nearest pixels rounds differently
    expected = getattr(reference, row.name)(as_pillow(image[0]), severity)
    assert np.array_equal(levels(row.function(image, **row.at(severity, "imagenet224"))[0]), np.asarray(expected))
