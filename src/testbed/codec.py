"""Logits to bytes and back: the final encoding that a worker makes and the store keeps, named by what it is."""

from __future__ import annotations

import hashlib
import importlib
import zlib
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from testbed.errors import StoreError

LARGEST_HALF = 65504.0  # of IEEE 754 binary16
FAST = 1  # of zlib, and of Zstandard: more effort makes mantissas no smaller
CODECS = ("f32", "f32+shuffle+zlib", "f32+shuffle+zstd", "f16")


def encode(logits: NDArray[np.float32], *, codec: str = "f32") -> bytes:
    """Bytes of `logits` ([count, num_outputs] float32) in the named codec.

    Args:
        codec: 'f32' is little-endian and exact. 'f32+shuffle+zlib' and 'f32+shuffle+zstd' are exact as well: the first
            bytes of all numbers, then all second bytes and so on, compressed. 'f16' is rounded to IEEE 754 binary16.
    Raises: StoreError: no such codec, its package is not installed, or values that 'f16' cannot hold.
    """
    if codec == "f32":
        return np.ascontiguousarray(logits, "<f4").tobytes()
    if codec == "f16":
        if not fits_half(logits):
            raise StoreError(f"The codec f16 holds finite numbers up to {LARGEST_HALF:.0f} only. Encode these as f32.")
        return logits.astype("<f2").tobytes()
    if codec == "f32+shuffle+zlib":
        return zlib.compress(_shuffled(logits), FAST)
    if codec == "f32+shuffle+zstd":
        compressed: bytes = _zstandard().ZstdCompressor(level=FAST).compress(_shuffled(logits))
        return compressed
    raise StoreError(f"Unknown logit codec '{codec}'. This version writes {', '.join(CODECS)}.")


def decode(payload: bytes, *, codec: str, num_outputs: int) -> NDArray[np.float32]:
    """Logits [count, num_outputs] float32 from `encode`'s bytes.

    Raises: StoreError: a codec of a later version, or its package is not installed.
    """
    if codec == "f32":
        return np.frombuffer(payload, "<f4").reshape(-1, num_outputs)
    if codec == "f16":
        return np.frombuffer(payload, "<f2").astype(np.float32).reshape(-1, num_outputs)
    if codec == "f32+shuffle+zlib":
        return _unshuffled(zlib.decompress(payload), num_outputs)
    if codec == "f32+shuffle+zstd":
        return _unshuffled(_zstandard().ZstdDecompressor().decompress(payload), num_outputs)
    raise StoreError(f"Stored logits use the codec '{codec}', which this version cannot read. Update the testbed.")


def checksum(payload: bytes) -> str:
    """SHA-256 (hex) of an encoded payload."""
    return hashlib.sha256(payload).hexdigest()


def fits_half(values: NDArray[np.float32]) -> bool:
    """Whether all numbers are finite and none is beyond the range of IEEE 754 binary16 (an infinity is)."""
    return bool(np.all(np.abs(values) <= LARGEST_HALF))  # NaN compares as false


def lossless_codec() -> str:
    """The best exact codec that can be written here: Zstandard where it is installed, else the standard library."""
    try:
        _zstandard()
    except StoreError:
        return "f32+shuffle+zlib"
    return "f32+shuffle+zstd"


def _shuffled(logits: NDArray[np.float32]) -> bytes:
    """The numbers byte by byte: signs and exponents repeat, so they are compressed best beside each other."""
    by_number = np.ascontiguousarray(logits, "<f4").reshape(-1, 1).view(np.uint8)
    return by_number.T.tobytes()


def _unshuffled(shuffled: bytes, num_outputs: int) -> NDArray[np.float32]:
    by_place = np.frombuffer(shuffled, np.uint8).reshape(4, -1)
    return np.ascontiguousarray(by_place.T).view("<f4").reshape(-1, num_outputs)


def _zstandard() -> ModuleType:
    try:
        return importlib.import_module("zstandard")
    except ImportError as error:
        raise StoreError(
            "Logits with the codec f32+shuffle+zstd need the package zstandard. Install it: pip install zstandard"
        ) from error
