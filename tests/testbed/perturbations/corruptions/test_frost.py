"""Frost: the sum by hand with pictures that tell their places, the drawn textures, and the reference."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.corruption_images import keys, photo
from tests.weather_reference import PARAMETERS, differences, frost_by_reference, reference

from testbed.errors import DataError
from testbed.perturbations.corruptions.colour import luma
from testbed.perturbations.corruptions.corruption import TABLES
from testbed.perturbations.corruptions.frost import CORRUPTIONS, frost, resized
from testbed.perturbations.corruptions.frost_textures import (
    NUM_TEXTURES,
    TEXTURES_VARIABLE,
    frost_texture,
    textures_fingerprint,
    textures_folder,
)

(FROST,) = CORRUPTIONS
# Width, height, mean red, green and blue, and standard deviation of the grey levels of the published photographs
PHOTOGRAPHS = [
    (900, 600, (77.7, 149.1, 165.7), 18.4), (560, 315, (200.8, 205.4, 214.5), 21.9),
    (560, 315, (200.8, 205.4, 214.5), 21.9), (527, 350, (137.6, 152.8, 165.2), 28.6),
    (660, 495, (112.4, 123.4, 134.8), 43.4), (485, 323, (71.4, 95.4, 104.5), 40.7),
]  # fmt: skip


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six textures of 60 x 50 pixels: red tells the column, green the row, blue which of the six."""
    for number in range(NUM_TEXTURES):
        rows, columns = np.mgrid[:50, :60]
        pixels = np.stack([columns, rows, np.full_like(rows, 40 * number)], axis=2).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"frost{number + 1}.png")
    monkeypatch.setenv(TEXTURES_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture
def _drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TEXTURES_VARIABLE, raising=False)


@pytest.mark.parametrize(("table", "scale"), list(zip(TABLES, (0.2, 0.3, 1.0, 1.0), strict=True)))
@pytest.mark.skipif(not PARAMETERS.is_file(), reason="the published parameters are not beside this checkout")
def test_parameters_are_the_published_ones(table: str, scale: float) -> None:
    published = json.loads(PARAMETERS.read_text())[table]["frost"]
    assert [list(row.values()) for row in FROST.parameters[table]] == [[*row, scale] for row in published]


