"""Brightness, contrast, saturate and greyscale against Python's own HSV, hand-computed values and the reference."""

from __future__ import annotations

import colorsys
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.corruption_images import photo

from testbed.perturbations.corruptions import colour, digital, noise
from testbed.perturbations.corruptions.colour import brightness, contrast, greyscale, luma, saturate

EXPECTED = Path(__file__).parent / "expected" / "colour.npz"
PARAMETERS = Path(__file__).parents[5] / "shared" / "expected" / "corruption_params.json"
STEPS = 64  # the stored values are in 64ths of a grey level
CASES = [(row.name, severity) for row in colour.CORRUPTIONS if row.has_severities for severity in (1, 3, 5)]
ROWS = [row for family in (colour, digital, noise) for row in family.CORRUPTIONS if row.has_severities]


def pixel(*channels: float) -> torch.Tensor:
    return torch.tensor(channels, dtype=torch.float32).view(1, -1, 1, 1).expand(1, -1, 8, 8).contiguous()


def in_hsv(images: torch.Tensor, change: Callable[[float, float, float], tuple[float, float, float]]) -> torch.Tensor:
    """Every pixel changed in HSV, by Python's own functions."""
    pixels = images.double().movedim(1, 3).reshape(-1, 3).tolist()
    changed = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*colour))) for colour in pixels]
    n, _, height, width = images.shape
    return torch.tensor(changed).view(n, height, width, 3).movedim(3, 1)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
@pytest.mark.parametrize("table", ["imagenet224", "tinyimagenet64", "cifar32", "mnist28"])
@pytest.mark.skipif(not PARAMETERS.is_file(), reason="the published parameters are not beside this checkout")
def test_parameters_are_the_published_ones(row: Any, table: str) -> None:
    published = json.loads(PARAMETERS.read_text())[table][row.name]
    ours = [list(values.values()) for values in row.parameters[table]]
    assert ours == [values if isinstance(values, list) else [values] for values in published]


@pytest.mark.parametrize("added", [0.05, 0.3, 0.5])
def test_brightness_raises_the_value_in_hsv(added: float) -> None:
    images = photo(12, 9)
    expected = in_hsv(images, lambda h, s, v: (h, s, min(v + added, 1)))
    assert torch.allclose(brightness(images, added=added), expected.float(), atol=2e-6)


def test_brightness_makes_black_grey_and_adds_to_one_channel() -> None:
    assert torch.allclose(brightness(pixel(0, 0, 0), added=0.2), pixel(0.2, 0.2, 0.2))
    assert torch.allclose(brightness(pixel(0.9), added=0.2), pixel(1))
    assert torch.allclose(brightness(pixel(0.3), added=0.2), pixel(0.5))
    assert torch.allclose(brightness(pixel(0.2, 0.4, 0.1), added=0.4), pixel(0.4, 0.8, 0.2))


@pytest.mark.parametrize(("gain", "offset"), [(0.3, 0), (2, 0), (5, 0.1), (20, 0.2), (30, 0.2)])
def test_saturate_changes_the_saturation_in_hsv(gain: float, offset: float) -> None:
    images = photo(12, 9)
    expected = in_hsv(images, lambda h, s, v: (h, min(max(s * gain + offset, 0), 1), v))
    assert torch.allclose(saturate(images, gain=gain, offset=offset), expected.float(), atol=1e-5)


def test_saturate_reddens_grey_by_the_offset_alone() -> None:
    assert torch.allclose(saturate(pixel(0.5, 0.5, 0.5), gain=20, offset=0.2), pixel(0.5, 0.4, 0.4))
    assert torch.equal(saturate(pixel(0.5, 0.5, 0.5), gain=20, offset=0), pixel(0.5, 0.5, 0.5))
    assert torch.equal(saturate(pixel(0, 0, 0), gain=20, offset=0.2), pixel(0, 0, 0))
    assert torch.allclose(saturate(pixel(0.5), gain=20, offset=0.2), pixel(0.299 * 0.5 + 0.701 * 0.4))


def test_contrast_draws_values_to_the_mean_of_their_channel() -> None:
    images = photo(30, 20)
    means = images.double().mean((2, 3), keepdim=True)
    assert torch.allclose(contrast(images, gain=0.3).double(), (images - means) * 0.3 + means, atol=1e-7)
    assert torch.equal(contrast(pixel(1, 0, 1), gain=0.05), pixel(1, 0, 1))


def test_contrast_of_a_large_image_has_its_exact_mean() -> None:
    image = torch.rand(1, 1, 1000, 1000, generator=torch.Generator().manual_seed(0))
    assert contrast(image, gain=0)[0, 0, 0, 0].item() == pytest.approx(image.double().mean().item(), abs=1e-7)


def test_greyscale_is_the_luma_in_every_channel() -> None:
    assert torch.allclose(greyscale(pixel(1, 0, 0)), pixel(0.299, 0.299, 0.299))
    assert torch.allclose(luma(pixel(0, 1, 1)), pixel(0.701))
    grey = photo(9, 9, 1)
    assert torch.equal(greyscale(grey), grey)
    assert greyscale(grey).data_ptr() != grey.data_ptr()


def ours(name: str, severity: int) -> torch.Tensor:
    row = next(row for row in colour.CORRUPTIONS if row.name == name)
    changed: torch.Tensor = row.function(photo(16, 16, n=1), **row.at(severity, "imagenet224"))
    return changed[0] * 255


def remake_expected() -> dict[str, np.ndarray]:
    """What `expected/colour.npz` holds: the reference package's results, in 64ths of a grey level, channels first."""
    reference = pytest.importorskip(
        "imagecorruptions.corruptions", reason="opt-in: pip install imagecorruptions-imaug==1.1.5"
    )
    pixels = (photo(16, 16, n=1)[0].movedim(0, 2) * 255).round().byte().numpy()
    results = {(name, severity): getattr(reference, name)(pixels, severity) for name, severity in CASES}
    return {f"{name}.{severity}": np.round(np.moveaxis(result, 2, 0) * STEPS).astype(np.uint16)
            for (name, severity), result in results.items()}  # fmt: skip


@pytest.mark.parametrize(("name", "severity"), CASES)
def test_results_are_those_of_the_reference_package(name: str, severity: int) -> None:
    with np.load(EXPECTED) as stored:
        expected = torch.from_numpy(stored[f"{name}.{severity}"].astype(np.float32)) / STEPS
    assert (ours(name, severity) - expected).abs().max() < 1 / STEPS


def test_stored_results_are_still_the_reference_packages() -> None:
    remade = remake_expected()
    with np.load(EXPECTED) as stored:
        assert sorted(stored) == sorted(remade)
        assert all(np.array_equal(stored[name], remade[name]) for name in remade)
