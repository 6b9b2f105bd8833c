"""CIFAR-10 and CIFAR-100 as they are published: files of pickled arrays, or of binary records.

A record is one byte per label (CIFAR-100: the coarse class, then the fine one) and 3 x 32 x 32 pixels, channel by
channel. A pickled file is a dictionary with `data` [n, 3072] in the same order, and the labels.

Source: A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from testbed.data.object_arrays import read_dictionary
from testbed.data.published_files import Arrays, read_bytes
from testbed.errors import DataError

_NUM_PIXELS = 3 * 32 * 32


def read_cifar(files: Sequence[Path], *, labels: str) -> Arrays:
    """The images [n, 32, 32, 3] of all files together, and their targets [n].

    Args:
        files: binary where they are named `.bin`, else pickled.
        labels: 'labels' for CIFAR-10, 'fine_labels' for CIFAR-100: what the targets are called.
    Raises: DataError: a file that is damaged, truncated, or of another format.
    """
    parts = [_binary(file, labels) if file.suffix == ".bin" else _pickled(file, labels) for file in files]
    return np.concatenate([images for images, _ in parts]), np.concatenate([targets for _, targets in parts])


def _binary(path: Path, labels: str) -> Arrays:
    num_labels = 2 if labels == "fine_labels" else 1
    content = np.frombuffer(read_bytes(path), dtype=np.uint8)
    if len(content) % (num_labels + _NUM_PIXELS):
        raise DataError(
            f"{path} has {len(content):,} bytes, not a multiple of {num_labels + _NUM_PIXELS:,} ({num_labels} for "
            f"labels, {_NUM_PIXELS:,} for pixels): it is truncated or of another format. Get the file again."
        )
    records = content.reshape(-1, num_labels + _NUM_PIXELS)
    return _channels_last(records[:, num_labels:]), records[:, num_labels - 1].astype(np.int64)


def _pickled(path: Path, labels: str) -> Arrays:
    batch = read_dictionary(path)
    data, targets = batch.get("data"), batch.get(labels)
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (_NUM_PIXELS,):
        raise DataError(f"{path} has no array `data` of uint8 [n, {_NUM_PIXELS}]. Get the file again.")
    if not isinstance(targets, list) or len(targets) != len(data) or any(type(target) is not int for target in targets):
        raise DataError(f"{path} has {len(data)} images, but not as many numbers in `{labels}`. Get the file again.")
    return _channels_last(data), np.array(targets, dtype=np.int64)


def _channels_last(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Pixels [n, 3072], channel by channel, as images [n, 32, 32, 3]."""
    return np.ascontiguousarray(np.moveaxis(pixels.reshape(-1, 3, 32, 32), 1, 3))
