"""Logits to bytes and back: exact where it is promised, rounded by a known amount elsewhere, named by what it is."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np
import pytest

from testbed.codec import CODECS, decode, encode, fits_half, lossless_codec
from testbed.errors import StoreError

needs_zstandard = pytest.mark.skipif(find_spec("zstandard") is None, reason="the package zstandard is not installed")
EXACT = ("f32", "f32+shuffle+zlib", pytest.param("f32+shuffle+zstd", marks=needs_zstandard))


@pytest.mark.parametrize("codec", EXACT)
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 7), (128, 10)])
def test_exact_codecs_give_back_every_bit(codec: str, shape: tuple[int, int]) -> None:
    for seed in range(20):
        bits = np.random.default_rng(seed).integers(0, 1 << 32, shape, np.uint32)  # NaN with payloads, subnormals, all
        logits = bits.view(np.float32)
        found = decode(encode(logits, codec=codec), codec=codec, num_outputs=shape[1])
        assert found.dtype == np.float32
        assert found.shape == shape
        assert found.tobytes() == logits.tobytes()


@pytest.mark.parametrize("codec", EXACT)
def test_logits_that_do_not_lie_in_order_are_encoded_in_order(codec: str) -> None:
    logits = np.arange(12, dtype=np.float32).reshape(3, 4).T[::-1]
    assert np.array_equal(decode(encode(logits, codec=codec), codec=codec, num_outputs=3), logits)


@pytest.mark.parametrize("exponent", [-26, -24, -14, -3, 0, 4, 15])
def test_half_precision_is_off_by_half_a_unit_in_the_last_place_at_most(exponent: int) -> None:
    logits = (np.random.default_rng(0).uniform(-1.99, 1.99, (100, 4)) * 2.0**exponent).astype(np.float32)
    found = decode(encode(logits, codec="f16"), codec="f16", num_outputs=4)
    assert found.dtype == np.float32
    assert np.all(np.abs(found - logits) <= np.maximum(np.abs(logits) * 2.0**-11, 2.0**-25))


def test_shuffled_bytes_stand_place_by_place() -> None:
    import zlib

    logits = np.array([[1.0, -2.0], [0.5, 3.0]], "<f4")  # 3f800000, c0000000, 3f000000, 40400000
    assert zlib.decompress(encode(logits, codec="f32+shuffle+zlib")).hex() == "0000000000000000800000403fc03f40"


def test_shuffling_pays_for_logits() -> None:
    logits = np.random.default_rng(0).normal(size=(100, 1000)).astype(np.float32)
    size = {codec: len(encode(logits, codec=codec)) for codec in ("f32", "f32+shuffle+zlib", "f16")}
    assert (size["f32"], size["f16"]) == (400_000, 200_000)
    assert size["f32+shuffle+zlib"] < 0.9 * size["f32"], "the exponents of such numbers take under two bits"


@pytest.mark.parametrize("value", [65505, -70000, np.inf, -np.inf, np.nan])
def test_half_precision_does_not_take_what_it_cannot_hold(value: float) -> None:
    logits = np.array([[0, value]], np.float32)
    assert not fits_half(logits)
    with pytest.raises(StoreError, match="holds finite numbers up to 65504 only"):
        encode(logits, codec="f16")


def test_the_largest_half_precision_number_fits() -> None:
    assert fits_half(np.array([[65504.0, -65504.0]], np.float32))


def test_a_codec_of_another_version_is_named() -> None:
    with pytest.raises(StoreError, match=r"Unknown logit codec 'f8'.*f32, f32\+shuffle\+zlib"):
        encode(np.zeros((1, 1), np.float32), codec="f8")
    with pytest.raises(StoreError, match="codec 'f8', which this version cannot read"):
        decode(b"", codec="f8", num_outputs=1)


def test_without_zstandard_lossless_is_zlib_and_reading_tells_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert lossless_codec() == "f32+shuffle+zlib"
    with pytest.raises(StoreError, match="pip install zstandard") as error:
        decode(b"any", codec="f32+shuffle+zstd", num_outputs=1)
    assert "\n" not in str(error.value)


@needs_zstandard
def test_with_zstandard_lossless_uses_it() -> None:
    assert lossless_codec() == "f32+shuffle+zstd"
    assert lossless_codec() in CODECS
