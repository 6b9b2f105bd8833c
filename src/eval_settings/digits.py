"""The data set `digits`: 1,797 real handwritten digits, 8 x 8 grey pixels, that come with scikit-learn.

Pixels: the 17 levels v = 0..16 become 8-bit as round(255 v / 16). The only tie, v = 8 (127.5), becomes 128.

Split: 1,000 train, 200 validation and 597 test images, disjoint, shuffled and stratified: every class has its
proportional share of each to within one image. It is drawn by a keyed permutation of our own, so it is the same under
every version of numpy and scikit-learn.

Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998 (the
test part); `sklearn.datasets.load_digits`.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval_settings.dataset_base import Dataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed.data.arrays import array_samples
from testbed.errors import DataError
from testbed.randomness import permutation, stream_key
from testbed.records import IntArray, Samples

SPLIT_SIZES = {"train": 1000, "validation": 200, "test": 597}


def load_digits_split(split: str) -> Samples:
    """One split of the digits: uint8 images [n, 8, 8] and their targets 0..9."""
    rows = _rows()
    images = np.rint(255 * rows[:, :-1].reshape(-1, 8, 8) / 16).astype(np.uint8)
    targets = rows[:, -1].astype(np.int32)
    chosen = split_indices(targets)[split]
    return array_samples(
        images[chosen], targets[chosen], dataset="digits", split=split, class_names=tuple("0123456789")
    )


def _rows() -> NDArray[np.float64]:
    """The table of `sklearn.datasets.load_digits`: 64 pixels and the target. Its import takes a second.

    Raises: DataError: scikit-learn is not installed.
    """
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise DataError("Data set 'digits' comes with scikit-learn, which is not installed: pip install scikit-learn.")
    return np.loadtxt(Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz", delimiter=",")


def split_indices(targets: IntArray) -> dict[str, NDArray[np.int64]]:
    """Positions in scikit-learn's order of the images of each split, shuffled."""
    order = _permutation("split", len(targets))
    by_class = order[np.argsort(targets[order], kind="stable")]
    is_test = _evenly_spaced(len(by_class), SPLIT_SIZES["test"])
    rest = by_class[~is_test]
    is_validation = _evenly_spaced(len(rest), SPLIT_SIZES["validation"])
    members = {"train": rest[~is_validation], "validation": rest[is_validation], "test": by_class[is_test]}
    return {split: indices[_permutation(f"order/{split}", len(indices))] for split, indices in members.items()}


def _permutation(stream: str, length: int) -> NDArray[np.int64]:
    return permutation(stream_key(0, purpose="split", dataset="digits", stream=stream), length)


def _evenly_spaced(length: int, count: int) -> NDArray[np.bool_]:
    """A mask with exactly `count` of `length` set, and in any run of m within one of m count / length."""
    steps = np.arange(length + 1) * count // length
    return np.diff(steps) > 0


registry.add_dataset(
    Dataset(
        name="digits",
        loader=load_digits_split,
        label_space="digits",
        splits=tuple(SPLIT_SIZES),
        eval_split="test",
        fit_split="train",
        separation_splits=None,
        color_mode="L",
        canonical_size=8,
        source=DataSource(
            title="Optical Recognition of Handwritten Digits",
            homepage="https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits",
            licence="CC BY 4.0",
            get="Nothing: it comes with scikit-learn.",
            places=(),
            layout="a table in the package scikit-learn",
            citation="Alpaydin and Kaynak, UCI Machine Learning Repository, 1998",
            num_samples=SPLIT_SIZES,
        ),
        description="1,797 handwritten digits of scikit-learn, 8 x 8 grey; 1000 train, 200 validation, 597 test",
    )
)
