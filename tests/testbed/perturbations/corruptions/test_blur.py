"""Blur: Gaussian, defocus, motion and zoom against published parameters, independent values and the reference."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import ndimage
from tests.corruption_images import keys, photo

from testbed.perturbations.corruptions import blur, filters
from testbed.perturbations.corruptions.blur import defocus_blur, disk_kernel, gaussian_blur, motion_blur, zoom_blur
from testbed.perturbations.corruptions.corruption import TABLES

PARAMETERS = Path(__file__).resolve().parents[5] / "shared" / "expected" / "corruption_params.json"
EXPECTED = Path(__file__).parent / "expected" / "blur.npz"
REFERENCE = "opt-in: pip install imagecorruptions-imaug==1.1.5"
ROWS = {row.name: row for row in blur.CORRUPTIONS}
SEVERITIES = pytest.mark.parametrize("severity", range(1, 6))


def imagenet(name: str, severity: int) -> Any:
    return ROWS[name].at(severity, "imagenet224")


def pixels(images: torch.Tensor) -> NDArray[np.float64]:
    """(n, H, W, C) on the scale to 255."""
    return images.movedim(1, 3).double().numpy() * 255


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ROWS)
def test_parameters_are_the_published_ones(name: str, table: str) -> None:
    if not PARAMETERS.is_file():
        pytest.skip(f"the shared parameters are not there ({PARAMETERS.name})")
    for ours, published in zip(
        ROWS[name].parameters[table], json.loads(PARAMETERS.read_text())[table][name], strict=True
    ):
        if name == "zoom_blur":
            assert (ours["step"], ours["count"]) == (published["step"], published["n"])
            assert 1 + ours["step"] * (ours["count"] - 1) == pytest.approx(published["last"])
        else:
            assert list(ours.values()) == (published if isinstance(published, list) else [published])


@pytest.mark.parametrize("table", TABLES)
def test_zoom_factors_are_those_that_floating_point_counts(table: str) -> None:
    for row in ROWS["zoom_blur"].parameters[table]:
        assert row["count"] == len(np.arange(1, row["stop"], row["step"]))


def test_exclusive_ends_leave_out_the_factor_that_rounding_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: dict[str, list[int]] = {"published": [], "exclusive": []}
    for ends, numbers in counted.items():
        monkeypatch.setattr(
            blur, "zoom_sum", lambda images, factors, to=numbers: to.append(len(factors)) or images.clone()
        )
        for table in ("imagenet224", "cifar32"):
            for row in ROWS["zoom_blur"].parameters[table]:
                zoom_blur(torch.zeros(1, 1, 8, 8), **row, ends=ends)  # type: ignore[arg-type]
    assert counted["published"] == [12, 16, 11, 13, 11, 7, 12, 16, 21, 26]
    assert counted["exclusive"] == [11, 16, 11, 13, 11, 6, 11, 16, 21, 26]


def test_a_point_out_of_focus_shows_the_disk() -> None:
    """Radius 3 has 29 pixels: rows of 1, 5, 5, 7, 5, 5 and 1; an alias blur of 0.1 px leaves them as they are."""
    images = torch.zeros(1, 1, 15, 15)
    images[0, 0, 7, 7] = 1
    lit = defocus_blur(images, radius=3, alias_sigma=0.1)[0, 0] * 29
    assert torch.allclose(lit.sum(1), torch.tensor([0.0] * 4 + [1, 5, 5, 7, 5, 5, 1] + [0] * 4), atol=1e-5)
    assert torch.allclose(lit[lit > 0.5], torch.ones(29), atol=1e-5)


def test_a_disk_smaller_than_a_pixel_is_the_alias_blur_alone() -> None:
    weights = np.exp(-(np.array([1.0, 0.0, 1.0]) ** 2) / (2 * 0.5**2))
    expected = np.outer(weights, weights) / weights.sum() ** 2
    assert np.allclose(disk_kernel(0.4, alias_sigma=0.5), expected, atol=1e-12)


@pytest.mark.parametrize(("radius", "total"), [(3, 1), (6, 1), (8, 1.01298), (10, 1.01079)])
def test_large_disks_brighten_as_the_published_ones(radius: int, total: float) -> None:
    assert disk_kernel(radius, alias_sigma=0.5 if radius > 3 else 0.1).sum() == pytest.approx(total, abs=1e-5)


@SEVERITIES
def test_defocus_is_a_correlation_with_mirrored_edges(severity: int) -> None:
    row = imagenet("defocus_blur", severity)
    images = photo(24, 40, n=1)
    ours, kernel = defocus_blur(images, **row)[0].numpy(), disk_kernel(**row)
    for channel, plane in zip(ours, images[0].double().numpy(), strict=True):
        assert np.allclose(channel, ndimage.correlate(plane, kernel, mode="mirror").clip(0, 1), atol=1e-6, rtol=0)


@pytest.mark.parametrize("sigma", [0.4, 1.0, 6.0])
def test_gaussian_blur_replicates_edges_and_keeps_channels_apart(sigma: float) -> None:
    images = photo(20, 30, n=1)
    expected = ndimage.gaussian_filter(images[0].double().numpy(), (0, sigma, sigma), mode="nearest", truncate=4)
    assert np.allclose(gaussian_blur(images, sigma=sigma)[0], expected, atol=1e-7, rtol=0)


def test_motion_angles_are_uniform_within_45_degrees() -> None:
    units = keys(2000).uniform("motion_blur/angle", (), dtype="float64")
    images = torch.zeros(2000, 1, 9, 9)
    images[:, :, 4, 4] = 1
    moved = motion_blur(images, keys=keys(2000), radius=1, sigma=10)[:, 0]
    # The sample two steps away is at ceil(2 sin a - 1/2) rows: one up, the same row, or one down.
    rows = torch.ceil(2 * torch.sin((units - 0.5) * math.pi / 2) - 0.5)
    for row in (-1, 0, 1):
        share = (rows == row).float().mean().item()
        edges = np.degrees(np.arcsin(np.clip([(row - 0.5) / 2, (row + 0.5) / 2], -math.sqrt(0.5), math.sqrt(0.5))))
        assert share == pytest.approx((edges[1] - edges[0]) / 90, abs=0.03)
        assert torch.equal((moved[:, 4 - row, 2:4] > 0).any(1) & (rows == row), rows == row)


def test_motion_gives_whole_grey_levels() -> None:
    moved = motion_blur(photo(32, 32), keys=keys(4), **imagenet("motion_blur", 1)) * 255
    assert torch.allclose(moved, moved.round(), atol=1e-4)


def test_motion_differs_between_samples_seeds_and_draws() -> None:
    images = photo(32, 32, n=1).expand(4, -1, -1, -1)
    blurred = [motion_blur(images, keys=k, radius=8, sigma=6) for k in (keys(4), keys(4, seed=1), keys(4, draw=1))]
    assert len({tuple(image.flatten().tolist()) for batch in blurred for image in batch}) == 12


def test_zoom_is_the_mean_of_the_image_and_its_enlargements() -> None:
    images = photo(32, 48, n=2)
    layers = [images, *(filters.clipped_zoom(images, factor) for factor in (1.0, 1.02, 1.04))]
    expected = torch.stack(layers).mean(0)
    assert torch.allclose(zoom_blur(images, stop=1.06, step=0.02, count=3), expected, atol=1e-6)
    assert torch.allclose(layers[1], images, atol=1e-7)  # the factor 1: the image counts twice


@pytest.mark.parametrize("name", ROWS)
def test_torch_forms_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    images = photo(24, 40, n=3)
    arguments = {"keys": keys(3)} if ROWS[name].is_random else {}
    compiled = ROWS[name].function(images, **arguments, **imagenet(name, 5))
    monkeypatch.setattr(filters, "on_cpu", lambda images: False)
    other = ROWS[name].function(images, **arguments, **imagenet(name, 5))
    assert torch.allclose(compiled, other, atol=1 / 254 if name == "motion_blur" else 2e-6, rtol=0)
    assert (compiled - other).abs().mean() < 1e-5  # a rounded value may fall either way, now and then


# Values of the reference for one photograph, in 1/256 of a grey level.
STORED = {"defocus_blur-2": 2, "defocus_blur-5": 5, "zoom_blur-1": 1, "zoom_blur-5": 5}


@pytest.mark.parametrize("case", STORED)
def test_values_are_those_of_the_reference(case: str) -> None:
    name = case.partition("-")[0]
    ours = pixels(ROWS[name].function(photo(24, 24, n=1), **imagenet(name, STORED[case])))
    with np.load(EXPECTED) as stored:
        assert np.abs(ours[0] - stored[case] / 256).max() < 0.01


def reference_values() -> dict[str, NDArray[np.uint16]]:
    """What is stored: `np.savez_compressed(EXPECTED, **reference_values())` remakes the file."""
    reference = pytest.importorskip("imagecorruptions.corruptions", reason=REFERENCE)
    levels = pixels(photo(24, 24, n=1))[0].round().astype(np.uint8)
    made = {case: getattr(reference, case.partition("-")[0])(levels, severity) for case, severity in STORED.items()}
    return {case: np.rint(values * 256).astype(np.uint16) for case, values in made.items()}


def test_stored_values_can_be_made_again() -> None:
    with np.load(EXPECTED) as stored:
        for case, values in reference_values().items():
            assert np.abs(stored[case].astype(int) - values.astype(int)).max() <= 1


@SEVERITIES
@pytest.mark.parametrize("name", ["gaussian_blur", "defocus_blur", "zoom_blur"])
@pytest.mark.parametrize(("height", "width"), [(32, 32), (64, 48)])
def test_reference_agrees(name: str, severity: int, height: int, width: int) -> None:
    """It keeps the top left of an enlargement where the published simulator keeps the middle: hence no larger sides."""
    reference = pytest.importorskip("imagecorruptions.corruptions", reason=REFERENCE)
    images = photo(height, width, n=2)
    ours = pixels(ROWS[name].function(images, **imagenet(name, severity)))
    for blurred, levels in zip(ours, pixels(images).round().astype(np.uint8), strict=True):
        assert np.abs(blurred - getattr(reference, name)(levels, severity)).max() < 0.001


@SEVERITIES
def test_reference_agrees_on_motion_but_for_its_missing_rounding(severity: int) -> None:
    """Sides above the line's length: the reference ends a longer line at the edge, the published one replicates it."""
    reference = pytest.importorskip("imagecorruptions.corruptions", reason=REFERENCE)
    images, row = photo(48, 64, n=2), imagenet("motion_blur", severity)
    degrees = (keys(2).uniform("motion_blur/angle", (), dtype="float64") - 0.5) * 90
    ours = pixels(motion_blur(images, keys=keys(2), **row))
    for blurred, levels, angle in zip(ours, pixels(images).round(), degrees.tolist(), strict=True):
        expected = reference._motion_blur(levels, **row, angle=angle)
        assert np.abs(blurred - expected).max() < 0.501
