"""Every kind of noise, and what its tests draw it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from testbed.perturbations.noise import GaussianNoise, L0Noise, UniformNoise
from testbed.randomness import SampleKeys, uniform_numpy

Noise = Callable[..., torch.Tensor]
UNIFORM_NOISES: list[Noise] = [
    UniformNoise(norm=norm, epsilon=0.1, boundary=boundary, is_shared=is_shared)  # type: ignore[arg-type]
    for norm, boundaries in (("linf", ("truncate", "clip", "none")), ("l2", ("clip", "none")), ("l1", ("clip", "none")))
    for boundary in boundaries
    for is_shared in (False, True)
]
ALL_NOISES: list[Noise] = [
    *UNIFORM_NOISES,
    L0Noise(fraction=0.6),
    *(GaussianNoise(sigma=0.1, boundary=boundary) for boundary in ("clip", "none")),  # type: ignore[arg-type]
]


def keys_of(num_samples: int, **changes: Any) -> SampleKeys:
    """Keys of the first samples of a data set."""
    known = {"seed": 0, "purpose": "eval", "dataset": "d", "sample_indices": np.arange(num_samples), "draw": 0}
    return SampleKeys(**(known | changes))


def random_images(num_samples: int = 50, shape: tuple[int, ...] = (3, 8, 8)) -> torch.Tensor:
    """Random float32 pixels, with many on the bounds and some next to them."""
    units = torch.from_numpy(uniform_numpy(99, np.arange(num_samples), draw=0, shape=shape))
    return ((units - 0.5) * 1.3 + 0.5).clamp(0, 1)
