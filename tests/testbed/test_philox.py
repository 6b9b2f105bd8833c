"""The generator itself: published words, one set of bits from both forms, the map to the open unit interval."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from numba.core import caching

from testbed import philox
from testbed.errors import DefinitionError, ShapeError
from testbed.philox import uniform_numpy, uniform_plain, uniform_torch

ONES = 0xFFFFFFFF
KNOWN_ANSWERS = [  # counter, key, words: Random123, kat_vectors, philox4x32 10
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN_ANSWERS)
def test_words_are_the_published_ones(counter, key, words):
    """In exact integers, and in int64 tensors whose products wrap."""
    assert philox._philox(*counter, *key) == words
    tensors = [torch.tensor([number]) for number in (*counter, *key)]
    assert tuple(word.item() for word in philox._philox(*tensors)) == words


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN_ANSWERS)
def test_compiled_words_are_the_published_ones(counter, key, words):
    compiled = philox._numba().njit(philox._philox)
    assert compiled(*counter, *key) == words


def test_counter_is_block_then_sample_low_and_high_then_draw():
    """Read back from the numbers: float64 keeps all 32 bits of a word."""
    key = 0x299F31D0_A4093822
    units = uniform_numpy(key, [0x13198A2E_85A308D3], draw=0x03707344, shape=(9,), dtype="float64")[0]
    words = (units * 2.0**32 - 0.5).astype(np.int64).tolist()
    counters = [(block, 0x85A308D3, 0x13198A2E, 0x03707344) for block in range(3)]
    assert words == [w for c in counters for w in philox._philox(*c, 0xA4093822, 0x299F31D0)][:9]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (4,), (5,), (3, 5), (1, 8, 8), (3, 7, 11), (0,)])
def test_both_forms_give_the_same_bits(shape, dtype):
    indices = np.array([0, 7, 2**31, 2**32 - 1, 2**32, 2**40 + 3])
    for key in (0, 2**64 - 1, 0x0123456789ABCDEF):
        compiled = uniform_numpy(key, indices, draw=5, shape=shape, dtype=dtype)
        reference = uniform_torch(key, indices, draw=5, shape=shape, dtype=dtype)
        assert compiled.shape == (6, *shape)
        assert str(reference.dtype) == f"torch.{compiled.dtype}"
        assert reference.numpy().tobytes() == compiled.tobytes()


@pytest.mark.parametrize(("dtype", "step", "bits"), [("float32", 2.0**-23, 23), ("float64", 2.0**-32, 32)])
def test_map_is_exact_open_and_symmetric_for_extreme_words(dtype, step, bits):
    """u = (k + 1/2) step, with k the leading bits of the word, without rounding: never 0, 1/2 or 1."""
    words = [0, 1, 0x1FF, 0x200, 0x7FFFFFFF, 0x80000000, 0xFFFFFDFF, 0xFFFFFE00, 0xFFFFFFFE, ONES]
    exact = [((word >> (32 - bits)) + 0.5) * step for word in words]  # fits a float64
    to_unit = getattr(philox, f"_unit_{dtype}")
    assert [float(to_unit(word)) for word in words] == exact
    assert philox._unit_torch(torch.tensor(words), dtype=dtype).tolist() == exact
    assert exact[0] > 0
    assert exact[-1] < 1
    assert [1 - unit for unit in exact] == [((ONES - word >> (32 - bits)) + 0.5) * step for word in words]


@pytest.mark.parametrize("key", [0, 1, 2**64 - 1, 0x0123456789ABCDEF])
@pytest.mark.parametrize("draw", [0, 2**32 - 1])
def test_the_form_for_few_numbers_gives_the_same_bits(key, draw):
    indices = np.concatenate([np.arange(300), 2**40 + np.arange(300), [2**62, 2**33 + 7]])
    compiled = uniform_numpy(key, indices, draw=draw, shape=(), dtype="float64")
    assert np.array_equal(uniform_plain(key, indices, draw=draw), compiled)


def test_import_loads_neither_torch_nor_numba_and_numpy_draws_need_no_torch():
    script = (
        "import sys; import testbed.randomness as r; loaded = {'torch', 'numba', 'scipy'} & set(sys.modules); "
        "r.permutation(1, 5); r.uniform_numpy(1, [0], draw=0, shape=(3,)); print(loaded, 'torch' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["set()", "False"]


def test_draws_work_where_nothing_can_be_cached(monkeypatch):
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    expected = uniform_numpy(1, [2], draw=3, shape=(6,))
    philox._compiled_filler.cache_clear()
    uncached = uniform_numpy(1, [2], draw=3, shape=(6,))
    philox._compiled_filler.cache_clear()
    assert uncached.tobytes() == expected.tobytes()


def test_refuses_what_is_no_position_draw_or_key():
    with pytest.raises(ShapeError, match=r"shape \(1, 2\) and type int64"):
        uniform_numpy(0, [[1, 2]], draw=0, shape=())
    with pytest.raises(ShapeError, match="type float64"):
        uniform_numpy(0, [1.0], draw=0, shape=())
    with pytest.raises(DefinitionError, match="sample index is -1"):
        uniform_numpy(0, [3, -1], draw=0, shape=())
    for draw in (-1, 2**32):
        with pytest.raises(DefinitionError, match=f"draw of random numbers is {draw}"):
            uniform_numpy(0, [0], draw=draw, shape=())
    for key in (-1, 2**64):
        with pytest.raises(DefinitionError, match=f"key of random numbers is {key}"):
            uniform_torch(key, [0], draw=0, shape=())
