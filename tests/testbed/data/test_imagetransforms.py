import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms
from torchvision.transforms import v2

from models.model_base import StandardTransform
from testbed.data.imagetransforms import canonical_transform, transform_on_tensor
from testbed.errors import DefinitionError


def _image(width, height):
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


def test_an_image_of_the_canonical_size_is_left_as_it_is():
    image = _image(8, 8)
    assert canonical_transform(8)(image) is image


@pytest.mark.parametrize(("size", "resize"), [(224, 256), (32, 37), (8, 9)])
def test_other_images_get_the_usual_resize_and_crop(size, resize):
    image = _image(300, 260)
    expected = StandardTransform(resize, size).to_pixels(image)
    np.testing.assert_array_equal(np.asarray(canonical_transform(size)(image)), np.asarray(expected))


def test_no_transform_leaves_the_images():
    images = torch.rand(2, 3, 8, 8)
    assert transform_on_tensor(None, images) is images


@pytest.mark.parametrize(
    "transform",
    [
        StandardTransform(12, 10),
        transforms.Compose([transforms.Resize(12), transforms.CenterCrop(10), transforms.ToTensor()]),
        transforms.Compose([v2.Compose([v2.Resize(12), v2.CenterCrop(10)]), transforms.ToTensor()]),
        transforms.Compose([transforms.PILToTensor(), transforms.ConvertImageDtype(torch.float32), v2.CenterCrop(10)]),
        v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Resize(12), v2.CenterCrop(10)]),
        transforms.Compose(
            [transforms.Resize(12, interpolation=transforms.InterpolationMode.BICUBIC), transforms.CenterCrop(10),
             transforms.ToTensor()]
        ),
    ],
)  # fmt: skip
def test_the_same_geometry_as_on_the_image_to_within_two_levels(transform):
    image = _image(24, 30)
    tensor = transforms.functional.to_tensor(image)
    result = transform_on_tensor(transform, tensor[None])
    assert result.shape == (1, 3, 10, 10)
    assert 0 <= result.min() <= result.max() <= 1
    assert (result[0] - transform(image)).abs().max() <= 2 / 255


def test_bicubic_overshoot_is_clipped_as_in_8_bit_images():
    resize = transforms.Resize(16, interpolation=transforms.InterpolationMode.BICUBIC)
    step = torch.zeros(1, 1, 4, 4)
    step[..., 2:] = 1
    assert resize(step).max() > 1.05
    result = transform_on_tensor(transforms.Compose([resize, transforms.ToTensor()]), step)
    assert (result.min(), result.max()) == (0, 1)


@pytest.mark.parametrize(
    "transform",
    [
        lambda image: transforms.functional.to_tensor(image),
        transforms.Compose([lambda image: image.rotate(90), transforms.ToTensor()]),
    ],
)
def test_a_transform_of_images_only_is_an_error_that_says_what_to_do(transform):
    with pytest.raises(DefinitionError, match=r"method on_tensor\(images\)"):
        transform_on_tensor(transform, torch.rand(1, 3, 8, 8))
