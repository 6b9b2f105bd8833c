"""Noise lies where it must and is distributed as published."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from tests.noises import ALL_NOISES, keys_of, random_images

from testbed.errors import DataError, DefinitionError, ShapeError
from testbed.perturbations.noise import GaussianNoise, UniformNoise
from testbed.randomness import SampleKeys, uniform_numpy

EPSILON = 0.10588236153125763  # of CIFAR-10 (expected/lp_ball_facts.json, and all the values below)
TRUNCATED = {  # pixel: mean, standard deviation
    0.0: (0.052941180765628815, 0.030565604966252435),
    0.05: (0.07794118076562881, 0.04499936169599308),
    0.5: (0.5, 0.06113120993250487),
    1.0: (0.9470588192343712, 0.030565604966252435),
}
CLIPPED = {  # pixel: mean, standard deviation, mass on the bound; by simulation of 200,000
    0.0: (0.02655799376349211, 0.03422491830727182, 0.499495),
    0.05: (0.05743775586812079, 0.051691679097304176, 0.263445),
    0.5: (0.500012067412346, 0.06111015694964221, 0.0),
    1.0: (0.9734688927749842, 0.03417470746108619, 0.4989475),
}
BALLS = {  # norm, dimension: of the coordinates the mean absolute value, the root mean square (l2: exact), the mean of
    # the largest absolute value of a point; by simulation
    ("l2", 2): (0.4242999585160914, 0.5, 0.6004764151515856),
    ("l2", 3072): (0.014391187686184817, 0.018036325667702163, 0.06726790126611251),
    ("l1", 2): (0.33331852853603783, 0.40842137590146926, 0.5003850524304558),
    ("l1", 3072): (0.0003254121673810489, 0.0004599567453289039, 0.002793812802104661),
}


# ------------------------------------------------------------------------------------------- rules of all noises


@pytest.mark.parametrize("noise", ALL_NOISES, ids=repr)
def test_noise_is_new_float32_of_the_same_shape_and_the_input_stays(noise):
    images = random_images()
    before = images.clone()
    noisy = noise(images, keys=keys_of(50))
    assert torch.equal(images, before)
    assert noisy.data_ptr() != images.data_ptr()
    assert (noisy.shape, noisy.dtype) == (images.shape, torch.float32)
    assert (noisy != images).float().mean() > 0.5
    if getattr(noise, "boundary", "clip") != "none":
        assert noisy.min() >= 0
        assert noisy.max() <= 1


@pytest.mark.parametrize("noise", ALL_NOISES, ids=repr)
def test_noise_takes_rows_of_numbers_and_no_samples_at_all(noise):
    assert noise(random_images(5, (2,)), keys=keys_of(5)).shape == (5, 2)
    assert noise(torch.zeros(0, 3, 8, 8), keys=keys_of(0)).shape == (0, 3, 8, 8)


@pytest.mark.parametrize("noise", ALL_NOISES, ids=repr)
def test_global_generators_are_left_alone(noise):
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    noise(random_images(3), keys=keys_of(3))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002


@pytest.mark.parametrize("noise", ALL_NOISES, ids=repr)
def test_argument_names_are_those_of_a_perturbation(noise):
    assert list(inspect.signature(noise).parameters) == ["images", "keys"]


# --------------------------------------------------------------------------------------- uniform, L-infinity


@pytest.mark.parametrize("boundary", ["truncate", "clip", "none"])
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.03, 0.1, EPSILON, 27 / 255, 111 / 510, 0.5, 1.0, 3.0])
def test_no_pixel_is_farther_than_epsilon_without_a_tolerance(epsilon, boundary):
    """In float64, where the difference of two pixels is exact; also for pixels next to epsilon, 0 and 1."""
    images = random_images(200)
    images[:, 0, 0, :4] = torch.tensor([epsilon, 1 - epsilon, np.nextafter(np.float32(epsilon), 1), 1e-7]).clamp(0, 1)
    noisy = UniformNoise(norm="linf", epsilon=epsilon, boundary=boundary)(images, keys=keys_of(200))
    assert (noisy.double() - images.double()).abs().max() <= epsilon
    if boundary != "none":
        assert noisy.min() >= 0
        assert noisy.max() <= 1


@pytest.mark.parametrize("boundary", ["truncate", "clip", "none"])
@pytest.mark.parametrize("unit", [2.0**-24, 3 * 2.0**-24, 0.5 - 2.0**-24, 1 - 3 * 2.0**-24, 1 - 2.0**-24])
def test_extreme_draws_stay_in_the_ball(unit, boundary, monkeypatch):
    """Every 8-bit pixel, and the float32 neighbours of epsilon and 1 - epsilon, at 300 levels."""
    monkeypatch.setattr(SampleKeys, "uniform", lambda self, stream, shape, device: torch.full((1, *shape), unit))
    pixels = np.arange(256, dtype=np.float32) / np.float32(255)
    for epsilon in [27 / 255, EPSILON, *np.geomspace(1e-8, 1, 298).tolist()]:
        edges = np.float32([epsilon, 1 - epsilon])
        images = torch.from_numpy(np.concatenate([pixels, edges, np.nextafter(edges, 0), np.nextafter(edges, 1)]))[None]
        noisy = UniformNoise(norm="linf", epsilon=epsilon, boundary=boundary)(images.clamp(0, 1), keys=keys_of(1))
        assert (noisy.double() - images.clamp(0, 1).double()).abs().max() <= epsilon
        assert boundary == "none" or (noisy.min() >= 0 and noisy.max() <= 1)


@pytest.mark.parametrize("pixel", list(TRUNCATED))
def test_truncated_noise_is_uniform_on_ball_and_pixel_range(pixel):
    """Clipping fails this at 0, 0.05 and 1: another mean, and up to half of the mass on the bound."""
    noisy = UniformNoise(norm="linf", epsilon=EPSILON)(torch.full((100, 2000), pixel), keys=keys_of(100)).double()
    mean, deviation = TRUNCATED[pixel]
    assert noisy.mean().item() == pytest.approx(mean, abs=4 * deviation / 200_000**0.5)
    assert noisy.std().item() == pytest.approx(deviation, rel=0.005)
    assert ((noisy == 0) | (noisy == 1)).double().mean() < 1e-4
    low, high = max(pixel - EPSILON, 0), min(pixel + EPSILON, 1)
    assert noisy.min().item() == pytest.approx(low, abs=1e-4)
    assert noisy.max().item() == pytest.approx(high, abs=1e-4)


@pytest.mark.parametrize("pixel", list(CLIPPED))
def test_clipped_noise_piles_up_on_the_bound(pixel):
    noise = UniformNoise(norm="linf", epsilon=EPSILON, boundary="clip")
    noisy = noise(torch.full((100, 2000), pixel), keys=keys_of(100)).double()
    mean, deviation, mass = CLIPPED[pixel]
    assert noisy.mean().item() == pytest.approx(mean, abs=6 * deviation / 200_000**0.5)
    assert noisy.std().item() == pytest.approx(deviation, rel=0.01)
    assert ((noisy == 0) | (noisy == 1)).double().mean().item() == pytest.approx(mass, abs=0.006)


def test_truncated_noise_goes_the_fraction_of_the_way_that_the_draw_tells():
    """At every level the same fraction, which is the stream 'uniform-linf'."""
    images, keys = torch.full((4, 500), 0.5), keys_of(4, draw=3)
    small, large = (UniformNoise(norm="linf", epsilon=level)(images, keys=keys) for level in (0.125, 0.25))
    units = keys.uniform("uniform-linf", (500,))
    assert torch.allclose((small - 0.375) / 0.25, units, rtol=0, atol=1e-6)
    assert torch.allclose((large - 0.25) / 0.5, units, rtol=0, atol=1e-6)


def test_noise_is_low_plus_unit_times_width_in_two_rounded_steps():
    """The formula in numpy, which never fuses: the bits must not depend on the device's multiply-add."""
    images, keys = random_images(30), keys_of(30)
    noisy = UniformNoise(norm="linf", epsilon=0.25)(images, keys=keys).numpy()
    low, high = np.maximum(images.numpy() - np.float32(0.25), 0), np.minimum(images.numpy() + np.float32(0.25), 1)
    steps = uniform_numpy(keys._key("uniform-linf"), np.arange(30), draw=0, shape=(3, 8, 8)) * (high - low)
    assert np.array_equal(noisy, low + steps)


