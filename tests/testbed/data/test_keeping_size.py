"""A model's transform for images that were resized and cropped when they were made: their pixels stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.published import random_images
from torchvision import transforms
from torchvision.transforms import v2

from models.model_base import StandardTransform
from testbed.data.imagetransforms import keeping_size
from testbed.errors import DefinitionError

BUILT = {
    "standard": StandardTransform(36, 32),
    "compose": transforms.Compose([transforms.Resize(36), transforms.CenterCrop(32), transforms.ToTensor()]),
    "nested": transforms.Compose(
        [transforms.Compose([transforms.Resize((36, 36))]), transforms.CenterCrop((32, 32)), transforms.ToTensor()]
    ),
}


def photo(width: int, height: int) -> Image.Image:
    return Image.fromarray(random_images(height, width, 3))


def levels(tensor: Any) -> np.ndarray:
    return np.rint(255 * tensor.numpy()).astype(np.uint8).transpose(1, 2, 0)


@pytest.mark.parametrize("name", BUILT)
def test_an_image_of_the_size_of_the_crop_keeps_its_pixels(name: str) -> None:
    image, transform = photo(32, 32), BUILT[name]
    kept = keeping_size(transform)
    assert kept is not None
    assert np.array_equal(levels(kept(image)), np.asarray(image))
    assert not np.array_equal(levels(transform(image)), np.asarray(image))


@pytest.mark.parametrize("size", [(32, 40), (48, 32), (64, 64), (20, 20)])
@pytest.mark.parametrize("name", BUILT)
def test_an_image_of_another_size_passes_as_usual(name: str, size: tuple[int, int]) -> None:
    kept = keeping_size(BUILT[name])
    assert kept is not None
    assert np.array_equal(levels(kept(photo(*size))), levels(BUILT[name](photo(*size))))


def test_steps_that_do_not_resize_are_kept() -> None:
    steps = [v2.Resize(36), v2.CenterCrop(32), v2.Grayscale(3), transforms.ToTensor()]
    kept = keeping_size(transforms.Compose(steps))
    assert kept is not None
    grey = kept(photo(32, 32)).numpy()
    assert np.array_equal(grey[0], grey[1])


def test_a_resize_after_the_crop_is_the_models_own() -> None:
    steps = [transforms.Resize(36), transforms.CenterCrop(32), transforms.Resize(16), transforms.ToTensor()]
    kept = keeping_size(transforms.Compose(steps))
    assert kept is not None
    image = photo(32, 32)
    assert np.array_equal(levels(kept(image)), np.asarray(transforms.Resize(16)(image)))


def test_8_bit_pixels_stay_8_bit() -> None:
    """So that the bank of them is as small as that of the clean ones."""
    kept: Any = keeping_size(BUILT["standard"])
    assert np.array_equal(np.asarray(kept.to_pixels(photo(32, 32))), np.asarray(photo(32, 32)))


def test_what_resizes_without_a_crop_is_left_alone() -> None:
    squeeze = transforms.Compose([transforms.Resize((48, 48)), transforms.ToTensor()])
    assert keeping_size(squeeze) is squeeze
    assert keeping_size(None) is None


def test_a_transform_whose_resize_cannot_be_told_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"cannot tell what in .*ToTensor\(\) resizes them again.*-resized"):
        keeping_size(transforms.ToTensor())
