"""The data set `tiny-imagenet`: 100,000 train and 10,000 val photos in 200 classes, 64 x 64 RGB.

The published test part has no labels, so `val` is evaluated. The classes are the wnids, sorted. Found in the published
folder `tiny-imagenet-200` under the data root; else downloaded.

A third part, `clean-of-c`, has the photos that Tiny-ImageNet-C was made of; its setting is `tiny-imagenet-c-clean`.

Source: Stanford CS231n, Tiny ImageNet visual recognition challenge, 2015.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from eval_settings._tiny_imagenet_c import CLEAN_SETTING, CLEAN_SPLIT, COPIES, load_clean
from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed.data.download import retrieve
from testbed.data.imagefolder import file_samples, image_files, visible_folders
from testbed.data.places import check_class_folders
from testbed.data.published_files import Format, PublishedFiles, read_bytes
from testbed.errors import DataError
from testbed.records import Samples

URL = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
SHA256 = "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821"
FOLDER = "tiny-imagenet-200"
WNIDS = "wnids.txt"
FOLDERS = (f"tiny-imagenet/{FOLDER}", FOLDER, "tiny-imagenet")


def load_split(split: str, data_root: Path) -> Samples:
    """One split, as files that are decoded later. Raises: DataError: not there, or not as published."""
    if split == CLEAN_SPLIT:
        names = next((data_root / folder / WNIDS for folder in FOLDERS if (data_root / folder / WNIDS).is_file()), None)
        return load_clean(data_root, None if names is None else _class_names(names))
    files = FILES.find(split, data_root)
    folder = files[0].parent
    class_names = _class_names(files[0])
    wnids = dict(_train_images(folder, class_names) if split == "train" else _val_images(files[1]))
    if unknown := sorted(set(wnids.values()) - set(class_names)):
        raise DataError(f"{files[1]} names {unknown[0]}, which is not in {files[0]}. Get both again.")
    targets = {sample_id: class_names.index(wnid) for sample_id, wnid in wnids.items()}
    return file_samples(
        folder, targets, dataset="tiny-imagenet", split=split, class_names=class_names, color_mode="RGB"
    )


def _class_names(wnids: Path) -> tuple[str, ...]:
    return tuple(sorted(read_bytes(wnids).decode(errors="replace").split()))


def _train_images(folder: Path, class_names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(relative path, wnid) of the images in `train/WNID/images`."""
    train = folder / "train"
    check_class_folders(train, [child.name for child in visible_folders(train)], class_names)
    for wnid in class_names:
        images = list(image_files(folder / "train" / wnid / "images"))
        if not images:
            raise DataError(f"{folder / 'train' / wnid / 'images'} has no images. Unpack {FOLDER}.zip again.")
        for image in images:
            yield image.relative_to(folder).as_posix(), wnid


def _val_images(annotations: Path) -> Iterator[tuple[str, str]]:
    """(relative path, wnid) of the images in `val/images`: the first two columns of the annotations."""
    for number, line in enumerate(read_bytes(annotations).decode(errors="replace").splitlines(), start=1):
        name, tab, rest = line.partition("\t")
        if not tab:
            raise DataError(f"{annotations}, line {number}: '{line[:80]}' is no file name, tab and wnid. Get it again.")
        yield f"val/images/{name}", rest.split("\t")[0]


def _download(folder: Path, split: str) -> None:
    archive = folder / f"{FOLDER}.zip"
    retrieve(URL, archive, sha256=SHA256)
    with TemporaryDirectory(dir=folder) as unpacked:
        with ZipFile(archive) as zipped:
            zipped.extractall(unpacked)
        (Path(unpacked) / FOLDER).replace(folder / FOLDER)


FILES = PublishedFiles(
    dataset="tiny-imagenet",
    formats=(
        Format(
            folders=FOLDERS,
            files={"train": (WNIDS,), "val": (WNIDS, "val/val_annotations.txt")},
        ),
    ),
    source=URL,
    download=_download,
)
registry.add_dataset(
    Dataset(
        name="tiny-imagenet",
        loader=load_split,
        label_space="tiny-imagenet",
        splits=("train", "val", CLEAN_SPLIT),
        eval_split="val",
        fit_split="train",
        separation_splits=("train", "val"),
        canonical_size=64,
        source=DataSource(
            title="Tiny ImageNet",
            homepage="http://cs231n.stanford.edu",
            licence="as ImageNet's: for non-commercial research and education",
            get=f"{FOLDER}.zip (0.24 GB) is downloaded when it is asked for, from {URL}.",
            places=FOLDERS,
            layout="wnids.txt, train/WNID/images/*.JPEG, val/images/*.JPEG and val/val_annotations.txt",
            citation="Stanford CS231n, Tiny ImageNet visual recognition challenge, 2015",
            num_samples={"train": 100_000, "val": 10_000, CLEAN_SPLIT: 10_000},
        ),
        corrupted=COPIES,
        description="110,000 photos in 200 classes, 64 x 64 RGB; 100000 train, 10000 val",
    )
)
registry.add_eval_setting(
    EvalSetting(
        name=CLEAN_SETTING,
        dataset=StandardDataset(name="tiny-imagenet", split=CLEAN_SPLIT),
        version="1",
        description="the 10,000 photos that Tiny-ImageNet-C was made of, which are not in Tiny ImageNet",
    )
)
