"""The files of MNIST and its relatives: idx, plain or compressed by gzip.

A file starts with 0, 0, the type (8: unsigned bytes) and the number of dimensions; then come the sizes, as 32-bit
numbers with the highest byte first, and the values.

Source: Y. LeCun, C. Cortes and C. Burges, The MNIST database of handwritten digits.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from testbed.data.published_files import Arrays, read_bytes
from testbed.errors import DataError


def read_idx(path: Path, *, num_dimensions: int) -> NDArray[np.uint8]:
    """The array of unsigned bytes in a file, which is compressed if its name ends in `.gz`.

    Raises: DataError: a file that is damaged, truncated, of another type or number of dimensions.
    """
    content = read_bytes(path, gzip.open if path.suffix == ".gz" else open)
    magic = bytes((0, 0, 8, num_dimensions))
    if content[:4] != magic:
        raise DataError(
            f"{path} starts with {content[:4].hex() or 'nothing'}, not with {magic.hex()} as an idx file of bytes in "
            f"{num_dimensions} dimension(s) does. It is another file: get it again."
        )
    start = 4 + 4 * num_dimensions
    shape = [int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4)]
    if len(content) != start + math.prod(shape):
        raise DataError(
            f"{path} has {len(content):,} bytes, but its header tells of {start + math.prod(shape):,} "
            f"({' x '.join(map(str, shape))} values). It is truncated or damaged: get it again."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape).copy()


def read_images_and_labels(files: Sequence[Path]) -> Arrays:
    """Images [n, H, W] and targets [n], from a file of images and a file of labels.

    Raises: DataError: see `read_idx`; or as many labels as images are not there.
    """
    images, labels = (read_idx(file, num_dimensions=n) for file, n in zip(files, (3, 1), strict=True))
    if len(images) != len(labels):
        raise DataError(
            f"{files[0]} has {len(images)} images, but {files[1]} has {len(labels)} labels. They do not belong "
            "together: get both again."
        )
    return images, labels
