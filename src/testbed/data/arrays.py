"""Arrays in memory as samples of a data set: layout, range and identity, checked once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from testbed.errors import DataError
from testbed.records import IntArray, Samples

_CHANNELS: dict[int, Literal["L", "RGB"]] = {1: "L", 3: "RGB"}


def array_samples(
    x: NDArray[Any], targets: IntArray, *, dataset: str, split: str, class_names: Sequence[str]
) -> Samples:
    """Samples from an array, with the ids `SPLIT/0`, `SPLIT/1`, ...

    Args:
        x: images [n, H, W], [n, H, W, C] or [n, C, H, W] with C = 1 or 3, uint8 or float in [0, 1]; or rows of numbers
            [n, D], float of any range.
        targets: [n] class indices.
        dataset, split: names.
        class_names: in the order of the model's outputs.
    Raises: DataError: another layout, type or range; the message says what is accepted.
    """
    where = f"Data set '{dataset}' ({split})"
    items, color_mode = _images(x, where) if x.ndim in (3, 4) else (_rows(x, where), None)
    sample_ids = tuple(f"{split}/{index}" for index in range(len(items)))
    targets = np.asarray(targets).astype(np.int32)
    return Samples(
        dataset=dataset,
        split=split,
        items=items,
        targets=targets,
        sample_ids=sample_ids,
        class_names=tuple(class_names),
        fingerprint=arrays_fingerprint(items, targets, sample_ids=sample_ids, class_names=class_names),
        color_mode=color_mode,
    )


def arrays_fingerprint(
    items: NDArray[Any], targets: IntArray, *, sample_ids: Sequence[str], class_names: Sequence[str]
) -> str:
    """SHA-256 (hex) over type, shape and bytes of the samples, their targets and ids, and the class names."""
    digest = hashlib.sha256(json.dumps([list(sample_ids), list(class_names)]).encode())
    for array in (items, np.asarray(targets, dtype=np.int32)):
        little_endian = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{little_endian.dtype.str}{little_endian.shape}".encode())
        digest.update(little_endian.data)
    return digest.hexdigest()


def _images(x: NDArray[Any], where: str) -> tuple[NDArray[Any], Literal["L", "RGB"]]:
    """The images as [n, H, W] or [n, H, W, 3], and their colour mode."""
    if x.dtype != np.uint8:
        _check_float(x, where, remedy="Give uint8 images, or float images in [0, 1].")
        if x.size and not 0 <= x.min() <= x.max() <= 1:
            raise DataError(
                f"{where} has float images from {x.min():g} to {x.max():g}. Give them in [0, 1], or as uint8; "
                "normalization belongs in the model."
            )
    if x.ndim == 3:
        return x, "L"
    channels_first, channels_last = x.shape[1] in _CHANNELS, x.shape[3] in _CHANNELS
    if channels_first == channels_last:
        fault = "has two readings" if channels_first else "has neither 1 nor 3 channels"
        raise DataError(
            f"{where} has images of shape {x.shape}, which {fault}. Give [n, H, W], or [n, H, W, C] or [n, C, H, W] "
            "with C = 1 or 3 and no other side of that length; flat samples as rows [n, D] of floats."
        )
    last = np.moveaxis(x, 1, 3) if channels_first else x
    return (last[..., 0], "L") if last.shape[3] == 1 else (last, "RGB")


def _rows(x: NDArray[Any], where: str) -> NDArray[Any]:
    if x.ndim != 2:
        raise DataError(f"{where} has samples of shape {x.shape}. Give images [n, H, W(, C)] or rows [n, D].")
    _check_float(x, where, remedy="Give rows of floats, or reshape images to [n, H, W].")
    return x


def _check_float(x: NDArray[Any], where: str, *, remedy: str) -> None:
    if not np.issubdtype(x.dtype, np.floating):
        raise DataError(f"{where} has samples of type {x.dtype} and shape {x.shape}. {remedy}")
    bad = np.flatnonzero(~np.isfinite(x.reshape(len(x), -1)).all(axis=1))
    if len(bad):
        raise DataError(
            f"{where} has {len(bad)} samples with NaN or infinite values, the first at index {bad[0]}. Remove them, or "
            "fill in the missing values before saving."
        )
