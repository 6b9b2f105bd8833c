"""Logits to bytes and back: the final encoding a worker makes and the store keeps."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from testbed.errors import StoreError


def encode(logits: NDArray[np.float32], *, codec: str = "f32") -> bytes:
    """Bytes of `logits` ([count, num_outputs] float32) in the named codec; 'f32' is little-endian and exact."""
    if codec != "f32":
        raise StoreError(f"Unknown logit codec '{codec}'. This version writes f32.")
    return np.ascontiguousarray(logits, dtype="<f4").tobytes()


def decode(payload: bytes, *, codec: str, num_outputs: int) -> NDArray[np.float32]:
    """Logits [count, num_outputs] float32 from `encode`'s bytes."""
    if codec != "f32":
        raise StoreError(f"Stored logits use the codec '{codec}', which this version cannot read. Update the testbed.")
    return np.frombuffer(payload, dtype="<f4").reshape(-1, num_outputs)


def checksum(payload: bytes) -> str:
    """SHA-256 (hex) of an encoded payload."""
    return hashlib.sha256(payload).hexdigest()
