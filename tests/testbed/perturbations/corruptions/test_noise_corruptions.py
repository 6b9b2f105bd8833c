"""Gaussian, shot, impulse and speckle noise: their distributions, and the normal numbers that they are made of."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import ndtri
from tests.corruption_images import keys, photo

from testbed.perturbations.corruptions.noise import (
    CORRUPTIONS,
    gaussian_noise,
    impulse_noise,
    impulses_torch,
    poisson_torch,
    shot_noise,
    speckle_noise,
)
from testbed.perturbations.corruptions.normals import _quantiles, standard_normals

LEAST_P = 1e-3  # a test of a distribution fails below; the draws are fixed, so it always passes or always fails
SEVERITIES = range(1, 6)


def grey(value: float, *shape: int) -> torch.Tensor:
    return torch.full(shape, float(value))


def quantiles(units: np.ndarray) -> np.ndarray:
    out = np.empty(len(units), np.float32)
    _quantiles(units, out)
    return out


def test_normals_are_those_of_the_keys_up_to_rounding() -> None:
    drawn, exact = standard_normals(keys(7), "a/b", (3, 11, 13)), keys(7).normal("a/b", (3, 11, 13))
    assert drawn.shape == (7, 3, 11, 13)
    assert drawn.dtype == torch.float32
    assert torch.allclose(drawn, exact, rtol=5e-7, atol=1e-12)


def test_normals_are_right_out_to_the_last_of_32_bits() -> None:
    words = np.concatenate([np.arange(1000), np.geomspace(1e3, 2.0**31 - 1, 100_000).astype(np.int64)])
    units = (2.0 * words + 1) * 2.0**-33
    exact = ndtri(units)
    assert exact[0] < -6.3
    assert np.allclose(quantiles(units), exact, rtol=5e-7, atol=0)
    assert np.array_equal(quantiles(1 - units), -quantiles(units))


def test_normals_do_not_depend_on_the_batch() -> None:
    whole = standard_normals(keys(64), "a", (3, 32, 32))  # more than one chunk
    for start, stop in ((0, 1), (41, 44), (63, 64)):
        assert torch.equal(standard_normals(keys(stop - start, start=start), "a", (3, 32, 32)), whole[start:stop])


def test_gaussian_noise_is_normal_and_independent_for_every_value() -> None:
    noise = (gaussian_noise(grey(0.5, 40, 3, 16, 16), keys=keys(40), sigma=0.08) - 0.5) / 0.08
    assert stats.kstest(noise.flatten().numpy(), "norm").pvalue > LEAST_P
    channels = np.corrcoef(noise.transpose(0, 1).flatten(1).numpy())
    assert np.abs(channels - np.eye(3)).max() < 4 / math.sqrt(noise.numel() / 3)


@pytest.mark.parametrize("channels", [1, 3])
def test_gaussian_and_speckle_noise_are_their_formula(channels: int) -> None:
    images = photo(17, 24, channels)
    z = keys(4).normal("gaussian_noise/value", images.shape[1:])
    assert torch.allclose(gaussian_noise(images, keys=keys(4), sigma=0.3), (images + 0.3 * z).clamp(0, 1), atol=1e-6)
    z = keys(4).normal("speckle_noise/value", images.shape[1:])
    expected = (images + images * 0.3 * z).clamp(0, 1)
    assert torch.allclose(speckle_noise(images, keys=keys(4), sigma=0.3), expected, atol=1e-6)


def test_speckle_noise_leaves_black_black() -> None:
    assert not speckle_noise(grey(0, 2, 3, 8, 8), keys=keys(2), sigma=0.6).any()


@pytest.mark.parametrize("photons", [3, 60, 500])
@pytest.mark.parametrize("value", [1 / 255, 0.1234567, 100 / 255, 0.5])
def test_shot_noise_counts_are_exactly_poisson(photons: int, value: float) -> None:
    images = grey(value, 60, 1, 16, 16)
    counts = (shot_noise(images, keys=keys(60), photons=photons) * photons).round().flatten().numpy()
    pmf = stats.poisson.pmf(np.arange(photons), photons * float(images[0, 0, 0, 0]))
    expected = np.append(pmf, 1 - pmf.sum()) * len(counts)  # the last are those of white and brighter, which is clipped
    observed = np.bincount(counts.astype(int), minlength=photons + 1)
    bins = np.cumsum(expected) // 10  # counts of fewer than about 10 expected are taken together
    observed, expected = (np.bincount(bins.astype(int), weights=values) for values in (observed, expected))
    assert stats.chisquare(observed[expected > 0], expected[expected > 0]).pvalue > LEAST_P


@pytest.mark.parametrize("photons", [3, 60, 500])
def test_shot_noise_is_the_poisson_quantile_of_one_uniform_number(photons: int) -> None:
    levels = torch.linspace(0, 1, 256).repeat(32).view(2, 1, 64, 64)
    between = torch.rand(2, 1, 64, 64, generator=torch.Generator().manual_seed(0))
    for images in (levels, between):
        units = keys(2).uniform("shot_noise/count", (1, 64, 64), dtype="float64")
        means = images.double() * photons
        exact = torch.from_numpy(stats.poisson.ppf(units.numpy(), means.numpy()))
        expected = (exact / photons).clamp(max=1).float()
        assert torch.equal(shot_noise(images, keys=keys(2), photons=photons), expected)
        assert torch.equal(poisson_torch(means, units, largest=photons), exact)


def test_shot_noise_finds_the_rarest_counts() -> None:
    units = torch.tensor([2.0**-33, 1 - 2.0**-33], dtype=torch.float64)
    for mean in (0.0, 0.01, 3.0, 60.0, 500.0):
        found = poisson_torch(torch.full_like(units, mean), units, largest=mean)
        assert torch.equal(found, torch.from_numpy(stats.poisson.ppf(units.numpy(), mean)).clamp(min=0))


def test_impulses_are_a_fraction_of_the_values_half_of_them_white() -> None:
    noisy = impulse_noise(grey(0.5, 50, 3, 16, 16), keys=keys(50), fraction=0.09)
    total = noisy.numel()
    for value in (0.0, 1.0):
        assert stats.binomtest(int((noisy == value).sum()), total, 0.045).pvalue > LEAST_P
    is_hit = (noisy != 0.5).transpose(0, 1).flatten(1)
    assert stats.binomtest(int((is_hit[0] & is_hit[1]).sum()), total // 3, 0.09**2).pvalue > LEAST_P  # not whole pixels
    assert int((noisy == 0.5).sum() + (noisy == 0).sum() + (noisy == 1).sum()) == total


def test_impulses_of_a_lower_fraction_are_among_those_of_a_higher_one() -> None:
    low, high = (impulse_noise(grey(0.5, 2, 3, 16, 16), keys=keys(2), fraction=f) for f in (0.03, 0.27))
    is_hit = low != 0.5
    assert 0 < is_hit.sum() < (high != 0.5).sum()
    assert torch.equal(low[is_hit], high[is_hit])  # as white or black, too


def test_impulses_are_the_same_in_torch_and_compiled() -> None:
    images = photo(20, 30)
    units = keys(4).uniform("impulse_noise/value", images.shape[1:])
    expected = impulses_torch(images, units, fraction=0.3)
    assert torch.equal(impulse_noise(images, keys=keys(4), fraction=0.3), expected)


def test_strided_images_are_taken_as_any_other() -> None:
    images = photo(12, 10)
    strided = images.contiguous(memory_format=torch.channels_last)
    for function, level in ((gaussian_noise, {"sigma": 0.1}), (shot_noise, {"photons": 60}),
                            (impulse_noise, {"fraction": 0.1}), (speckle_noise, {"sigma": 0.1})):  # fmt: skip
        assert torch.equal(function(strided, keys=keys(4), **level), function(images, keys=keys(4), **level))


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("function", [gaussian_noise, shot_noise, impulse_noise, speckle_noise])
def test_distribution_is_that_of_the_reference_package(function: Callable[..., torch.Tensor], severity: int) -> None:
    reference = pytest.importorskip(
        "imagecorruptions.corruptions", reason="opt-in: pip install imagecorruptions-imaug==1.1.5"
    )
    row = next(row for row in CORRUPTIONS if row.function is function)
    image = photo(64, 64, n=1)
    pixels = (image[0].permute(1, 2, 0) * 255).round().byte().numpy()
    repeats = 6
    ours = row.function(image.repeat(repeats, 1, 1, 1), keys=keys(repeats), **row.at(severity, "imagenet224"))
    ours = ours.permute(0, 2, 3, 1).numpy() * 255
    np.random.seed(1)  # noqa: NPY002
    seeds = [{"seed": seed} if row.name == "impulse_noise" else {} for seed in range(repeats)]
    theirs = np.stack([getattr(reference, row.name)(pixels, severity, **seed) for seed in seeds])
    assert stats.ks_2samp((ours - pixels).ravel(), (theirs - pixels).ravel()).pvalue > LEAST_P
    assert abs((ours - pixels).std() / (theirs - pixels).std() - 1) < 0.02
    assert abs((ours - theirs).mean()) < 5 * theirs.std() / math.sqrt(theirs.size)
