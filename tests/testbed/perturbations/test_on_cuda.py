"""Random numbers and corruptions on a CUDA device are those of the CPU. Without a device nothing here runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.corruption_images import keys, photo
from tests.device_agreement import all_corruptions, disagreement, is_close

from testbed.perturbations.corruptions.corrupt import Corrupt
from testbed.randomness import FloatName, normal, uniform, uniform_numpy

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
EACH = pytest.mark.parametrize("corrupt", list(all_corruptions()), ids=lambda c: f"{c.corruption.name}.{c.severity}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (7,), (3, 17, 13), (3, 224, 224)])
def test_uniform_numbers_have_the_bits_of_the_cpu(dtype: FloatName, shape: tuple[int, ...]) -> None:
    indices = np.array([0, 1, 5, 2**33])
    for key in (0, 2**64 - 1):
        here = uniform_numpy(key, indices, draw=2**32 - 1, shape=shape, dtype=dtype)
        there = uniform(key, indices, draw=2**32 - 1, shape=shape, dtype=dtype, device="cuda")
        assert there.is_cuda
        assert np.array_equal(here, there.cpu().numpy())


def test_normal_numbers_agree_to_rounding() -> None:
    here, there = (normal(3, np.arange(50), draw=1, shape=(1000,), device=device) for device in ("cpu", "cuda"))
    torch.testing.assert_close(here, there.cpu(), rtol=1e-6, atol=1e-7)


@EACH
@pytest.mark.parametrize("size", [32, 224])
def test_corruptions_are_within_their_tolerance(corrupt: Corrupt, size: int) -> None:
    found = disagreement(corrupt, size=size, device="cuda")
    assert is_close(found), found


@EACH
def test_corruptions_are_the_same_bits_in_any_batch(corrupt: Corrupt) -> None:
    images = photo(32, 32, 3, n=16).cuda()
    whole = corrupt(images, keys=keys(16))
    for start, stop in ((0, 1), (3, 10)):
        part = corrupt(images[start:stop], keys=keys(stop - start, start=start))
        assert torch.equal(part, whole[start:stop])
