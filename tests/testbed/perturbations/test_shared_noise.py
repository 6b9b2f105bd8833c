"""Shared noise: a run has as many offsets as draws, the same for all its samples, in training as in evaluation.

It is the protocol of the published 2D results (Siedel et al. 2022; the authors' code seeds every point alike).
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.noises import keys_of

from testbed.perturbations.noise import UniformNoise

NORMS = ("linf", "l2", "l1")
ZEROS = torch.zeros(50, 2)  # offsets from 0 are exact


def shared(norm: str, epsilon: float = 1.0) -> UniformNoise:
    return UniformNoise(norm=norm, epsilon=epsilon, boundary="none", is_shared=True)


@pytest.mark.parametrize("norm", NORMS)
def test_all_samples_of_a_draw_have_one_offset(norm: str) -> None:
    offsets = shared(norm)(ZEROS, keys=keys_of(50))
    assert offsets.unique(dim=0).shape == (1, 2)
    own = UniformNoise(norm=norm, epsilon=1.0, boundary="none")(ZEROS, keys=keys_of(50))
    assert own.unique(dim=0).shape == (50, 2)


@pytest.mark.parametrize("norm", NORMS)
def test_training_and_evaluation_have_the_same_offsets(norm: str) -> None:
    """Whatever the samples: those that a model is fitted on are not those that it is tested on."""
    test = shared(norm)(ZEROS, keys=keys_of(50, draw=3))
    fit = shared(norm)(torch.zeros(7, 2), keys=keys_of(7, draw=3, purpose="train", sample_indices=np.arange(60, 67)))
    assert torch.equal(fit, test[:7])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("change", [{"draw": 1}, {"seed": 1}, {"dataset": "e"}], ids=str)
def test_another_draw_run_or_data_set_has_other_offsets(norm: str, change: dict[str, object]) -> None:
    one, other = (shared(norm)(ZEROS[:1], keys=keys_of(1, **fields)) for fields in ({}, change))
    assert (one != other).all()


@pytest.mark.parametrize("norm", NORMS)
def test_draws_are_independent_and_uniform_in_the_ball(norm: str) -> None:
    """Over 2,000 draws: mean radius d / (d + 1) = 2/3, and no correlation of one draw with the next."""
    offsets = torch.cat([shared(norm)(ZEROS[:1], keys=keys_of(1, draw=draw)) for draw in range(2000)]).double()
    order = {"linf": float("inf"), "l2": 2, "l1": 1}[norm]
    radii = torch.linalg.vector_norm(offsets, ord=order, dim=1)
    assert radii.mean().item() == pytest.approx(2 / 3, abs=4 * (1 / 18 / 2000) ** 0.5)
    neighbours = (offsets[1:] * offsets[:-1]).mean(dim=0) / offsets.square().mean(dim=0)
    assert neighbours.abs().max() < 4 / 2000**0.5


def test_shared_noise_is_cut_at_the_bounds_of_each_pixel_by_the_same_draw() -> None:
    """Of the interval that is left to a pixel, all go the same fraction of the way: here 0.25 and 0.5 wide."""
    images = torch.tensor([[0.0], [0.5]])
    noisy = UniformNoise(norm="linf", epsilon=0.25, is_shared=True)(images, keys=keys_of(2))
    at_bound, inside = noisy.flatten().tolist()
    assert at_bound / 0.25 == pytest.approx((inside - 0.25) / 0.5, abs=1e-6)