def test_data_without_bounds_keep_the_whole_ball():
    rows = torch.tensor([[-7.25, 1000.0], [0.0, 3.5]]).repeat(500, 1)
    offsets = UniformNoise(norm="linf", epsilon=0.5, boundary="none")(rows, keys=keys_of(1000)).double() - rows
    assert offsets.abs().max() <= 0.5
    assert offsets.mean(dim=0).abs().max() < 0.03
    assert offsets.std(dim=0).tolist() == pytest.approx([0.5 / 3**0.5] * 2, rel=0.05)


# ------------------------------------------------------------------------------------------ uniform, L2 and L1


@pytest.mark.parametrize(("norm", "dimension"), list(BALLS))
def test_noise_is_uniform_in_the_ball(norm, dimension):
    """Radius U^(1/d) in the ball's own norm, and coordinates with the published moments."""
    num_samples = 100_000 if dimension == 2 else 300
    noise = UniformNoise(norm=norm, epsilon=1.0, boundary="none")
    points = noise(torch.zeros(num_samples, dimension), keys=keys_of(num_samples)).double()
    radii = torch.linalg.vector_norm(points, ord=2 if norm == "l2" else 1, dim=1)
    mean_radius = dimension / (dimension + 1)
    assert radii.max() <= 1 + 1e-6
    assert radii.mean().item() == pytest.approx(mean_radius, abs=4 * mean_radius / dimension / num_samples**0.5)
    assert stats.kstest(radii**dimension, "uniform").pvalue > 0.01
    mean_absolute, root_mean_square, mean_largest = BALLS[norm, dimension]
    assert points.abs().mean().item() == pytest.approx(mean_absolute, rel=0.01)
    assert points.square().mean().sqrt().item() == pytest.approx(root_mean_square, rel=0.01)
    assert points.abs().amax(dim=1).mean().item() == pytest.approx(mean_largest, rel=0.03)
    assert points.mean().abs() < 5 * root_mean_square / (num_samples * dimension) ** 0.5


