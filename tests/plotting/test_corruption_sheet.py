"""The contact sheet: which picture it shows, what is done to it, and what it says about that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from plotting.drawing.picture import Fit, Picture, file_picture, fit_to, sample_picture
from plotting.drawing.sheet import (
    TALLEST,
    caption,
    chosen,
    corrupted,
    draw_sheet,
    numbers_of,
    sheet_resolution,
    sheet_size,
)
from plotting.drawing.style import new_figure
from tests.conftest import Command
from torch import Tensor

from testbed.errors import DataError, DefinitionError, UnknownNameError
from testbed.perturbations.corruptions.corruption import Corruption, severities
from testbed.randomness import SampleKeys


def darken(images: Tensor, *, factor: float) -> Tensor:
    return images * factor


def noise(images: Tensor, *, keys: SampleKeys, sigma: float) -> Tensor:
    return (images + sigma * keys.normal("test/field", tuple(images.shape[1:]))).clamp(0, 1)


def nothing(images: Tensor) -> Tensor:
    return images + 0.4 / 255


def invert(images: Tensor) -> Tensor:
    return 1 - images


DARKEN = Corruption(
    name="darken", group="digital", function=darken,
    parameters={
        "cifar32": severities("factor", 0.9, 0.8, 0.7, 0.6, 0.5),
        "tinyimagenet64": severities("factor", 0.5, 0.4, 0.3, 0.2, 0.1),
    },
)  # fmt: skip
NOISE = Corruption(
    name="noise", group="noise", function=noise, parameters={"cifar32": severities("sigma", 0.1, 0.2, 0.3, 0.4, 0.5)}
)
INVERT = Corruption(name="invert", group="digital", function=invert)
KNOWN = {one.name: one for one in (DARKEN, NOISE, INVERT)}


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A picture of 40 x 60 pixels: black on the left, white on the right, with a red line in the middle."""
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[:, 30:] = 255
    pixels[:, 29:31] = (255, 0, 0)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


@pytest.mark.parametrize(("text", "size"), [("224", Fit(224, 224)), ("96x160", Fit(96, 160))])
def test_a_size_is_the_side_of_a_square_or_height_x_width(text: str, size: Fit) -> None:
    assert fit_to(text) == size


@pytest.mark.parametrize("text", ["0", "-8", "8 x 8", "8x", "big"])
def test_what_is_no_size_is_told(text: str) -> None:
    with pytest.raises(DefinitionError, match=f"--size {text} is no size"):
        fit_to(text)


@pytest.mark.parametrize("text", ["7", "8x7"])
def test_a_size_that_no_corruption_takes_is_told(text: str) -> None:
    with pytest.raises(DefinitionError, match=f"--size {text} is too small: corruptions take 8 x 8"):
        fit_to(text)


def test_a_picture_is_resized_by_its_shorter_side_and_cut_in_the_middle(photo: Path) -> None:
    picture = file_picture(photo, Fit(20, 20), seed=0)
    assert picture.size == (20, 20)
    row = picture.pixels[0, :, 10]
    assert (row[:, :9] == 0).all()  # columns 10 to 49 of 60 are left, two to a pixel, the middle between 9 and 10
    assert (row[:, 11:] == 1).all()
    assert row[0, 9] > row[1, 9]


def test_a_picture_keeps_its_size_without_one(photo: Path) -> None:
    assert file_picture(photo, None, seed=0).pixels.shape == (1, 3, 40, 60)


def test_a_file_that_is_no_picture_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent.png"):
        file_picture(tmp_path / "absent.png", None, seed=0)


def test_a_sample_has_the_pixels_and_the_random_numbers_of_evaluations() -> None:
    from eval_settings.digits import load_digits_split

    picture = sample_picture("digits", 3, None, seed=5)
    assert torch.equal(picture.pixels[0, 0], torch.from_numpy(np.asarray(load_digits_split("test").items[3])) / 255)
    keys = SampleKeys(seed=5, purpose="eval", dataset="digits", sample_indices=np.array([3]), draw=0)
    assert torch.equal(picture.keys.uniform("any", (4,)), keys.uniform("any", (4,)))
    assert picture.source == "sample 3 of digits (test/3)"
    assert sample_picture("digits", 3, Fit(32, 48), seed=5).size == (32, 48)


def test_a_sample_that_is_not_there_is_told() -> None:
    with pytest.raises(DataError, match=r"--sample 597: 'digits' \(test\) has the samples 0 to 596"):
        sample_picture("digits", 597, None, seed=0)


def test_rows_of_numbers_are_no_pictures() -> None:
    import eval_settings.two_dimensional  # noqa: F401

    with pytest.raises(DataError, match="'2d-b' holds numbers"):
        sample_picture("2d-b", 0, None, seed=0)


def test_corruptions_are_chosen_by_name_or_glob() -> None:
    assert chosen(KNOWN, []) == [DARKEN, INVERT, NOISE]
    assert chosen(KNOWN, ["inv*", "noise"]) == [INVERT, NOISE]
    with pytest.raises(UnknownNameError, match=r"No corruption matches 'fogg\*'. There are darken, noise, invert"):
        chosen(KNOWN, ["noise", "fogg*"])


def picture_of(photo: Path) -> Picture:
    return file_picture(photo, Fit(8, 12), seed=0)


