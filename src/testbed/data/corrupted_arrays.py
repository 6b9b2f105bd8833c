"""Corrupted copies in .npy files: CIFAR-10-C and CIFAR-100-C, in blocks of severity, and MNIST-C, of one severity each.

Source: Hendrycks & Dietterich, ICLR 2019 (CIFAR-C); Mu & Gilmer, MNIST-C: A Robustness Benchmark for Computer Vision,
ICML workshop 2019.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.data.array_files import mapped_array
from testbed.data.arrays import array_samples
from testbed.data.published_files import PublishedFiles
from testbed.errors import DataError
from testbed.records import Samples

NUM_BLOCKS = 5  # severities, one after the other


def load_severity_block(
    clean: Samples, corruption: str, severity: int, data_root: Path, *, files: PublishedFiles
) -> Samples:
    """One severity of a file of all five: block s is the test set in its order, at severity s.

    Args:
        clean, corruption, severity, data_root: see `CorruptedCopies.load`.
        files: the images uint8 [5 n, 32, 32, 3] and the labels [5 n] of each corruption.
    Raises: DataError: not there, damaged, of another shape, or with labels that are not those of the test set.
    """
    images_file, labels_file = files.find(corruption, data_root)
    images, labels = mapped_array(images_file), mapped_array(labels_file)
    n = len(clean)
    for path, array in ((images_file, images), (labels_file, labels)):
        if len(array) != NUM_BLOCKS * n:
            raise DataError(
                f"{path} has {len(array):,} rows, but five severities of the {n:,} images of '{clean.dataset}' "
                f"({clean.split}) are {NUM_BLOCKS * n:,}. It is another file: get it again."
            )
    block = slice((severity - 1) * n, severity * n)
    return _samples(images[block], labels[block], clean, images_file, labels_file)


def load_pair(
    clean: Samples, corruption: str, severity: int | None, data_root: Path, *, files: PublishedFiles
) -> Samples:
    """The images uint8 [n, H, W, 1] and the labels [n] of a corruption that comes at one severity.

    Arguments and errors as for `load_severity_block`; what is in the files does not depend on `severity`.
    """
    images_file, labels_file = files.find(corruption, data_root)
    return _samples(mapped_array(images_file), mapped_array(labels_file), clean, images_file, labels_file)


def _samples(
    images: NDArray[Any], labels: NDArray[Any], clean: Samples, images_file: Path, labels_file: Path
) -> Samples:
    """The images as samples under the clean ids, once they are of the clean ones' shape and labels."""
    clean_shape = np.asarray(clean.items).shape
    if images.dtype != np.uint8 or images.shape not in (clean_shape, (*clean_shape, 1)):
        raise DataError(
            f"{images_file} has images of type {images.dtype} and shape {list(images.shape)}, but those of "
            f"'{clean.dataset}' ({clean.split}) are uint8 {list(clean_shape)}. It is another file: get it again."
        )
    wrong = np.flatnonzero(labels.ravel() != clean.targets) if labels.size == len(clean) else np.arange(len(clean))
    if len(wrong):
        raise DataError(
            f"The labels in {labels_file} differ from those of '{clean.dataset}' ({clean.split}) for {len(wrong):,} of "
            f"{len(clean):,} images, the first at {wrong[0]}: these are not copies of that split in its order. Get "
            "both again."
        )
    return array_samples(images, clean.targets, dataset=clean.dataset, split=clean.split, class_names=clean.class_names)