def test_l2_directions_are_normal_and_not_laplace():
    """Kurtosis of the coordinates: 3 for directions of the sphere, 6 for Laplace ones (the published code's slip)."""
    noise = UniformNoise(norm="l2", epsilon=1.0, boundary="none")
    points = noise(torch.zeros(100, 3072), keys=keys_of(100)).double()
    kurtosis = (points**4).mean() / (points**2).mean() ** 2
    assert kurtosis.item() == pytest.approx(2.9956, abs=0.05)


@pytest.mark.parametrize(("norm", "order"), [("l2", 2), ("l1", 1)])
def test_clipped_points_stay_in_the_ball(norm, order):
    images = random_images(100)
    noisy = UniformNoise(norm=norm, epsilon=1.375, boundary="clip")(images, keys=keys_of(100))
    lengths = torch.linalg.vector_norm((noisy.double() - images).flatten(1), ord=order, dim=1)
    assert lengths.max() <= 1.375 * (1 + 1e-6)


# -------------------------------------------------------------------------------------------------- Gaussian


def test_gaussian_noise_is_normal_and_clips_or_not():
    """Half a sigma below 1, a share of 0.3085 (the normal distribution at -1/2) is clipped."""
    images, keys = torch.full((100, 1000), 0.95), keys_of(100)
    free, clipped = (GaussianNoise(sigma=0.1, boundary=boundary)(images, keys=keys) for boundary in ("none", "clip"))
    assert (free - images).mean().item() == pytest.approx(0, abs=4 * 0.1 / 1e5**0.5)
    assert (free - images).std().item() == pytest.approx(0.1, rel=0.01)
    assert stats.kstest((free - images).double().flatten() / 0.1, "norm").pvalue > 0.01
    assert torch.equal(clipped, free.clamp(0, 1))
    assert (clipped == 1).float().mean().item() == pytest.approx(0.3085375, abs=4 * (0.3085 * 0.6915 / 1e5) ** 0.5)


