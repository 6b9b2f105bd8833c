"""L0 noise replaces an exact count of values, anywhere, by uniform ones."""

from __future__ import annotations

import pytest
import torch
from scipy import stats
from tests.noises import keys_of, random_images

from testbed.errors import DataError, DefinitionError
from testbed.perturbations.noise import L0Noise

GREY = torch.full((400, 3, 8, 8), 0.5)  # a draw is an odd multiple of 2^-24, so never 0.5


def is_replaced(fraction: float) -> torch.Tensor:
    return L0Noise(fraction=fraction)(GREY, keys=keys_of(400)) != GREY


@pytest.mark.parametrize(
    ("fraction", "count"), [(0.0, 0), (0.003, 1), (0.1, 19), (0.12, 23), (0.5, 96), (0.6, 115), (1.0, 192)]
)
def test_every_image_has_exactly_the_count_of_new_values(fraction: float, count: int) -> None:
    """Of 192. Places drawn with replacement, as in the authors' code, would be 75 of 192 at 0.5, and fewer or more."""
    assert is_replaced(fraction).flatten(1).sum(dim=1).unique().tolist() == [count]


def test_halves_are_rounded_up() -> None:
    noisy = L0Noise(fraction=0.5)(torch.full((10, 3), 0.5), keys=keys_of(10))
    assert (noisy != 0.5).sum(dim=1).unique().tolist() == [2]


def test_new_values_are_uniform_in_the_pixel_range() -> None:
    values = L0Noise(fraction=0.25)(GREY, keys=keys_of(400))[is_replaced(0.25)].double()
    assert values.numel() == 400 * 48
    assert stats.kstest(values, "uniform").pvalue > 0.01


def test_all_other_values_stay() -> None:
    images = random_images(20)
    noisy = L0Noise(fraction=0.25)(images, keys=keys_of(20))
    assert (noisy == images).flatten(1).sum(dim=1).unique().tolist() == [144]


def test_places_are_single_channels_and_equally_likely() -> None:
    """All three channels of a pixel at once: 0.25^3 of the pixels, where whole pixels would be 0.25."""
    replaced = is_replaced(0.25).double()
    hits = replaced.sum(dim=0).flatten()
    spread = (hits - 100).square().sum() / (400 * 0.25 * 0.75)  # of places that are binomial, and add up exactly
    assert stats.chi2(191).cdf(spread * 191 / 192) == pytest.approx(0.5, abs=0.49)
    assert replaced.prod(dim=1).mean().item() == pytest.approx(0.25**3, abs=0.004)


def test_a_higher_level_replaces_the_same_values_and_more() -> None:
    few, many = (L0Noise(fraction=fraction)(GREY, keys=keys_of(400)) for fraction in (0.1, 0.3))
    changed = few != GREY
    assert torch.equal(few[changed], many[changed])


def test_so_few_values_that_none_would_be_replaced_are_refused() -> None:
    with pytest.raises(DefinitionError, match=r"0.1 replaces none of the 2 values of an image. Use at least 0.25"):
        L0Noise(fraction=0.1)(torch.zeros(3, 2), keys=keys_of(3))


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_a_fraction_is_from_0_to_1(fraction: float) -> None:
    with pytest.raises(DefinitionError, match=rf"fraction {fraction}. It must be in \[0, 1\]"):
        L0Noise(fraction=fraction)


def test_numbers_without_bounds_are_refused() -> None:
    with pytest.raises(DataError, match=r"must be in \[0, 1\]"):
        L0Noise(fraction=0.5)(torch.tensor([[0.5, 2.0]]), keys=keys_of(1))
