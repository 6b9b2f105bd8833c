"""Noise depends on sample, draw and seeds alone: the same bits for any batch, order, worker and level."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.noises import ALL_NOISES, UNIFORM_NOISES, Noise, keys_of, random_images

from testbed.perturbations.noise import GaussianNoise, L0Noise, UniformNoise, row_sums

ROOT = Path(__file__).resolve().parents[3]
LARGE = (3, 105, 105)  # so large that torch adds the values of one image in several pieces
UNBOUNDED = [noise for noise in ALL_NOISES if getattr(noise, "boundary", None) == "none"]
DRAWN_FROM_NORMAL = [noise for noise in ALL_NOISES if "l2" in repr(noise) or isinstance(noise, GaussianNoise)]


@pytest.mark.parametrize("noise", ALL_NOISES, ids=repr)
@pytest.mark.parametrize("shape", [(2,), (3, 8, 8), LARGE], ids=str)
def test_same_bits_for_any_batching(noise: Noise, shape: tuple[int, ...]) -> None:
    images, keys = random_images(10, shape), keys_of(10)
    whole = noise(images, keys=keys)
    for size in (1, 4):
        parts = [noise(images[i : i + size], keys=keys.take(i, i + size)) for i in range(0, 10, size)]
        assert torch.equal(torch.cat(parts), whole)


def test_lengths_are_added_half_to_half_whatever_the_batch_and_the_layout() -> None:
    """By hand, with e = 2^-53, so that 1 + e is 1: (1 + e) + (e + e) is 1 + 2e, and (e + 1) + (e + 0) is 1."""
    e = 2.0**-53
    assert row_sums(torch.tensor([[1, e, e, e]], dtype=torch.float64)).tolist() == [1 + 2 * e]
    assert row_sums(torch.tensor([[e, e, 1]], dtype=torch.float64)).tolist() == [1]
    rows = keys_of(8).uniform("rows", (3072,), dtype="float64")
    sums = row_sums(rows)
    assert torch.equal(row_sums(rows.T.contiguous().T), sums)
    assert torch.equal(torch.cat([row_sums(row[None]) for row in rows]), sums)
    torch.testing.assert_close(sums, rows.sum(dim=1), rtol=1e-14, atol=0)


@pytest.mark.parametrize("noise", ALL_NOISES, ids=repr)
def test_same_bits_in_any_order_and_any_subset(noise: Noise) -> None:
    images, whole = random_images(20), noise(random_images(20), keys=keys_of(20))
    order = np.array([19, 3, 3, 0, 11])
    assert torch.equal(noise(images[order], keys=keys_of(20, sample_indices=order)), whole[order])


def digest() -> str:
    """Of every noise on large and on small images."""
    found = hashlib.sha256()
    for noise in ALL_NOISES:
        for shape in ((2,), LARGE):
            found.update(noise(random_images(5, shape), keys=keys_of(5, draw=7)).numpy().tobytes())
    return found.hexdigest()


def test_same_bits_in_another_process_with_other_threads() -> None:
    code = f"""
import sys
sys.path[:0] = [{str(ROOT / "src")!r}, {str(ROOT)!r}, {str(Path(__file__).parent)!r}]
import torch
torch.set_num_threads({torch.get_num_threads() + 1})
from test_noise_invariance import digest
print(digest())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest()


def _drawn_elsewhere(noise: Noise, images: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    """The noise by the form that every device but the CPU uses, here on the CPU."""
    with monkeypatch.context() as patch:
        patch.setattr(torch, "device", lambda device: SimpleNamespace(type="elsewhere"))
        return noise(images, keys=keys_of(len(images)))


@pytest.mark.parametrize("noise", ALL_NOISES, ids=repr)
def test_other_devices_draw_the_same_noise(noise: Noise, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uniform draws to the bit; normal ones to the rounding of two inverse distribution functions."""
    images = random_images(20)
    here, elsewhere = noise(images, keys=keys_of(20)), _drawn_elsewhere(noise, images, monkeypatch)
    tolerance = 1e-7 if noise in DRAWN_FROM_NORMAL else 0
    torch.testing.assert_close(here, elsewhere, rtol=0, atol=tolerance)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
@pytest.mark.parametrize("noise", ALL_NOISES, ids=repr)
def test_a_cuda_device_draws_the_same_noise(noise: Noise) -> None:
    """L-infinity and L0 to the bit; the others to the rounding of logarithms and powers."""
    images = random_images(20)
    here, there = noise(images, keys=keys_of(20)), noise(images.cuda(), keys=keys_of(20)).cpu()
    is_exact = isinstance(noise, L0Noise) or getattr(noise, "norm", None) == "linf"
    torch.testing.assert_close(here, there, rtol=0, atol=0 if is_exact else 1e-6)


@pytest.mark.parametrize("noise", UNBOUNDED, ids=repr)
def test_every_level_has_the_same_unit_offsets(noise: UniformNoise | GaussianNoise) -> None:
    """Around 0, where offsets are exact, twice the level is twice the offset, to the bit."""
    level = "sigma" if isinstance(noise, GaussianNoise) else "epsilon"
    small, large = (replace(noise, **{level: value})(torch.zeros(4, 500), keys=keys_of(4)) for value in (0.1, 0.2))
    assert torch.equal(2 * small, large)


@pytest.mark.parametrize("noise", [n for n in ALL_NOISES if n not in UNIFORM_NOISES or not n.is_shared], ids=repr)
def test_another_seed_draw_data_set_or_purpose_is_other_noise(noise: Noise) -> None:
    images = torch.full((5, 200), 0.5)
    here = noise(images, keys=keys_of(5))
    for change in ({"seed": 1}, {"draw": 1}, {"dataset": "e"}, {"purpose": "train"}):
        assert (noise(images, keys=keys_of(5, **change)) == here).float().mean() < 0.2
