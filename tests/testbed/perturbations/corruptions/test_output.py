"""Images as files have them: cut to 8 bits, and JPEG."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from PIL import Image
from tests.corruption_images import photo

from testbed.perturbations.corruptions.output import as_jpeg, through_pillow, to_levels, truncated


def test_truncation_keeps_whole_grey_levels_and_cuts_the_others() -> None:
    whole = torch.arange(256) / 255
    assert torch.equal(to_levels(whole), torch.arange(256, dtype=torch.uint8))
    assert torch.equal(truncated(whole), whole)
    just_below = torch.nextafter(whole, torch.zeros(256))  # as far as float32 sums may fall short
    assert torch.equal(to_levels(just_below), torch.arange(256, dtype=torch.uint8))
    between = (torch.arange(255) + 0.99) / 255
    assert torch.equal(to_levels(between), torch.arange(255, dtype=torch.uint8))


@pytest.mark.parametrize("channels", [1, 3])
def test_images_go_through_pillow_unchanged(channels: int) -> None:
    images = photo(9, 14, channels)
    assert torch.equal(through_pillow(images, lambda image: image), images)
    assert torch.equal(through_pillow(images + 0.4 / 255, lambda image: image), images)  # rounded
    assert torch.equal(through_pillow((images - 0.4 / 255).clamp(min=0), lambda image: image), images)
    strided = images.contiguous(memory_format=torch.channels_last)
    assert torch.equal(through_pillow(strided, lambda image: image), images)


def test_pillow_sees_rows_columns_and_colours_in_their_places() -> None:
    seen = []
    image = torch.zeros(1, 3, 8, 9)
    image[0, 1, 2, 5] = 1  # green, third row, sixth column
    through_pillow(image, lambda picture: seen.append(picture.getpixel((5, 2))) or picture)  # type: ignore[func-returns-value]
    assert seen == [(0, 255, 0)]


def test_jpeg_has_the_pixels_of_the_published_optimized_files() -> None:
    images = photo(30, 41)
    for image, compressed in zip(images, as_jpeg(images, quality=85), strict=True):
        buffer = io.BytesIO()
        pixels = (image.movedim(0, 2) * 255).round().byte().numpy()
        Image.fromarray(pixels).save(buffer, "JPEG", quality=85, optimize=True)
        expected = np.asarray(Image.open(buffer))
        assert np.array_equal((compressed.movedim(0, 2) * 255).round().byte().numpy(), expected)
