"""The data set `svhn`: 73,257 train and 26,032 test photos of house numbers, cropped to a digit, 32 x 32 RGB.

Found in the published `.mat` files under the data root; else downloaded by torchvision. The published label of the
digit 0 is 10; here it is 0.

Source: Netzer et al., Reading Digits in Natural Images with Unsupervised Feature Learning, 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from eval_settings.dataset_base import Dataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed.data.published_files import Arrays, Format, PublishedFiles, load_arrays
from testbed.errors import DataError, reading

SPLITS = ("train", "test")
FOLDERS = ("svhn", ".", "SVHN")


def read_cropped_digits(files: Sequence[Path]) -> Arrays:
    """Images [n, 32, 32, 3] and targets [n], of a file with `X` [32, 32, 3, n] and `y` [n, 1] from 1 to 10.

    Raises: DataError: a file that is damaged, truncated, or of another format.
    """
    from scipy.io import loadmat

    (path,) = files
    with reading(path, kind="a file of Matlab", remedy="Get the file again."):
        arrays = loadmat(path, variable_names=("X", "y"))
    images, labels = arrays.get("X"), arrays.get("y")
    if images is None or images.dtype != np.uint8 or images.ndim != 4 or images.shape[:3] != (32, 32, 3):
        raise DataError(f"{path} has no array X of uint8 [32, 32, 3, n]. Get train_32x32.mat and test_32x32.mat.")
    if labels is None or labels.size != images.shape[3] or not np.isin(labels, range(1, 11)).all():
        raise DataError(f"{path} has {images.shape[3]} images, but not as many labels from 1 to 10 in y. Get it again.")
    return np.ascontiguousarray(np.moveaxis(images, 3, 0)), labels.ravel().astype(np.int64) % 10


def _download(folder: Path, split: str) -> None:
    from torchvision.datasets import SVHN

    SVHN(folder, split=split, download=True)


files = PublishedFiles(
    dataset="svhn",
    formats=(Format(folders=FOLDERS, files={split: (f"{split}_32x32.mat",) for split in SPLITS}),),
    source="http://ufldl.stanford.edu/housenumbers/",
    download=_download,
)
registry.add_dataset(
    Dataset(
        name="svhn",
        loader=partial(load_arrays, files=files, read=read_cropped_digits, class_names=tuple("0123456789")),
        label_space="svhn",
        splits=SPLITS,
        fit_split="train",
        canonical_size=32,
        source=DataSource(
            title="Street View House Numbers, cropped digits",
            homepage=files.source,
            licence="for non-commercial use only",
            get="train_32x32.mat and test_32x32.mat (0.25 GB) are downloaded when they are asked for.",
            places=FOLDERS,
            layout="train_32x32.mat and test_32x32.mat",
            shown_by="test_32x32.mat",
            citation="Netzer et al., Reading Digits in Natural Images with Unsupervised Feature Learning, 2011",
            num_samples={"train": 73_257, "test": 26_032},
        ),
        description="99,289 photos of digits of house numbers, 32 x 32 RGB; 73257 train, 26032 test",
    )
)
