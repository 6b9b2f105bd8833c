"""Pillow's geometry: what torchvision makes of the same image, bit for bit, and no import of it."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode, functional

from models._image_transform import ImageTransform
from models._pixels import centre_crop, resized, to_tensor
from models.model_base import StandardTransform
from testbed.doctor.hypotheses import SquashTransform

SIZES = [(97, 61), (61, 97), (64, 64), (33, 200), (7, 5)]  # width, height
FILTERS = ("nearest", "bilinear", "bicubic", "lanczos", "box", "hamming")


def photo(width: int, height: int, mode: str) -> Image.Image:
    values = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values).convert(mode)


def assert_same(ours: Image.Image, theirs: Image.Image) -> None:
    assert ours.mode == theirs.mode
    assert np.array_equal(np.asarray(ours), np.asarray(theirs))


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("filter_", FILTERS)
def test_a_resize_is_that_of_torchvision(filter_, mode):
    for size in SIZES:
        for wanted in ([61], [37], [96], [41, 58]):
            theirs = functional.resize(photo(*size, mode), wanted, InterpolationMode(filter_))
            assert_same(resized(photo(*size, mode), wanted, filter_), theirs)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_centre_crop_is_that_of_torchvision_also_where_the_image_is_smaller(mode):
    for size in SIZES:
        for wanted in ((61, 61), (30, 31), (31, 30), (64, 64), (90, 33), (250, 251)):
            assert_same(centre_crop(photo(*size, mode), *wanted), functional.center_crop(photo(*size, mode), wanted))


def test_what_a_smaller_image_lacks_is_filled():
    grey, coloured = photo(5, 4, "L"), photo(5, 4, "RGB")
    theirs = functional.pad(coloured, [1, 1, 1, 2], fill=(9, 8, 7))
    assert_same(centre_crop(coloured, 7, 7, fill=(9, 8, 7)), theirs)
    assert_same(centre_crop(grey, 7, 7, fill=(9,)), functional.pad(grey, [1, 1, 1, 2], fill=9))


@pytest.mark.parametrize("mode", ["RGB", "L", "1", "I", "F", "RGBA"])
def test_a_tensor_is_that_of_torchvision(mode):
    image = photo(9, 6, mode)
    ours, theirs = to_tensor(image), functional.to_tensor(image)
    assert ours.dtype == theirs.dtype
    assert ours.is_contiguous()
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_standard_transform_is_that_of_torchvision(mode):
    for size in SIZES:
        theirs = functional.resize(photo(*size, mode), [51])
        theirs = functional.to_tensor(functional.center_crop(theirs, [44]))
        assert torch.equal(StandardTransform(51, 44)(photo(*size, mode)), theirs), size


def test_images_are_transformed_without_torchvision(monkeypatch):
    """Its import costs a process more than a second of its start."""
    for name in ("torchvision", "torchvision.transforms"):
        monkeypatch.setitem(sys.modules, name, None)  # so that its import fails
    image = photo(9, 7, "RGB")
    assert StandardTransform(8, 6)(image).shape == (3, 6, 6)
    assert ImageTransform(crop_size=(6, 6), resize_size=(8, 8), crop_mode="border")(image).shape == (3, 6, 6)
    assert SquashTransform(5)(image).shape == (3, 5, 5)
