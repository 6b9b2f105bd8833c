"""Philox 4x32-10: uniform numbers from a counter, compiled for the CPU and in torch for every other device.

Word j of a key's stream for a sample is word j mod 4 of the block with counter (j div 4, sample index low, sample index
high, draw). Both forms take their rounds from one function and give the same bits.
Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import DefinitionError, ShapeError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

FloatName = Literal["float32", "float64"]

KEY_BITS = 64
_WORD = 0xFFFFFFFF


def _philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> tuple[Any, Any, Any, Any]:
    """Four 32-bit words for a counter and a key, each a 32-bit number held in a (signed) 64-bit one.

    The same lines run on Python integers, on int64 tensors and compiled. A product may exceed int64 and wrap; its 64
    bits, all that is used of it, are right either way.
    """
    for _ in range(10):
        p0 = 0xD2511F53 * c0
        p1 = 0xCD9E8D57 * c2
        c0, c1, c2, c3 = ((p1 >> 32) ^ c1 ^ k0) & _WORD, p1 & _WORD, ((p0 >> 32) ^ c3 ^ k1) & _WORD, p0 & _WORD
        k0 = (k0 + 0x9E3779B9) & _WORD
        k1 = (k1 + 0xBB67AE85) & _WORD
    return c0, c1, c2, c3


def _unit_float32(word: int) -> np.float32:
    """((word >> 9) + 1/2) 2^-23: an odd multiple of 2^-24, hence exact in 24 bits of mantissa and never 0 or 1."""
    return np.float32(np.int32(word >> 8 | 1)) * np.float32(2.0**-24)  # int32: AVX2 converts no other width


def _unit_float64(word: int) -> np.float64:
    """(word + 1/2) 2^-32: all 32 bits, exact, never 0 or 1."""
    return np.float64(2 * word | 1) * np.float64(2.0**-33)


def _filler(to_unit: Callable[[Any], Any]) -> Callable[..., None]:
    """The function that fills `out` with uniform numbers, one row per sample, for numba to compile."""

    def fill(out: Any, sample_indices: Any, draw: int, k0: int, k1: int) -> None:
        num_samples, size = out.shape
        whole = size // 4
        for i in range(num_samples):
            row, low, high = out[i], sample_indices[i] & _WORD, sample_indices[i] >> 32
            for block in range(whole):  # LLVM turns this loop into vector code; keep it free of branches
                w0, w1, w2, w3 = _philox(block, low, high, draw, k0, k1)
                row[4 * block] = to_unit(w0)
                row[4 * block + 1] = to_unit(w1)
                row[4 * block + 2] = to_unit(w2)
                row[4 * block + 3] = to_unit(w3)
            words = _philox(whole, low, high, draw, k0, k1)
            for j in range(size - 4 * whole):
                row[4 * whole + j] = to_unit(words[j])

    fill.__qualname__ = f"fill{to_unit.__name__}"  # names the cache file: two dtypes in one could be mixed up in a race
    return fill


@cache
def _numba() -> Any:
    """The numba module, told how to compile the functions that the fillers call."""
    import numba

    for function in (_philox, _unit_float32, _unit_float64):
        numba.extending.register_jitable(forceinline=True)(function)  # LLVM vectorises only what is inlined
    return numba


@cache
def _compiled_filler(dtype: FloatName) -> Callable[..., None]:
    """The filler of one dtype, compiled on its first call and kept on disk for later processes."""
    filler = _filler(_unit_float32 if dtype == "float32" else _unit_float64)
    try:
        compiled: Callable[..., None] = _numba().njit(cache=True, nogil=True)(filler)
    except RuntimeError:  # neither the source folder nor the user's cache folder can be written: compile every time
        compiled = _numba().njit(nogil=True)(filler)
    return compiled


def uniform_numpy(
    key: int, sample_indices: ArrayLike, *, draw: int, shape: tuple[int, ...], dtype: FloatName = "float32"
) -> NDArray[Any]:
    """`testbed.randomness.uniform` as a numpy array, by the compiled form; torch is not imported."""
    indices = checked_indices(sample_indices)
    out = np.empty((len(indices), int(np.prod(shape, dtype=np.int64))), dtype=dtype)
    _compiled_filler(dtype)(out, indices, checked_draw(draw), *key_words(key))
    return out.reshape(len(indices), *shape)


def uniform_plain(key: int, sample_indices: ArrayLike, *, draw: int) -> NDArray[np.float64]:
    """The first number of `uniform_numpy` for each sample, (n,) float64, the same bits in plain array operations.

    Loading the compiled form takes a third of a second, in which these make tens of millions of numbers.
    """
    indices = checked_indices(sample_indices)
    word = _philox(np.zeros_like(indices), indices & _WORD, indices >> 32, checked_draw(draw), *key_words(key))[0]
    return np.asarray(2 * word | 1, dtype=np.float64) * 2.0**-33


def uniform_torch(
    key: int,
    sample_indices: ArrayLike,
    *,
    draw: int,
    shape: tuple[int, ...],
    device: str | torch.device = "cpu",
    dtype: FloatName = "float32",
) -> Tensor:
    """`testbed.randomness.uniform` in plain torch operations on any device: the reference, and the form beyond CPUs."""
    import torch

    indices = torch.from_numpy(checked_indices(sample_indices)).to(device)[:, None]
    size = int(np.prod(shape, dtype=np.int64))
    blocks = torch.arange(-(-size // 4), device=device)
    counter = (blocks, indices & _WORD, indices >> 32, checked_draw(draw))
    words = torch.stack(_philox(*counter, *key_words(key)), dim=-1)
    return _unit_torch(words.flatten(1)[:, :size], dtype=dtype).reshape(len(indices), *shape)


def _unit_torch(words: Tensor, *, dtype: FloatName) -> Tensor:
    """`_unit_float32` or `_unit_float64` of int64 tensors."""
    if dtype == "float32":
        return (words >> 8 | 1).float() * 2.0**-24
    return (2 * words | 1).double() * 2.0**-33


def checked_indices(sample_indices: ArrayLike) -> NDArray[np.int64]:
    """`sample_indices` as (n,) int64; a ShapeError or DefinitionError where they are no positions in a data set."""
    indices = np.asarray(sample_indices)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ShapeError(
            f"Sample indices have shape {indices.shape} and type {indices.dtype}. Give one row of integers: the "
            "positions of the samples in their data set."
        )
    if len(indices) and indices.min() < 0:
        raise DefinitionError(f"A sample index is {indices.min()}. Positions in a data set count from 0.")
    return np.ascontiguousarray(indices, dtype=np.int64)


def checked_draw(draw: int) -> int:
    """`draw`; a DefinitionError where it does not fit the counter's 32 bits."""
    if not 0 <= draw <= _WORD:
        raise DefinitionError(f"The draw of random numbers is {draw}. It must be in [0, 2**32).")
    return int(draw)


def key_words(key: int) -> tuple[int, int]:
    """Low and high 32 bits of `key`; a DefinitionError where it does not fit 64 bits."""
    if not 0 <= key < 1 << KEY_BITS:
        raise DefinitionError(f"The key of random numbers is {key}. It must be in [0, 2**64); use `stream_key`.")
    return int(key) & _WORD, int(key) >> 32
