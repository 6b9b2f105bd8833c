"""The largest logits of each sample: what stays of them where storing all would take too much space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed.codec import fits_half
from testbed.records import FloatArray, IntArray

NARROW_CLASSES = 1 << 16  # the indices of so many classes take two bytes


@dataclass(frozen=True, kw_only=True, eq=False)
class TopLogits:
    """The k largest logits of each sample, its target's logit, and what normalizes them.

    Args:
        values: [n, k] float32, largest first; equal ones by class. A NaN is ordered last.
        classes: [n, k] int32, of the values, counted over the setting's classes as predictions are.
        target_logits: [n] float32; NaN where the target is not among the setting's classes.
        log_normalizers: [n] float32, logarithm of the sum of the exponentials of the whole row.
    """

    values: NDArray[np.float32]
    classes: NDArray[np.int32]
    target_logits: NDArray[np.float32]
    log_normalizers: NDArray[np.float32]

    @property
    def target_probabilities(self) -> NDArray[np.float32]:
        """Softmax probability of each sample's target, [n] in [0, 1]; NaN where it has none."""
        with np.errstate(invalid="ignore"):
            found: NDArray[np.float32] = np.exp(self.target_logits - self.log_normalizers)
        return found

    def first(self, k: int) -> TopLogits:
        """The same with the k largest only."""
        return TopLogits(
            values=self.values[:, :k],
            classes=self.classes[:, :k],
            target_logits=self.target_logits,
            log_normalizers=self.log_normalizers,
        )


def top_logits(logits: FloatArray, targets: IntArray, *, k: int) -> TopLogits:
    """The k largest of each row of `logits` ([n, classes] float32), all where there are fewer classes.

    Args:
        targets: [n] class indices; -1 for a class that has no column.
    """
    order = np.where(np.isnan(logits), -np.inf, logits)
    classes = _largest(order, min(k, logits.shape[1]))
    has_target = targets >= 0
    target_logits = logits[np.arange(len(logits)), np.where(has_target, targets, 0)]
    return TopLogits(
        values=np.take_along_axis(logits, classes, 1),
        classes=classes.astype(np.int32),
        target_logits=np.where(has_target, target_logits, np.float32(np.nan)),
        log_normalizers=_logsumexp(logits),
    )


def encode_top(top: TopLogits, *, num_classes: int) -> tuple[bytes, bool]:
    """Bytes, one array after the other, and whether the values are in half precision, which large ones are not.

    Target logits and normalizers are float32; classes take two bytes, or four where there are more than 65,536.
    """
    is_half = fits_half(top.values)
    arrays = (
        top.values.astype("<f2" if is_half else "<f4"),
        top.classes.astype(_class_type(num_classes)),
        top.target_logits.astype("<f4"),
        top.log_normalizers.astype("<f4"),
    )
    return b"".join(array.tobytes() for array in arrays), is_half


def decode_top(payload: bytes, *, k: int, is_half: bool, num_classes: int) -> TopLogits:
    """The logits behind `encode_top`'s bytes.

    Args:
        k: how many were kept of each sample, or more than there are classes.
        is_half, num_classes: as in `encode_top`.
    """
    k = min(k, num_classes)
    value, index = np.dtype("<f2" if is_half else "<f4"), _class_type(num_classes)
    row = np.dtype([("values", value, (k,)), ("classes", index, (k,)), ("target", "<f4"), ("normalizer", "<f4")])
    n = len(payload) // row.itemsize
    ends = np.cumsum([n * k * value.itemsize, n * k * index.itemsize, n * 4])
    parts = [payload[start:stop] for start, stop in zip((0, *ends), (*ends, len(payload)), strict=True)]
    return TopLogits(
        values=np.frombuffer(parts[0], value).astype(np.float32).reshape(n, k),
        classes=np.frombuffer(parts[1], index).astype(np.int32).reshape(n, k),
        target_logits=np.frombuffer(parts[2], "<f4"),
        log_normalizers=np.frombuffer(parts[3], "<f4"),
    )


def bytes_per_sample(k: int, num_classes: int) -> int:
    """Size of one sample's part of `encode_top`, where its values are in half precision."""
    return min(k, num_classes) * (2 + _class_type(num_classes).itemsize) + 8


def _class_type(num_classes: int) -> np.dtype[np.unsignedinteger]:
    return np.dtype("<u2" if num_classes <= NARROW_CLASSES else "<u4")


def _largest(logits: FloatArray, k: int) -> IntArray:
    """Columns of the k largest of each row, largest first, equal ones by column; no row is sorted as a whole."""
    smallest = np.partition(logits, -k, axis=1)[:, -k, None]
    is_above, is_equal = logits > smallest, logits == smallest
    num_equal = k - np.count_nonzero(is_above, axis=1)
    is_above |= is_equal & (np.cumsum(is_equal, axis=1) <= num_equal[:, None])
    columns = np.nonzero(is_above)[1].reshape(len(logits), k)
    order = np.argsort(-np.take_along_axis(logits, columns, 1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, 1)


def _logsumexp(logits: FloatArray) -> NDArray[np.float32]:
    with np.errstate(invalid="ignore"):
        largest = logits.max(axis=1, keepdims=True).astype(np.float64)
        total = np.exp(logits - largest).sum(axis=1)
        found: NDArray[np.float32] = (np.log(total) + largest[:, 0]).astype(np.float32)
    return found
