"""The data sets `mnist` and `fashion-mnist`: 60,000 train and 10,000 test images, 28 x 28 grey.

Found in the published idx files, compressed or not, under the data root, or in torchvision's folders there;
Fashion-MNIST also where Debian's package dataset-fashion-mnist puts it. Else downloaded by torchvision.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from eval_settings.dataset_base import Dataset
from registry import registry
from testbed.data.class_order import LABEL_SPACES
from testbed.data.idx import read_images_and_labels
from testbed.data.published_files import Format, PublishedFiles, load_arrays

# name; what torchvision calls it; where else it may lie; class names; source; description
SETS = (
    ("mnist", "MNIST", (), tuple("0123456789"), "http://yann.lecun.com/exdb/mnist/", "handwritten digits"),
    ("fashion-mnist", "FashionMNIST", ("/usr/share/datasets/fashion-mnist",), LABEL_SPACES["fashion-mnist"],
     "https://github.com/zalandoresearch/fashion-mnist", "pictures of clothes in 10 classes"),
)  # fmt: skip
FILES = {"train": "train", "test": "t10k"}


def _download(folder: Path, split: str, *, class_name: str) -> None:
    from torchvision import datasets

    getattr(datasets, class_name)(folder, train=split == "train", download=True)


def _files(start: str, suffix: str) -> tuple[str, str]:
    return f"{start}-images-idx3-ubyte{suffix}", f"{start}-labels-idx1-ubyte{suffix}"


for name, class_name, other_places, class_names, source, what in SETS:
    formats = tuple(
        Format(
            folders=(name, f"{name}/{class_name}/raw", f"{class_name}/raw", *other_places),
            files={split: _files(start, suffix) for split, start in FILES.items()},
        )
        for suffix in ("", ".gz")
    )
    files = PublishedFiles(
        dataset=name, formats=formats, source=source, download=partial(_download, class_name=class_name)
    )
    registry.add_dataset(
        Dataset(
            name=name,
            loader=partial(load_arrays, files=files, read=read_images_and_labels, class_names=class_names),
            label_space=name,
            splits=("train", "test"),
            fit_split="train",
            color_mode="L",
            canonical_size=28,
            description=f"70,000 {what}, 28 x 28 grey; 60000 train, 10000 test",
        )
    )
