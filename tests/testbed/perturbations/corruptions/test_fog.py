"""Fog: the plasma recursion by hand, the compiled form against torch, and the reference given the same draws."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tests.corruption_images import keys, photo
from tests.weather_reference import PARAMETERS, STEPS, Levels, differences, fog_by_reference, stored

from testbed.perturbations.corruptions.corruption import TABLES
from testbed.perturbations.corruptions.fog import CORRUPTIONS, fog, fog_torch, plasma_fractal, smallest_side

(FOG,) = CORRUPTIONS
SEVERITIES = range(1, 6)


def by_hand(units: np.ndarray, decay: float) -> np.ndarray:
    """One map, height by height, each from its four neighbours on the torus."""
    side = len(units)
    heights, step, amplitude = np.zeros((side, side)), side, 100.0
    while step >= 2:
        half = step // 2
        corners = [(y, x) for y in range(0, side, step) for x in range(0, side, step)]
        for points, neighbours in (
            ([(y + half, x + half) for y, x in corners], [(-half, -half), (-half, half), (half, -half), (half, half)]),
            ([(y + half, x) for y, x in corners], [(-half, 0), (half, 0), (0, -half), (0, half)]),
            ([(y, x + half) for y, x in corners], [(-half, 0), (half, 0), (0, -half), (0, half)]),
        ):
            for y, x in points:
                around = [heights[(y + down) % side, (x + right) % side] for down, right in neighbours]
                heights[y, x] = np.mean(around) + amplitude**2 * (2 * units[y, x] - 1)
        step, amplitude = half, amplitude / decay
    heights -= heights.min()
    return heights / heights.max()


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.skipif(not PARAMETERS.is_file(), reason="the published parameters are not beside this checkout")
def test_parameters_are_the_published_ones(table: str) -> None:
    assert [list(row.values()) for row in FOG.parameters[table]] == json.loads(PARAMETERS.read_text())[table]["fog"]


@pytest.mark.parametrize("decay", [3.0, 1.4])
@pytest.mark.parametrize("side", [2, 8, 32])
def test_plasma_is_the_recursion_by_hand(side: int, decay: float) -> None:
    units = keys(2).uniform("plasma", (side, side))
    plasma = plasma_fractal(units, decay=decay)
    for index in range(2):
        np.testing.assert_allclose(plasma[index], by_hand(units[index].double().numpy(), decay), atol=2e-6)


@pytest.mark.parametrize(("height", "width", "side"), [(8, 8, 8), (32, 32, 32), (33, 9, 64), (224, 224, 256)])
def test_map_is_the_smallest_power_of_two_that_covers_the_image(height: int, width: int, side: int) -> None:
    assert smallest_side(height, width) == side


@pytest.mark.parametrize(("height", "width", "channels"), [(8, 8, 1), (32, 32, 3), (96, 160, 3), (13, 30, 1)])
def test_compiled_and_torch_forms_have_the_same_bits(height: int, width: int, channels: int) -> None:
    images, side = photo(height, width, channels, n=5), smallest_side(height, width)
    images[3] *= 0.4
    for row in FOG.parameters["imagenet224"]:
        units = keys(5).uniform("fog/plasma", (side, side))
        assert torch.equal(fog(images, keys=keys(5), **row), fog_torch(images, units, **row))


def test_adds_the_top_left_of_one_map_to_every_channel_and_keeps_the_brightest_in_range() -> None:
    images = torch.full((1, 3, 20, 24), 0.5)
    images[0, 2, 7, 7] = 0.8
    plasma = plasma_fractal(keys(1).uniform("fog/plasma", (32, 32)), decay=2.0)
    expected = (images + 1.5 * plasma[:, None, :20, :24]) * 0.8 / (0.8 + 1.5)
    assert torch.allclose(fog(images, keys=keys(1), strength=1.5, decay=2.0), expected, atol=1e-6)


def test_a_black_image_stays_black_among_others() -> None:
    images = photo(16, 16, n=3)
    images[1] = 0
    fogged = fog(images, keys=keys(3), strength=2.0, decay=2.0)
    assert (fogged[1] == 0).all()
    assert (fogged[0] > 0).any()


def test_an_image_that_is_no_block_of_memory_is_fogged_alike() -> None:
    images = photo(16, 24, n=2)
    turned = images.to(memory_format=torch.channels_last)
    assert torch.equal(
        fog(turned, keys=keys(2), strength=1.0, decay=2.0), fog(images, keys=keys(2), strength=1.0, decay=2.0)
    )


def remade(monkeypatch: pytest.MonkeyPatch) -> Levels:
    """What is stored: the reference's fog of a photo of 24 x 26 pixels, given our draws."""
    return np.stack([fog_by_reference(photo(24, 26, n=1), severity, monkeypatch) for severity in SEVERITIES])


@pytest.mark.parametrize("severity", SEVERITIES)
def test_equals_the_stored_values_of_the_reference(severity: int) -> None:
    assert differences(FOG, photo(24, 26, n=1), stored("fog")[severity - 1], severity).max() < 0.51 / STEPS


def test_stored_values_are_those_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    np.testing.assert_allclose(stored("fog"), remade(monkeypatch), atol=0.51 / STEPS)


@pytest.mark.parametrize(("height", "width", "channels"), [(224, 224, 3), (96, 160, 3), (64, 64, 1)])
@pytest.mark.parametrize("severity", SEVERITIES)
def test_equals_the_reference_given_its_draws(
    monkeypatch: pytest.MonkeyPatch, height: int, width: int, channels: int, severity: int
) -> None:
    image = photo(height, width, channels, n=1)
    assert differences(FOG, image, fog_by_reference(image, severity, monkeypatch), severity).max() < 0.002
