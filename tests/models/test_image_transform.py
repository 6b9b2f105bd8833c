"""The resize and crop of published models: the pixels of timm's and torchvision's own evaluation, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from timm.data import create_transform
from torchvision.transforms import InterpolationMode, ToTensor
from torchvision.transforms._presets import ImageClassification

from models._image_transform import ImageTransform
from models._timm_models import _preprocessing
from models.model_base import StandardNormalization
from testbed.data.imagetransforms import keeping_size, transform_on_tensor
from testbed.errors import DefinitionError
from testbed.worker.classifier import Normalize

SIZES = [(300, 200), (97, 311), (224, 224), (50, 40)]  # width, height
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CONFIGS = [
    {"input_size": (3, 96, 96), "interpolation": "bicubic", "crop_pct": 0.875, "crop_mode": "center"},
    {"input_size": (3, 95, 95), "interpolation": "bilinear", "crop_pct": 0.9, "crop_mode": "center"},
    {"input_size": (3, 96, 96), "interpolation": "bicubic", "crop_pct": 1.15, "crop_mode": "center"},
    {"input_size": (3, 96, 64), "interpolation": "bilinear", "crop_pct": 0.95, "crop_mode": "center"},
    {"input_size": (3, 96, 96), "interpolation": "bicubic", "crop_pct": 1.0, "crop_mode": "squash"},
    {"input_size": (3, 64, 96), "interpolation": "bilinear", "crop_pct": 0.8, "crop_mode": "squash"},
    {"input_size": (3, 96, 96), "interpolation": "bicubic", "crop_pct": 1.0, "crop_mode": "border"},
    {"input_size": (3, 97, 60), "interpolation": "bilinear", "crop_pct": 0.9, "crop_mode": "border"},
    {"input_size": (3, 96, 96), "interpolation": "lanczos", "crop_pct": 0.9, "crop_mode": "center"},
]


def photo(width: int, height: int) -> Image.Image:
    """A gradient with noise, which every filter changes in its own way."""
    rng = np.random.default_rng(width)
    ramp = np.linspace(0, 200, width)[None, :, None] + rng.integers(0, 56, (height, width, 3))
    return Image.fromarray(ramp.astype(np.uint8))


def normalized(transform, normalization: StandardNormalization, image: Image.Image) -> torch.Tensor:
    return Normalize(normalization)(transform(image)[None])[0]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config['crop_mode']}-{config['crop_pct']}")
def test_pixels_are_those_of_timms_own_evaluation(config):
    config = {**config, "mean": (0.5, 0.4, 0.3), "std": (0.5, 0.25, 0.2)}
    transform, normalization = _preprocessing(config)
    theirs = create_transform(**config, is_training=False)
    for size in SIZES:
        assert torch.equal(normalized(transform, normalization, photo(*size)), theirs(photo(*size))), size


@pytest.mark.parametrize(("resize", "crop", "filter_"), [(128, 112, "bilinear"), (120, 120, "bicubic")])
def test_pixels_are_those_of_torchvisions_own_evaluation(resize, crop, filter_):
    theirs = ImageClassification(crop_size=crop, resize_size=resize, interpolation=InterpolationMode(filter_))
    transform = ImageTransform(crop_size=(crop, crop), resize_size=(resize, resize), interpolation=filter_)
    for size in SIZES:
        ours = normalized(transform, StandardNormalization(MEAN, STD), photo(*size))
        assert torch.equal(ours, theirs(photo(*size))), size


@pytest.mark.parametrize("config", CONFIGS[:-1], ids=lambda config: f"{config['crop_mode']}-{config['crop_pct']}")
def test_images_that_were_perturbed_before_pass_the_same_geometry(config):
    """A tensor is not rounded to 8 bits, so it differs by some grey levels at most, and never leaves [0, 1]."""
    transform, _ = _preprocessing({**config, "mean": MEAN, "std": STD})
    for size in SIZES:
        after = transform_on_tensor(transform, ToTensor()(photo(*size))[None])[0]
        expected = transform(photo(*size))
        assert after.shape == expected.shape
        assert 0 <= after.min() <= after.max() <= 1
        assert (after - expected).abs().max() < 4 / 255, size


def test_a_filter_of_pillow_alone_takes_no_tensors():
    transform = ImageTransform(crop_size=(8, 8), resize_size=(8, 8), interpolation="lanczos")
    with pytest.raises(DefinitionError, match="'lanczos', which there is for 8-bit images alone"):
        transform.on_tensor(torch.zeros(1, 3, 9, 9))


def test_images_that_were_cropped_before_are_left_as_they_are():
    transform = ImageTransform(crop_size=(96, 64), resize_size=(110, 73))
    kept = keeping_size(transform)
    image = photo(64, 96)
    assert torch.equal(kept(image), ToTensor()(image))
    assert torch.equal(kept.on_tensor(ToTensor()(image)[None])[0], ToTensor()(image))
    assert torch.equal(kept(photo(96, 64)), transform(photo(96, 64)))
    assert not torch.equal(transform(image), ToTensor()(image))


def test_one_channel_is_grey():
    transform = ImageTransform(crop_size=(8, 8), resize_size=(8, 8), channels=1)
    assert torch.equal(transform(photo(8, 8)), ToTensor()(photo(8, 8).convert("L")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"crop_size": (0, 8)}, "crops"),
        ({"crop_mode": "middle"}, "Crop mode 'middle' is none of center, squash, border"),
        ({"interpolation": "random"}, "Interpolation 'random' is none of"),
        ({"channels": 4}, "has 4 channels"),
    ],
)
def test_what_is_not_known_is_refused(change, message):
    with pytest.raises(DefinitionError, match=message):
        ImageTransform(**{"crop_size": (8, 8), "resize_size": (8, 8), **change})