def test_the_table_is_that_of_the_size_or_the_one_that_is_asked_for(photo: Path) -> None:
    picture = picture_of(photo)
    for table, factor in (None, 0.9), ("tinyimagenet64", 0.5):
        what, pixels = corrupted(picture, DARKEN, table=table, output="float")[0]
        assert what.table == (table or "cifar32")
        assert torch.equal(pixels, picture.pixels * factor)
    with pytest.raises(DefinitionError, match="'noise' has no parameters 'tinyimagenet64'"):
        corrupted(picture, NOISE, table="tinyimagenet64", output="float")
    assert len(corrupted(picture, INVERT, table="tinyimagenet64", output="float")) == 1


def test_numbers_tell_parameters_and_how_far_values_moved(photo: Path) -> None:
    picture = picture_of(photo)
    numbers = numbers_of(picture, [corrupted(picture, one, table=None, output="uint8") for one in (DARKEN, INVERT)])
    assert numbers["severity"].tolist() == [1, 2, 3, 4, 5, pd.NA]
    assert numbers["parameters"].tolist()[3:] == ["factor=0.6", "factor=0.5", ""]
    assert numbers["mean_change"].iloc[4] == pytest.approx(-float(picture.pixels.mean()) / 2, abs=0.5 / 255)
    assert numbers["changed_percent"].iloc[4] == pytest.approx(
        100 * float((picture.pixels > 0).float().mean()), abs=0.01
    )
    said = caption(picture, numbers, is_by_size=True, seed=0)
    assert "photo.png, 8 x 12 pixels, colour" in said
    assert "Unchanged" not in said
    assert "(invert: no severities, one picture). Parameters: cifar32, by size. Output: uint8. Seed 0. n = 1" in said


def test_what_leaves_the_picture_as_it_is_is_named(photo: Path) -> None:
    """By less than half a grey level, which no file of 8 bits would show."""
    picture = file_picture(photo, Fit(8, 8), seed=0)
    idle = Corruption(name="idle", group="digital", function=nothing)
    weak = Corruption(name="weak", group="digital", function=darken,
                      parameters={"cifar32": severities("factor", 1, 0.999, 0.9, 0.8, 0.7)})  # fmt: skip
    numbers = numbers_of(picture, [corrupted(picture, one, table=None, output="float") for one in (weak, idle, INVERT)])
    said = caption(picture, numbers, is_by_size=True, seed=0)
    assert said.endswith(" Unchanged to half a grey level: weak 1, weak 2, idle.")


def test_pictures_stand_in_rows_pixel_for_pixel(photo: Path) -> None:
    picture = picture_of(photo)
    rows = [corrupted(picture, one, table=None, output="float") for one in (DARKEN, INVERT)]
    width, height = sheet_size(picture, len(rows))
    with new_figure(width=width, height=height) as figure:
        axes = figure.subplots()
        draw_sheet(axes, picture, rows)
        shown = np.asarray(axes.images[0].get_array())
        labels = [label.get_text() for label in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    assert labels == ["clean", "1", "2", "3", "4", "5", "darken", "invert"]
    across, down = 13, 9  # a pixel between pictures
    clean = picture.pixels[0].movedim(0, 2).numpy()
    assert np.array_equal(shown[:8, :12], clean)
    assert np.allclose(shown[:8, 5 * across :], 0.5 * clean)
    assert np.array_equal(shown[down:, across:][:, :12], 1 - clean)
    assert (shown[down:, 2 * across :] == 1).all()  # nothing beside what has no severities


def test_a_sheet_of_all_corruptions_fits_a_page_and_loses_no_pixel(photo: Path) -> None:
    picture = picture_of(photo)  # 12 pixels wide
    width, height = sheet_size(picture, 40)
    assert height == pytest.approx(TALLEST)
    assert sheet_size(picture, 2)[1] < sheet_size(picture, 4)[1] < TALLEST
    assert sheet_resolution(picture, width) == 300
    large = Picture(source="large", name="large", pixels=torch.zeros(1, 3, 448, 448), keys=picture.keys)
    width, _ = sheet_size(large, 20)
    assert sheet_resolution(large, width) * (width - 0.95) / 6 == pytest.approx(448)


def test_the_command_draws_the_corruptions_of_the_registry(command: Command, photo: Path, tmp_path: Path) -> None:
    done = command(
        "plotting/corruption_sheet.py", "--image", photo, "--size", "16x24", "--corruptions", "fog", "bright*",
        "--table", "tinyimagenet64", "--output", "uint8", "--seed", 2, "--out", "figures",
    )  # fmt: skip
    assert done.code == 0, done.err
    stem = "corruption-sheet-photo-16x24-tinyimagenet64-uint8"
    assert [Path(line).name for line in done.out.splitlines()] == [
        f"{stem}.{ending}" for ending in ("pdf", "png", "csv")
    ]
    table = pd.read_csv(tmp_path / "figures" / f"{stem}.csv")
    assert sorted(zip(table["corruption"], table["severity"], strict=True)) == [
        (name, severity) for name in ("brightness", "fog") for severity in range(1, 6)
    ]
    assert set(table["table"]) == {"tinyimagenet64"}
    assert (table["mean_absolute_change"] > 0).all()

    refused = command("plotting/corruption_sheet.py", "--out", "figures")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == "Error: Give --dataset NAME or --image FILE, one of the two.\n"
