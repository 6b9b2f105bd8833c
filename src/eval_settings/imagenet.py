"""The data set `imagenet` (ILSVRC 2012), and its setting `val`, so named by the ImageNet Testbed.

Folders `val` and, where models are fitted, `train`, each with a folder of images per wnid. It is evaluated on val. Its
canonical space is 224 px after the standard resize and crop; its separation is that of val alone, since train is too
large to search. It cannot be downloaded without an account.

Its corruptions follow the ImageNet Testbed: simulated at the size that a model takes, and compared with `val`. Those of
ImageNet-C, on disk, were resized to 256 px and cropped to 224 px before they were made, and a model that crops 224 px
takes them as they are, as published; `..._on-disk-resized` resizes them again, as the ImageNet Testbed does.

Source: Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, 2015.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from eval_settings._imagenet_copies import MORE_COPIES, NEEDS_VAL
from eval_settings.dataset_base import CorruptedCopies, Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed.data.corrupted import COMMON_CORRUPTIONS
from testbed.data.corrupted_folders import CorruptedFolders, load_folder
from testbed.data.imagefolder import FolderLayout, folder_samples, visible_folders
from testbed.data.places import check_wnids
from testbed.errors import DataError
from testbed.records import Samples

PLACES = ("imagenet", "ILSVRC2012", ".")  # relative to the data root
SOURCE = DataSource(
    title="ImageNet (ILSVRC 2012)",
    homepage="https://image-net.org",
    licence="for non-commercial research and education; it asks for an account",
    get="Download ILSVRC2012_img_val.tar (6.7 GB; and ILSVRC2012_img_train.tar, 148 GB, where models are fitted), and "
    "unpack. The archive of val is flat: its photos are to be sorted into a folder per wnid, as the usual script "
    "valprep.sh does; in that of train each class is an archive.",
    places=PLACES,
    layout="val/WNID/*.JPEG (and train/WNID/*.JPEG), WNID such as n01440764",
    shown_by="val",
    citation="Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015",
    num_samples={"train": 1_281_167, "val": 50_000},
    classes=range(1_000),
)
_WNID = re.compile(r"n\d{8}")
FOLDERS = CorruptedFolders(
    title="ImageNet-C",
    places=("ImageNet-C", "imagenet/ImageNet-C", "imagenet-c", "ILSVRC2012/ImageNet-C"),
    groups=("blur", "digital", "extra", "noise", "weather"),
    source="https://zenodo.org/records/2235448 (blur.tar, digital.tar, extra.tar, noise.tar and weather.tar)",
)
COPIES = CorruptedCopies(
    title="ImageNet-C",
    severities=COMMON_CORRUPTIONS,
    load=partial(load_folder, folders=FOLDERS),
    cropped_size=224,
    origin=DataSource(
        title="ImageNet-C",
        homepage="https://github.com/hendrycks/robustness",
        licence="CC BY 4.0",
        get=f"Download from {FOLDERS.source} those whose corruptions you want (75 GB in all), and unpack. {NEEDS_VAL}",
        places=FOLDERS.places,
        layout="CORRUPTION/SEVERITY/WNID/ILSVRC2012_val_*.JPEG, 50,000 in each severity from 1 to 5",
        citation="Hendrycks and Dietterich, ICLR 2019",
    ),
)


def load_split(split: str, data_root: Path) -> Samples:
    """One split, as files that are decoded later.

    Raises: DataError: it is not there; the message says what belongs where.
    """
    root = data_root.absolute()
    folders = [folder for place in PLACES if (folder := root / place / split).is_dir()]
    for folder in folders:
        class_folders = tuple(child.name for child in visible_folders(folder))
        if any(_WNID.fullmatch(name) for name in class_folders):
            check_wnids(folder, class_folders, SOURCE)
            layout = FolderLayout(root=folder.parent, splits={split: folder}, class_folders=class_folders)
            return folder_samples(
                layout, split, dataset="imagenet", order=None, label_space="imagenet-1k", color_mode="RGB"
            )
    sort = f" {folders[0]} has none: sort its photos into them, as the usual script valprep.sh does." if folders else ""
    raise DataError(
        f"Data set 'imagenet' ({split}) is not under {root} (--data-root), where it may be {split} in "
        f"{', '.join(PLACES)}: a folder of images per wnid, such as {split}/n01440764. Get ILSVRC 2012 from "
        f"https://image-net.org, which asks for an account, and put or link it to {root / PLACES[0]}.{sort}"
    )


registry.add_dataset(
    Dataset(
        name="imagenet",
        loader=load_split,
        label_space="imagenet-1k",
        splits=("train", "val"),
        eval_split="val",
        fit_split="train",
        separation_splits=("val",),
        canonical_size=224,
        corruption_space="model",
        corruption_parent="val",
        corrupted=(COPIES, *MORE_COPIES),
        source=SOURCE,
        description="ImageNet (ILSVRC 2012): photos in 1,000 classes; 1281167 train, 50000 val",
    )
)
registry.add_eval_setting(
    EvalSetting(
        name="val",
        dataset=StandardDataset(name="imagenet"),
        size=50_000,
        version="1",
        description="ImageNet's 50,000 validation photos as they are",
    )
)
