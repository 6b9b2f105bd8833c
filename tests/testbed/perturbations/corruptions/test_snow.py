"""Snow: its layer by hand, published values, and the reference given the same draws."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy.special import ndtri
from tests.corruption_images import keys, photo
from tests.weather_reference import PARAMETERS, STEPS, Levels, differences, snow_by_reference, stored

from testbed.perturbations.corruptions.corruption import TABLES
from testbed.perturbations.corruptions.snow import CORRUPTIONS, flakes, snow

(SNOW,) = CORRUPTIONS
SEVERITIES = range(1, 6)
NO_FLAKES = {"mean": -9.0, "deviation": 0.1, "zoom": 1.0, "threshold": 0.5, "radius": 8, "sigma": 3.0}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.skipif(not PARAMETERS.is_file(), reason="the published parameters are not beside this checkout")
def test_parameters_are_the_published_ones(table: str) -> None:
    assert [list(row.values()) for row in SNOW.parameters[table]] == json.loads(PARAMETERS.read_text())[table]["snow"]


def test_image_is_whitened_where_no_flake_falls() -> None:
    images = torch.tensor([0.1, 0.2, 0.9]).view(1, 3, 1, 1).repeat(1, 1, 9, 8)
    white = 1.5 * (0.299 * 0.1 + 0.587 * 0.2 + 0.114 * 0.9) + 0.5  # 0.875: lighter than red and green, not than blue
    snowed = snow(images, keys=keys(1), mix=0.6, **NO_FLAKES)
    for channel, (value, lighter) in enumerate([(0.1, white), (0.2, white), (0.9, 0.9)]):
        assert torch.allclose(snowed[0, channel], torch.tensor(0.6 * value + 0.4 * lighter))


def test_flakes_are_cut_to_8_bits_blurred_and_rounded_to_8_bits() -> None:
    field = torch.zeros(1, 1, 30, 30)
    field[0, 0, 20, 10], field[0, 0, 5, 5] = 0.999, 0.49
    layer = flakes(field, torch.tensor([-np.pi / 2]), zoom=1.0, threshold=0.5, radius=2, sigma=1.5)[0, 0] * 255
    weights = np.exp(-(np.arange(5) ** 2) / (2 * 1.5**2))
    expected = np.zeros((30, 30))
    expected[20:25, 10] = np.round(254 * weights / weights.sum())  # 0.999 * 255 is cut to 254; 0.49 is no flake
    np.testing.assert_allclose(layer, expected, atol=1e-4)


def test_layer_lies_on_the_image_twice_the_second_time_turned() -> None:
    images = torch.zeros(3, 3, 20, 24)
    snowed = snow(images, keys=keys(3), mix=1.0, mean=0.1, deviation=0.3, zoom=2, threshold=0.4, radius=4, sigma=2)
    assert torch.equal(snowed, snowed.flip(2, 3))
    assert not torch.equal(snowed, snowed.flip(3))
    assert (snowed > 0).any((1, 2, 3)).all()


def test_wind_blows_from_minus_135_to_minus_45_degrees(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    blur = "testbed.perturbations.corruptions.snow.line_filter"
    monkeypatch.setattr(blur, lambda images, *, angles, **_: seen.append(angles) or images)
    snow(torch.zeros(400, 1, 8, 8), keys=keys(400), mix=1.0, **NO_FLAKES)
    degrees = torch.cat(seen).rad2deg()
    assert -135 < degrees.min() < -134
    assert -46 < degrees.max() < -45
    assert torch.histc(degrees, 3, min=-135, max=-45).min() > 100


@pytest.mark.parametrize("zoom", [1.0, 1.25, 2.25, 4.5])
def test_every_part_of_the_field_that_is_seen_is_normal(monkeypatch: pytest.MonkeyPatch, zoom: float) -> None:
    """Only the middle of the numbers is turned into normal ones; the result must be as if all were."""
    layers = []
    zoomed = "testbed.perturbations.corruptions.snow.clipped_zoom"
    from testbed.perturbations.corruptions.filters import clipped_zoom

    monkeypatch.setattr(zoomed, lambda field, factor: layers.append(clipped_zoom(field, factor)) or layers[-1].clone())
    snow(torch.zeros(2, 1, 17, 30), keys=keys(2), mix=1.0, **{**NO_FLAKES, "mean": 0, "deviation": 1, "zoom": zoom})
    units = keys(2).uniform("snow/field", (1, 17, 30), dtype="float64")
    expected = clipped_zoom(torch.from_numpy(ndtri(units.numpy())).float(), zoom)
    assert torch.allclose(layers[0], expected, atol=1e-6)


def remade(monkeypatch: pytest.MonkeyPatch) -> Levels:
    """What is stored: the reference's snow on a photo of 27 x 27 pixels, given our draws, its layer cut to 8 bits."""
    return np.stack([snow_by_reference(photo(27, 27, n=1), severity, monkeypatch) for severity in SEVERITIES])


@pytest.mark.parametrize("severity", SEVERITIES)
def test_equals_the_stored_values_of_the_reference(severity: int) -> None:
    assert differences(SNOW, photo(27, 27, n=1), stored("snow")[severity - 1], severity).max() < 0.51 / STEPS


def test_stored_values_are_those_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    np.testing.assert_allclose(stored("snow"), remade(monkeypatch), atol=0.51 / STEPS)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("severity", SEVERITIES)
def test_equals_the_reference_given_its_draws(monkeypatch: pytest.MonkeyPatch, channels: int, severity: int) -> None:
    image = photo(224, 224, channels, n=1)
    assert differences(SNOW, image, snow_by_reference(image, severity, monkeypatch), severity).max() < 1.1


@pytest.mark.parametrize("severity", SEVERITIES)
def test_reference_departs_by_the_8_bits_that_it_leaves_out(monkeypatch: pytest.MonkeyPatch, severity: int) -> None:
    image = photo(224, 224, n=1)
    theirs = snow_by_reference(image, severity, monkeypatch, is_cut=False)
    departures = differences(SNOW, image, theirs, severity)
    assert departures.max() < 3.1
    assert departures.mean() < 1
