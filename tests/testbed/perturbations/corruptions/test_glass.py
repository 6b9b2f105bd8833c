"""Glass blur: the published sequence of moves, given the same draws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import ndimage
from tests.corruption_images import keys, photo

from testbed.perturbations.corruptions import filters, glass
from testbed.perturbations.corruptions.glass import CORRUPTIONS, glass_blur
from testbed.randomness import SampleKeys

PARAMETERS = Path(__file__).resolve().parents[5] / "shared" / "expected" / "corruption_params.json"
(GLASS,) = CORRUPTIONS
UNSMOOTHED = 0.05  # a sigma whose weights are a single one


def smooth(image: NDArray[Any], sigma: float) -> NDArray[np.float64]:
    """A Gaussian over (H, W, C)."""
    return np.asarray(ndimage.gaussian_filter(image, (sigma, sigma, 0), mode="nearest", truncate=4))


def offsets_of(
    sample: SampleKeys, height: int, width: int, *, max_delta: int, iterations: int
) -> list[tuple[int, int]]:
    """(dx, dy) of every visit, in order: for each, floor(2 d u) - d of two uniform numbers."""
    visited = (iterations, height - 2 * max_delta, width - 2 * max_delta, 2)
    units = sample.uniform("glass_blur/offset", visited)[0].double()
    moves = (units * 2 * max_delta).floor().long() - max_delta
    return [(int(dx), int(dy)) for dx, dy in moves.reshape(-1, 2).tolist()]


def published(
    image: NDArray[np.uint8], offsets: list[tuple[int, int]], *, sigma: float, max_delta: int, iterations: int
) -> NDArray[np.float64]:
    """(H, W, C) or (H, W) in [0, 1]: the published steps one by one, with the assignment as it is written there.

    On (H, W, C) the right-hand side holds views of the two pixels, and the first assignment changes what the second
    reads; on (H, W) it holds two numbers.
    """
    grey = image.ndim == 2
    pixels = np.uint8(smooth(image.reshape(*image.shape[:2], -1) / 255.0, sigma) * 255)
    pixels = pixels[..., 0] if grey else pixels
    height, width = image.shape[:2]
    draws = iter(offsets)
    for _ in range(iterations):
        for y in range(height - max_delta, max_delta, -1):
            for x in range(width - max_delta, max_delta, -1):
                dx, dy = next(draws)
                pixels[y, x], pixels[y + dy, x + dx] = pixels[y + dy, x + dx], pixels[y, x]
    return smooth(pixels.reshape(height, width, -1) / 255.0, sigma).clip(0, 1)


@pytest.mark.parametrize("table", GLASS.parameters)
def test_parameters_are_the_published_ones(table: str) -> None:
    if not PARAMETERS.is_file():
        pytest.skip(f"the shared parameters are not there ({PARAMETERS.name})")
    rows = json.loads(PARAMETERS.read_text())[table]["glass_blur"]
    for ours, row in zip(GLASS.parameters[table], rows, strict=True):
        assert [ours["sigma"], ours["max_delta"], ours["iterations"]] == row
        assert ours.get("probability", 1) == (0.5 if table == "mnist28" else 1)


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("channels", [1, 3])
def test_published_steps_are_followed_to_the_bit(severity: int, channels: int) -> None:
    row = GLASS.at(severity, "imagenet224")
    images = photo(24, 20, channels, n=2)
    ours = glass_blur(images, keys=keys(2), **row).movedim(1, 3).numpy()
    for index, image in enumerate(images):
        levels = np.rint(image.movedim(0, 2).numpy() * 255).astype(np.uint8)
        sizes = {name: row[name] for name in ("max_delta", "iterations")}
        offsets = offsets_of(keys(1, start=index), 24, 20, **sizes)
        expected = published(levels[..., 0] if channels == 1 else levels, offsets, **row)
        assert np.array_equal(ours[index], expected.astype(np.float32))


def test_copy_and_swap_can_be_chosen_on_any_channels() -> None:
    colour = photo(16, 16, 3, n=2)
    grey, row = colour[:, :1].contiguous(), GLASS.at(3, "imagenet224")
    for exchange in ("copy", "swap"):
        ours = glass_blur(colour, keys=keys(2), exchange=exchange, **row)  # type: ignore[arg-type]
        alone = glass_blur(grey, keys=keys(2), exchange=exchange, **row)  # type: ignore[arg-type]
        assert torch.equal(ours[:, :1], alone)
        assert torch.equal(glass_blur(colour, keys=keys(2), **row), ours) == (exchange == "copy")
        assert torch.equal(glass_blur(grey, keys=keys(2), **row), alone) == (exchange == "swap")


def test_swapping_keeps_every_pixel_and_copying_does_not() -> None:
    images = photo(24, 24, 1, n=1)
    before = images.flatten().sort().values
    swapped = glass_blur(images, keys=keys(1), sigma=UNSMOOTHED, max_delta=2, iterations=2, exchange="swap")
    copied = glass_blur(images, keys=keys(1), sigma=UNSMOOTHED, max_delta=2, iterations=2, exchange="copy")
    assert torch.equal(swapped.flatten().sort().values, before)
    assert not torch.equal(copied.flatten().sort().values, before)


def test_offsets_are_uniform_from_minus_delta_to_delta_less_one() -> None:
    """The pixel visited first, (H - d, W - d), still gets a pixel of the input."""
    count, places = 8000, torch.arange(64) * 3 / 255
    images = places.view(1, 1, 8, 8).expand(count, -1, -1, -1)
    moved = glass_blur(images, keys=keys(count), sigma=UNSMOOTHED, max_delta=2, iterations=1, exchange="copy")
    places_seen = (moved[:, 0, 6, 6] * 255 / 3).round().long()
    seen, counts = places_seen.unique(return_counts=True)
    assert seen.tolist() == [8 * y + x for y in range(4, 8) for x in range(4, 8)]
    assert ((counts - count / 16).square() / (count / 16)).sum() < 37.7  # chi-square, 15 degrees of freedom, p = 0.001


def test_probability_leaves_a_share_of_the_pixels_in_place() -> None:
    images = (torch.arange(64 * 64) % 251 / 255).view(1, 1, 64, 64)

    def share(probability: float) -> float:
        moved = glass_blur(
            images, keys=keys(1), sigma=UNSMOOTHED, max_delta=4, iterations=1, probability=probability, exchange="copy"
        )
        return float(((moved - images).abs() > 0.5 / 255)[..., 5:61, 5:61].float().mean())

    assert share(1.0) > 0.95
    assert share(0.5) == pytest.approx(0.5, abs=0.04)
    assert share(0.0) == 0


def test_images_too_small_for_a_move_are_smoothed_alone() -> None:
    images = photo(8, 8, n=1)
    still = glass_blur(images, keys=keys(1), sigma=UNSMOOTHED, max_delta=4, iterations=2)
    assert torch.equal(still, images)


def test_same_bits_however_the_draws_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    images, row = photo(20, 20, n=7), GLASS.at(5, "mnist28")
    whole = glass_blur(images, keys=keys(7), **row)
    monkeypatch.setattr(glass, "_DRAWS_AT_ONCE", 2000)
    assert torch.equal(glass_blur(images, keys=keys(7), **row), whole)


def test_moves_differ_between_samples_seeds_and_draws() -> None:
    images = photo(32, 32, n=1).expand(3, -1, -1, -1)
    row = GLASS.at(1, "imagenet224")
    blurred = [glass_blur(images, keys=k, **row) for k in (keys(3), keys(3, seed=1), keys(3, draw=1))]
    assert len({tuple(image.flatten().tolist()) for batch in blurred for image in batch}) == 9


@pytest.mark.parametrize("channels", [1, 3])
def test_torch_form_agrees(channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    images, row = photo(24, 32, channels, n=3), GLASS.at(5, "imagenet224")
    compiled = glass_blur(images, keys=keys(3), **row)
    monkeypatch.setattr(filters, "on_cpu", lambda images: False)
    assert torch.allclose(glass_blur(images, keys=keys(3), **row), compiled, atol=1e-7, rtol=0)


def test_constant_images_lose_a_grey_level_where_published_ones_do() -> None:
    """A float64 sum may fall just short of a level, and is cut: pixels must be whole levels in float64 too."""
    row = GLASS.at(4, "imagenet224")
    images = (torch.arange(256) / 255).view(-1, 1, 1, 1).expand(-1, 3, 8, 8)
    ours = glass_blur(images, keys=keys(256), **row)
    still = [(0, 0)] * (2 * 2 * 2)
    for level in range(256):
        expected = published(np.full((8, 8, 3), level, np.uint8), still, **row)
        assert np.array_equal(ours[level].movedim(0, 2), expected.astype(np.float32))
    assert (ours < images).any()


@pytest.mark.parametrize("severity", range(1, 6))
def test_reference_agrees_given_the_same_draws(severity: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "opt-in: pip install imagecorruptions-imaug==1.1.5"
    reference = pytest.importorskip("imagecorruptions.corruptions", reason=reason)
    row, images = GLASS.at(severity, "imagenet224"), photo(32, 40, n=1)
    draws = iter(offsets_of(keys(1), 32, 40, max_delta=row["max_delta"], iterations=row["iterations"]))
    # Its loop, not compiled, and with our draws.
    loop = reference._shuffle_pixels_njit_glass_blur.py_func
    monkeypatch.setattr(reference, "_shuffle_pixels_njit_glass_blur", loop)
    monkeypatch.setattr(np.random, "seed", lambda seed: None)
    monkeypatch.setattr(np.random, "randint", lambda low, high, size: next(draws))
    expected = reference.glass_blur(np.rint(images[0].movedim(0, 2).numpy() * 255).astype(np.uint8), severity, seed=0)
    ours = glass_blur(images, keys=keys(1), **row)[0].movedim(0, 2).numpy() * 255
    assert np.abs(ours - expected).max() < 1e-4
