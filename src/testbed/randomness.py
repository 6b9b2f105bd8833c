"""Random numbers that depend on a key, a sample and a draw alone: never on batch size, order, worker or device.

The counter-based generator behind them is `testbed.philox`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import DefinitionError
from testbed.fingerprint import fingerprint
from testbed.philox import (
    KEY_BITS,
    FloatName,
    checked_draw,
    checked_indices,
    key_words,
    uniform_numpy,
    uniform_plain,
    uniform_torch,
)

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Purpose = Literal["train", "eval", "split", "bootstrap", "run"]

__all__ = [
    "FloatName", "Purpose", "SampleKeys", "kept_globals", "normal", "permutation", "seed_globals", "seeded_globals",
    "stream_key", "uniform", "uniform_numpy", "uniform_torch",
]  # fmt: skip


def stream_key(seed: int, *, purpose: Purpose, dataset: str, stream: str) -> int:
    """The 64-bit key of a stream of random numbers.

    Noise level, severity and model are no part of it, so that one set of unit draws serves all of them in pairs.

    Args:
        seed: seed of the run.
        purpose: 'train', 'eval', 'split' or 'bootstrap': noise seen in training never returns in a test. 'run' is for
            what training and test are to share.
        dataset: name of the data set.
        stream: noise family, e.g. 'uniform-linf', and the array within it where there are several ('snow/field').
    Returns: an integer in [0, 2**64).
    Raises: DefinitionError: unknown purpose.
    """
    if purpose not in get_args(Purpose):
        raise DefinitionError(
            f"Random numbers have the purpose {purpose!r}. Use one of {', '.join(get_args(Purpose))}."
        )
    digest = fingerprint({"seed": int(seed), "purpose": purpose, "dataset": dataset, "stream": stream})
    return int(digest[: KEY_BITS // 4], 16)


def uniform(
    key: int,
    sample_indices: ArrayLike,
    *,
    draw: int,
    shape: tuple[int, ...],
    device: str | torch.device = "cpu",
    dtype: FloatName = "float32",
) -> Tensor:
    """Uniform random numbers in the open interval (0, 1), the same bits on every device.

    Args:
        key: of the stream, see `stream_key`.
        sample_indices: (n,) positions of the samples in their whole data set.
        draw: number of the draw, in [0, 2**32).
        shape: of the numbers of one sample; () for one number.
        device: where the tensor is to live.
        dtype: 'float32' has 23 random bits, 'float64' has 32.
    Returns: (n, *shape) of `dtype`; odd multiples of 2^-24 (float32) or 2^-33 (float64), symmetric about 1/2.
    Raises:
        ShapeError: sample indices are not one row of integers.
        DefinitionError: a negative sample index, or a draw or key out of range.
    Source: Philox 4x32-10, Salmon et al., SC 2011.
    """
    import torch

    if torch.device(device).type == "cpu":
        return torch.from_numpy(uniform_numpy(key, sample_indices, draw=draw, shape=shape, dtype=dtype))
    return uniform_torch(key, sample_indices, draw=draw, shape=shape, device=device, dtype=dtype)


def normal(
    key: int,
    sample_indices: ArrayLike,
    *,
    draw: int,
    shape: tuple[int, ...],
    device: str | torch.device = "cpu",
) -> Tensor:
    """Standard normal numbers (n, *shape) float32: the inverse distribution function, in float64, of `uniform`.

    Devices agree to rounding. No value lies beyond 6.4 standard deviations. Args and Raises as for `uniform`.
    """
    import torch

    if torch.device(device).type != "cpu":
        units = uniform_torch(key, sample_indices, draw=draw, shape=shape, device=device, dtype="float64")
        quantiles: Tensor = torch.special.ndtri(units)
        return quantiles.float()
    from scipy.special import ndtri

    cpu_units = uniform_numpy(key, sample_indices, draw=draw, shape=shape, dtype="float64")
    return torch.from_numpy(ndtri(cpu_units).astype(np.float32))


def permutation(key: int, n: int) -> NDArray[np.int64]:
    """A random order of 0..n-1, as (n,) int64: positions sorted by one keyed number each, equal numbers by position.

    A position keeps its number whatever n is, so the order of the first n positions is that of n + 1 without the last.
    """
    units = uniform_plain(key, np.arange(n), draw=0)
    return np.argsort(units, kind="stable").astype(np.int64, copy=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleKeys:
    """What a perturbation draws its noise from: the samples it is given, and all that their noise depends on.

    Args:
        seed: noise seed of the run.
        purpose: 'train', 'eval', 'split', 'bootstrap' or 'run', see `stream_key`.
        dataset: name of the data set.
        sample_indices: (n,) int64 positions of the samples in their whole data set, also in a subset of it.
        draw: number of the draw; in training, of the epoch.
    """

    seed: int
    purpose: Purpose
    dataset: str
    sample_indices: NDArray[np.int64]
    draw: int

    def __post_init__(self) -> None:
        checked_indices(self.sample_indices)
        checked_draw(self.draw)
        self._key("")

    def __len__(self) -> int:
        return len(self.sample_indices)

    def uniform(
        self,
        stream: str,
        shape: tuple[int, ...],
        device: str | torch.device = "cpu",
        *,
        dtype: FloatName = "float32",
    ) -> Tensor:
        """Uniform numbers in (0, 1), (n, *shape); another `stream` gives independent numbers."""
        key = self._key(stream)
        return uniform(key, self.sample_indices, draw=self.draw, shape=shape, device=device, dtype=dtype)

    def normal(self, stream: str, shape: tuple[int, ...], device: str | torch.device = "cpu") -> Tensor:
        """Standard normal numbers, (n, *shape) float32; another `stream` gives independent numbers."""
        return normal(self._key(stream), self.sample_indices, draw=self.draw, shape=shape, device=device)

    def take(self, start: int, stop: int) -> SampleKeys:
        """The keys of samples `start` to `stop` of these."""
        return replace(self, sample_indices=self.sample_indices[start:stop])

    def of_run(self) -> SampleKeys:
        """The keys of a single sample that stands for all: its numbers are the same in training and in evaluation."""
        return replace(self, purpose="run", sample_indices=np.zeros(1, dtype=np.int64))

    def _key(self, stream: str) -> int:
        return stream_key(self.seed, purpose=self.purpose, dataset=self.dataset, stream=stream)


@contextmanager
def seeded_globals(key: int) -> Iterator[None]:
    """Seeds the global generators of Python, numpy and torch from a 64-bit key; on leaving, all are as before.

    For users' functions that draw from them. Generators of CUDA devices are included once CUDA is in use. Torch's
    generator on the CPU takes 32 bits of any seed, here the low ones.
    """
    with kept_globals():
        seed_globals(key)
        yield


@contextmanager
def kept_globals() -> Iterator[None]:
    """Leaves the global generators as they were, whatever is seeded and drawn inside: see `seed_globals`."""
    import torch

    python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=_cuda_devices()):
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)  # noqa: NPY002


def seed_globals(key: int) -> None:
    """Seeds the global generators as `seeded_globals` does, and leaves them so: that takes an eighth of the time."""
    import torch

    low, high = key_words(key)
    random.seed(key)
    np.random.seed([low, high])  # noqa: NPY002
    torch.default_generator.manual_seed(key)
    if _cuda_devices():
        torch.cuda.manual_seed_all(key)


def _cuda_devices() -> list[int]:
    """Numbers of the CUDA devices, once CUDA is in use."""
    import torch

    in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return list(range(torch.cuda.device_count())) if in_use else []
