"""The data sets `mnist` and `fashion-mnist`: 60,000 train and 10,000 test images, 28 x 28 grey.

Found in the published idx files, compressed or not, under the data root, or in torchvision's folders there;
Fashion-MNIST also where Debian's package dataset-fashion-mnist puts it. Else downloaded by torchvision. The corrupted
copies of MNIST, MNIST-C, likewise. They were made with the parameters of ImageNet at 224 px, and 8 of the 15 kinds have
no simulator here.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from eval_settings.dataset_base import CorruptedCopies, Dataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed.data.class_order import LABEL_SPACES
from testbed.data.corrupted_arrays import load_pair
from testbed.data.idx import read_images_and_labels
from testbed.data.published_files import Format, PublishedFiles, load_arrays

# name; what torchvision calls it; where else it may lie; class names; source; description; licence; paper
SETS = (
    ("mnist", "MNIST", (), tuple("0123456789"), "http://yann.lecun.com/exdb/mnist/", "handwritten digits",
     "CC BY-SA 3.0", "LeCun et al., Gradient-based learning applied to document recognition, 1998"),
    ("fashion-mnist", "FashionMNIST", ("/usr/share/datasets/fashion-mnist",), LABEL_SPACES["fashion-mnist"],
     "https://github.com/zalandoresearch/fashion-mnist", "pictures of clothes in 10 classes",
     "MIT", "Xiao et al., Fashion-MNIST, 2017"),
)  # fmt: skip
FILES = {"train": "train", "test": "t10k"}
# what MNIST-C has, each at one severity, or without any
MNIST_C: dict[str, tuple[int, ...]] = {
    "shot_noise": (5,), "impulse_noise": (4,), "glass_blur": (1,), "motion_blur": (1,), "shear": (2,), "scale": (3,),
    "rotate": (2,), "brightness": (5,), "translate": (3,), "stripe": (), "fog": (5,), "spatter": (4,),
    "dotted_line": (), "zigzag": (), "canny_edges": (),
}  # fmt: skip
MNIST_C_SOURCE, MNIST_C_MD5 = "https://zenodo.org/records/3239543", "4b34b33045869ee6d424616cd3a65da3"


def _download(folder: Path, split: str, *, class_name: str) -> None:
    from torchvision import datasets

    getattr(datasets, class_name)(folder, train=split == "train", download=True)


def mnist_c() -> CorruptedCopies:
    """MNIST-C: a folder per corruption with `test_images.npy` [10000, 28, 28, 1] and `test_labels.npy`."""
    form = Format(
        folders=("mnist_c", "mnist/mnist_c", "mnist-c/mnist_c", "MNIST-C/mnist_c", "mnist-c"),
        files={name: (f"{name}/test_images.npy", f"{name}/test_labels.npy") for name in MNIST_C},
    )
    files = PublishedFiles(dataset="mnist-c", formats=(form,), source=MNIST_C_SOURCE, download=_download_mnist_c)
    origin = DataSource(
        title="MNIST-C",
        homepage="https://github.com/google-research/mnist-c",
        licence="CC BY 4.0",
        get=f"mnist_c.zip (0.24 GB) is downloaded when it is asked for, from {MNIST_C_SOURCE}.",
        places=form.folders,
        layout="CORRUPTION/test_images.npy and CORRUPTION/test_labels.npy",
        citation="Mu and Gilmer, MNIST-C: A Robustness Benchmark for Computer Vision, 2019",
    )
    return CorruptedCopies(title="MNIST-C", severities=MNIST_C, load=partial(load_pair, files=files), origin=origin)


def _download_mnist_c(folder: Path, corruption: str) -> None:
    """Fetches and unpacks the archive, of all corruptions."""
    from torchvision.datasets.utils import download_and_extract_archive

    archive = "mnist_c.zip"
    url = f"{MNIST_C_SOURCE}/files/{archive}"
    download_and_extract_archive(url, folder, filename=archive, md5=MNIST_C_MD5, remove_finished=True)


def _files(start: str, suffix: str) -> tuple[str, str]:
    return f"{start}-images-idx3-ubyte{suffix}", f"{start}-labels-idx1-ubyte{suffix}"


for name, class_name, other_places, class_names, source, what, licence, paper in SETS:
    folders = (name, f"{name}/{class_name}/raw", f"{class_name}/raw", *other_places)
    formats = tuple(
        Format(
            folders=folders,
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
            corrupted=mnist_c() if name == "mnist" else None,
            source=DataSource(
                title=class_name,
                homepage=source,
                licence=licence,
                get="Its four files (12 to 31 MB) are downloaded when they are asked for.",
                places=folders,
                layout="train- and t10k- images-idx3-ubyte and labels-idx1-ubyte, compressed (.gz) or not",
                citation=paper,
                num_samples={"train": 60_000, "test": 10_000},
            ),
            description=f"70,000 {what}, 28 x 28 grey; 60000 train, 10000 test",
        )
    )
