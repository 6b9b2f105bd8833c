"""Pixelate and JPEG compression are what Pillow makes of the same pixels."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from PIL import Image
from tests.corruption_images import photo

from testbed.perturbations.corruptions.corruption import Corruption
from testbed.perturbations.corruptions.digital import CORRUPTIONS, jpeg_compression, pixelate

SCALES = (0.95, 0.9, 0.85, 0.75, 0.65, 0.6, 0.5, 0.4, 0.3, 0.25)


def as_pillow(image: torch.Tensor) -> Image.Image:
    pixels = (image * 255).round().byte().movedim(0, 2).numpy()
    return Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def levels(image: torch.Tensor) -> np.ndarray:
    return np.asarray(as_pillow(image))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width"), [(8, 8), (28, 28), (32, 32), (37, 53), (96, 160), (224, 224)])
def test_pixelate_is_pillows_to_the_bit(height: int, width: int, channels: int) -> None:
    images = photo(height, width, channels, n=1)
    source = as_pillow(images[0])
    for scale in SCALES:
        small = source.resize((int(width * scale), int(height * scale)), Image.Resampling.BOX)
        expected = small.resize((width, height), Image.Resampling.BOX)
        assert np.array_equal(levels(pixelate(images, scale=scale)[0]), np.asarray(expected))


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
