"""The watermark of ImageNet-W: the pixels that Pillow makes of it, at the sizes of the authors, with their font."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFont
from tests.miniatures import write_class_image
from tests.oracle_runs import evaluated, oracles

from eval_settings.imagenet_w import CARTON, predicted_carton
from testbed.errors import DataError
from testbed.perturbations.watermark import Watermark, find_font

FONT = "SourceHanSerifSC-ExtraLight.otf"
LETTERS = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"  # any font will do for what is tested here


@pytest.fixture(autouse=True)
def font(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A font in the place of the authors'."""
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))
    path = tmp_path / "imagenet-w" / FONT
    path.parent.mkdir()
    path.write_bytes(LETTERS.read_bytes())
    return path


def by_pillow(pixels: np.ndarray, text: str, font: Path, size: int) -> np.ndarray:
    """An image [H, W, 3] with white text of half opacity from (1 %, 40 %) on, composed as the authors do."""
    image = Image.fromarray(pixels).convert("RGBA")
    layer = Image.new("RGBA", image.size, (255, 255, 255, 0))
    ImageDraw.Draw(layer).text(
        (0.01 * image.width, 0.4 * image.height), text, fill=(255, 255, 255, 128), font=ImageFont.truetype(font, size)
    )
    return np.asarray(Image.alpha_composite(image, layer).convert("RGB"))


@pytest.mark.parametrize(("side", "size"), [(224, 36), (384, 62), (160, 25)])
def test_pixels_are_those_that_pillow_composes(font: Path, side: int, size: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2, side, side, 3), dtype=np.uint8)
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255
    shown = (Watermark()(images) * 255).round().byte().permute(0, 2, 3, 1).numpy()
    expected = np.stack([by_pillow(image, "捷径捷径捷径", font, size) for image in pixels])
    assert np.array_equal(shown, expected)
    assert 0.01 < (shown != pixels).any(axis=3).mean() < 0.3


def test_the_font_is_part_of_what_the_setting_is(font: Path) -> None:
    before = Watermark().identity()
    font.write_bytes((LETTERS.parent / "DejaVuSerif.ttf").read_bytes())
    assert Watermark().identity() != before


def test_a_missing_font_is_told_before_anything_is_decoded(font: Path) -> None:
    font.unlink()
    for ask in (lambda: find_font(FONT), lambda: Watermark().check_shape((1, 3, 224, 224)), Watermark().identity):
        with pytest.raises(DataError, match=r"SourceHanSerifSC-ExtraLight\.otf is not in .*Whac-A-Mole"):
            ask()


def test_cartons_that_are_predicted_are_counted() -> None:
    found = predicted_carton(np.array([CARTON, 3, CARTON, 7]))["predicted_carton"]
    assert (found.value, found.n) == (50, 4)
    assert found.ci_low is not None
    assert found.ci_low < 50


def test_an_oracle_sees_the_class_below_the_watermark(tmp_path: Path) -> None:
    for wnid, index in {"n01440764": 0, "n02971356": CARTON}.items():
        write_class_image(tmp_path / f"imagenet/val/{wnid}/ILSVRC2012_val_{index:08d}.JPEG", index, 40)
    found = evaluated(("imagenet-w",), tmp_path, tmp_path / "home", oracles((CARTON, 3)))
    assert found["oracle", "imagenet-w"]["top1"].value == 100
    assert found["oracle", "imagenet-w"]["predicted_carton"].value == 50
    assert found["exchanging", "imagenet-w"]["top1"].value == 50
    assert found["oracle", "val"]["top1"].value == 100