# ------------------------------------------------------------------------------------------------ bad requests


def test_level_from_a_separation_is_asked_for_by_name_and_can_be_filled_in():
    noise = UniformNoise(norm="linf", epsilon=None)
    with pytest.raises(DefinitionError, match="has no level yet: it comes from the minimal class separation"):
        noise(torch.zeros(1, 2), keys=keys_of(1))
    assert dataclasses.replace(noise, epsilon=0.1)(torch.zeros(1, 2), keys=keys_of(1)).max() <= 0.1


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: UniformNoise(norm="l3", epsilon=0.1), "norm 'l3'. Use one of linf, l2, l1"),
        (lambda: UniformNoise(norm="linf", epsilon=0.1, boundary="wrap"), "boundary 'wrap'"),
        (lambda: UniformNoise(norm="l2", epsilon=0.1), "l2 ball cannot be truncated .* Use boundary='clip'"),
        (lambda: UniformNoise(norm="linf", epsilon=-0.1), "epsilon -0.1. It must be 0 or a positive number"),
        (lambda: UniformNoise(norm="linf", epsilon=float("nan")), "epsilon nan"),
        (lambda: GaussianNoise(sigma=float("inf")), "sigma inf"),
        (lambda: GaussianNoise(sigma=0.1, boundary="truncate"), "boundary 'truncate'. Use 'clip' or 'none'"),
    ],
)
def test_impossible_noise_is_refused_when_built(build, message):
    with pytest.raises(DefinitionError, match=message):
        build()


@pytest.mark.parametrize("noise", [UniformNoise(norm="linf", epsilon=0.1), GaussianNoise(sigma=0.1)], ids=repr)
def test_unfit_images_are_refused(noise):
    with pytest.raises(ShapeError, match="3 images with the keys of 2 samples"):
        noise(torch.zeros(3, 2), keys=keys_of(2))
    with pytest.raises(DataError, match=r"type torch.uint8. Convert them to float32"):
        noise(torch.zeros(2, 2, dtype=torch.uint8), keys=keys_of(2))
    for value in (-0.5, 2.1, float("nan")):
        with pytest.raises(DataError, match=r"must be in \[0, 1\]"):
            noise(torch.tensor([[0.5, value]]), keys=keys_of(1))


def test_rounding_of_a_resize_is_put_back_into_the_pixel_range():
    images = torch.tensor([[1 + 2.0**-23, -(2.0**-30)]])
    noisy = UniformNoise(norm="linf", epsilon=0.0)(images, keys=keys_of(1))
    assert noisy.tolist() == [[1, 0]]


@pytest.mark.parametrize(("norm", "metric"), [("l2", "euclidean"), ("l1", "cityblock")])
def test_readme_says_how_long_clipped_noise_is_on_digits(norm, metric):
    from scipy.spatial.distance import cdist
    from sklearn.datasets import load_digits

    data, targets = load_digits(return_X_y=True)
    rows = data / 16
    distances = cdist(rows, rows, metric)
    epsilon = distances[targets[:, None] != targets].min() / 2
    images = torch.tensor(rows, dtype=torch.float32).reshape(-1, 1, 8, 8)
    noisy = UniformNoise(norm=norm, epsilon=float(epsilon), boundary="clip")(images, keys=keys_of(len(images)))
    lengths = np.linalg.norm((noisy - images).flatten(1).double(), ord=int(norm[1]), axis=1) / epsilon
    readme = (Path(__file__).resolve().parents[3] / "README.md").read_text().replace("\n", " ")
    said = re.search(rf"median length of the noise is .*?([0-9.]+) (?:of epsilon )?in {norm.upper()}", readme)
    assert float(np.median(lengths)) == pytest.approx(float(said[1]), abs=0.01)