@pytest.mark.parametrize("textures", ["published", "all"])
def test_adds_a_random_part_of_a_random_texture(places: Path, textures: str) -> None:
    black, draws = torch.zeros(300, 3, 9, 12), keys(300).uniform("frost/crop", (3,)).tolist()
    frosted = frost(black, keys=keys(300), image_weight=1, frost_weight=0.5, texture_scale=1, textures=textures)
    count = 5 if textures == "published" else 6
    corners = (frosted[:, :, 0, 0] * 510).round().int().tolist()
    expected = [[int(across * 48), int(down * 41), 40 * int(pick * count)] for pick, down, across in draws]
    assert corners == expected
    assert {blue // 40 for _, _, blue in corners} == set(range(count))
    assert torch.allclose(frosted[:, 0] * 510, frosted[:, 0, :1, :1] * 510 + torch.arange(12), atol=1e-3)
    assert torch.allclose(frosted[:, 1] * 510, frosted[:, 1, :1, :1] * 510 + torch.arange(9)[:, None], atol=1e-3)


@pytest.mark.usefixtures("places")
def test_sum_is_weighted_and_clipped() -> None:
    images = photo(50, 60, n=1)  # as large as the textures: there is one place for it
    texture = torch.from_numpy(frost_texture(3, textures_folder())).movedim(2, 0) / 255
    keyed = next(
        some for start in range(50) if 0.6 <= (some := keys(1, start=start)).uniform("frost/crop", (3,))[0, 0] < 0.8
    )
    frosted = frost(images, keys=keyed, image_weight=0.9, frost_weight=2.5, texture_scale=1)
    assert torch.allclose(frosted[0], (0.9 * images[0] + 2.5 * texture).clamp(0, 1), atol=1e-6)


@pytest.mark.usefixtures("places")
def test_grey_images_are_frosted_in_colour_and_come_back_by_luma() -> None:
    grey = photo(20, 20, 1)
    arguments = {"image_weight": 0.7, "frost_weight": 0.9, "texture_scale": 1.0}
    in_colour = frost(grey.expand(-1, 3, -1, -1), keys=keys(4), **arguments)
    assert torch.equal(frost(grey, keys=keys(4), **arguments), luma(in_colour))


@pytest.mark.usefixtures("places")
@pytest.mark.parametrize(("height", "width"), [(90, 60), (50, 200), (300, 300)])
def test_textures_are_enlarged_where_they_would_not_cover_the_image(height: int, width: int) -> None:
    images = torch.zeros(2, 3, height, width)
    frosted = frost(images, keys=keys(2), image_weight=1, frost_weight=1, texture_scale=0.2)
    scale = max(height / 50, width / 60)
    step = (frosted[:, 0, :, 1:] - frosted[:, 0, :, :-1]) * 255
    assert step.mean().item() == pytest.approx(1 / scale, rel=0.1)  # columns of the texture per column of the image


def test_resizing_takes_every_fifth_pixel_and_else_the_four_around() -> None:
    picture = np.arange(150, dtype=np.uint8).reshape(10, 5, 3)
    assert (resized(picture, 0.2) == picture[2::5, 2::5]).all()
    ramp = np.repeat(np.arange(0, 200, 20, dtype=np.uint8)[None, :, None], 3, axis=2).repeat(10, axis=0)
    assert resized(ramp, 2)[0, :6, 0].tolist() == [0, 5, 15, 25, 35, 45]
    assert resized(ramp, 0.3)[0, :, 0].tolist() == [23, 90, 157]


@pytest.mark.usefixtures("_drawn")
@pytest.mark.parametrize("number", range(NUM_TEXTURES))
def test_drawn_textures_have_size_colour_and_contrast_of_the_photographs(number: int) -> None:
    picture, (width, height, colour, contrast) = frost_texture(number, textures_folder()), PHOTOGRAPHS[number]
    assert picture.shape == (height, width, 3)
    np.testing.assert_allclose(picture.mean((0, 1)), colour, atol=1)
    assert (picture @ [0.299, 0.587, 0.114]).std() == pytest.approx(contrast, abs=1.5)


def test_photographs_are_as_the_tests_say() -> None:
    folder = Path(reference().__file__).parent / "frost"
    for number, (width, height, colour, contrast) in enumerate(PHOTOGRAPHS):
        picture = frost_texture(number, folder)
        assert picture.shape == (height, width, 3)
        np.testing.assert_allclose(picture.mean((0, 1)), colour, atol=0.1)
        assert (picture @ [0.299, 0.587, 0.114]).std() == pytest.approx(contrast, abs=0.1)


@pytest.mark.usefixtures("_drawn")
def test_fingerprint_is_that_of_the_pictures_in_use(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_files = textures_fingerprint()
    Image.new("RGB", (60, 50)).save(places / "frost6.png")
    assert textures_fingerprint() != of_files
    monkeypatch.delenv(TEXTURES_VARIABLE)
    assert textures_fingerprint() not in (of_files, "")


def test_missing_and_broken_textures_are_named(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (places / "frost2.png").unlink()
    with pytest.raises(DataError, match=r"no frost2.png or .jpg in .* TESTBED_FROST_TEXTURES names"):
        textures_fingerprint()
    (places / "frost2.jpg").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"Cannot read .*frost2\.jpg as an image of frost"):
        frost_texture(1, textures_folder())
    monkeypatch.setenv(TEXTURES_VARIABLE, "imagecorruptions")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"'imagecorruptions', which is not installed\. pip install"):
        textures_folder()


@pytest.mark.parametrize(("height", "width", "channels"), [(224, 224, 3), (96, 160, 3)])
@pytest.mark.parametrize("severity", range(1, 6))
def test_equals_the_reference_given_its_draws_and_textures(
    monkeypatch: pytest.MonkeyPatch, height: int, width: int, channels: int, severity: int
) -> None:
    monkeypatch.setenv(TEXTURES_VARIABLE, "imagecorruptions")
    image = photo(height, width, channels, n=1)
    assert differences(FROST, image, frost_by_reference(image, severity, monkeypatch), severity).max() < 1e-4


@pytest.mark.parametrize(("side", "scale"), [(32, 0.2), (64, 0.3)])
def test_equals_the_published_scaling_to_one_grey_level(
    monkeypatch: pytest.MonkeyPatch, side: int, scale: float
) -> None:
    monkeypatch.setenv(TEXTURES_VARIABLE, "imagecorruptions")
    image = photo(side, side, n=1)
    theirs = frost_by_reference(image, 5, monkeypatch, scale=scale)
    ours = frost(image, keys=keys(1), image_weight=0.6, frost_weight=0.75, texture_scale=scale)
    assert np.abs(ours[0].movedim(0, 2).double().numpy() * 255 - theirs).max() < 0.7501
