"""New test sets for CIFAR-10 models: `cifar10.1-v4`, `cifar10.1-v6` and `cifar10.2`, photos in the same ten classes.

They were collected as CIFAR-10 was, so that a drop in accuracy is not due to the photos having been seen before.
CIFAR-10.1 is a test set alone, 2,021 photos (v4) or 2,000 (v6, which its authors recommend: its classes are equally
frequent). CIFAR-10.2 has 10,000 photos for training as well.

Source: Recht et al., Do CIFAR-10 Classifiers Generalize to CIFAR-10?, 2018; Lu et al., Harder or Different? A Closer
Look at Distribution Shift in Dataset Reproduction, 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval_settings.dataset_base import Dataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed.data.array_files import mapped_array
from testbed.data.class_order import LABEL_SPACES
from testbed.data.object_arrays import read_dictionary
from testbed.data.published_files import Arrays, Format, PublishedFiles, load_arrays
from testbed.errors import DataError

CLASSES = LABEL_SPACES["cifar10"]
REPRODUCED = "https://github.com/modestyachts/CIFAR-10.1"
AGAIN = "https://github.com/modestyachts/cifar-10.2"
TINY = "for research; the photos are of 80 Million Tiny Images, which its authors have withdrawn"


def read_pair(files: Sequence[Path]) -> Arrays:
    """The images uint8 [n, 32, 32, 3] of one .npy file, and the labels [n] of another."""
    images, labels = (np.array(mapped_array(file)) for file in files)
    return _checked(images, labels, files[0])


def read_entries(files: Sequence[Path]) -> Arrays:
    """The images and the labels in one file with entries of these names."""
    entries = read_dictionary(files[0])
    if not {"images", "labels"} <= set(entries):
        raise DataError(f"{files[0]} has the entries {', '.join(entries)}, not images and labels. Get the file again.")
    return _checked(np.asarray(entries["images"]), np.asarray(entries["labels"]), files[0])


def _checked(images: NDArray[np.uint8], labels: NDArray[np.int64], file: Path) -> Arrays:
    is_image = images.dtype == np.uint8 and images.ndim == 4 and images.shape[1:] == (32, 32, 3)
    is_label = labels.shape == images.shape[:1] and labels.dtype.kind in "iu"
    if not is_image or not is_label or (labels.size and not 0 <= labels.min() <= labels.max() < len(CLASSES)):
        raise DataError(
            f"{file} has images of type {images.dtype} and shape {list(images.shape)} with labels of type "
            f"{labels.dtype} and shape {list(labels.shape)}. They should be uint8 [n, 32, 32, 3] and n classes from 0 "
            f"to {len(CLASSES) - 1}. Get the file again."
        )
    return images, labels.astype(np.int64)


def _register(
    name: str, source: DataSource, formats: Sequence[tuple[str, dict[str, tuple[str, ...]]]], description: str
) -> None:
    """Registers a data set that lies in files of any of these names."""
    files = PublishedFiles(
        dataset=name,
        formats=tuple(Format(folders=source.places, files=of_split) for _, of_split in formats),
        source=source.homepage,
    )
    splits = tuple(source.num_samples)
    read = read_pair if formats[0][0] == "pair" else read_entries
    registry.add_dataset(
        Dataset(
            name=name,
            loader=partial(load_arrays, files=files, read=read, class_names=CLASSES),
            label_space="cifar10",
            splits=splits,
            fit_split="train" if "train" in splits else None,
            canonical_size=32,
            source=source,
            description=description,
        )
    )


for version, count in (("v4", 2_021), ("v6", 2_000)):
    names = (f"cifar10.1_{version}_data.npy", f"cifar10.1_{version}_labels.npy")
    _register(
        f"cifar10.1-{version}",
        DataSource(
            title=f"CIFAR-10.1 ({version})",
            homepage=REPRODUCED,
            licence=f"MIT for the repository; {TINY}",
            get=f"Get {names[0]} and {names[1]} from its folder datasets.",
            places=("CIFAR-10.1", "cifar10.1", "cifar-10.1", "CIFAR-10.1/datasets"),
            layout=f"{names[0]} uint8 [{count}, 32, 32, 3], {names[1]} [{count}]",
            citation="Recht et al., Do CIFAR-10 Classifiers Generalize to CIFAR-10?, 2018",
            num_samples={"test": count},
        ),
        [("pair", {"test": names})],
        f"CIFAR-10.1 {version}: {count:,} new photos in the classes of CIFAR-10, 32 x 32 RGB",
    )
_register(
    "cifar10.2",
    DataSource(
        title="CIFAR-10.2",
        homepage=AGAIN,
        licence=TINY,
        get="Get cifar102_train and cifar102_test, as .npz or .npy.",
        places=("CIFAR-10.2", "cifar10.2", "cifar-10.2"),
        layout="cifar102_test.npz or .npy: a dictionary with images uint8 [n, 32, 32, 3] and labels [n]; also _train",
        citation="Lu et al., Harder or Different? A Closer Look at Distribution Shift in Dataset Reproduction, 2020",
        num_samples={"train": 10_000, "test": 2_000},
    ),
    [
        ("entries", {split: (f"cifar102_{split}{suffix}",) for split in ("train", "test")})
        for suffix in (".npz", ".npy")
    ],
    "CIFAR-10.2: 12,000 new photos in the classes of CIFAR-10, 32 x 32 RGB; 10000 train, 2000 test",
)
