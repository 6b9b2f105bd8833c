"""Tiny-ImageNet-C and the clean photos that it was made of, which are none of Tiny ImageNet's own.

Its authors cut other photos to bounding boxes in the same way, resized them to 64 x 64 and corrupted them. They
published the cut photos as well, as `imagenet_val_bbox_crop`: only with these do clean and corrupted answers join.

Source: Hendrycks & Dietterich, ICLR 2019; https://github.com/hendrycks/robustness/issues/39.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval_settings.dataset_base import CorruptedCopies
from eval_settings.source_base import DataSource
from testbed.data.arrays import arrays_fingerprint
from testbed.data.corrupted import COMMON_CORRUPTIONS
from testbed.data.corrupted_folders import CorruptedFolders, load_folder
from testbed.data.decoding import decode
from testbed.data.imagefolder import FolderLayout, folder_samples, visible_folders
from testbed.data.places import check_class_folders
from testbed.errors import DataError
from testbed.records import Samples

CLEAN_SPLIT, CLEAN_SETTING = "clean-of-c", "tiny-imagenet-c-clean"
CLEAN_FOLDER = "imagenet_val_bbox_crop"
PLACES = ("Tiny-ImageNet-C", "tiny-imagenet/Tiny-ImageNet-C", "tiny-imagenet-c", "tiny-imagenet-c/Tiny-ImageNet-C", ".")
SIDE = 64

FOLDERS = CorruptedFolders(
    title="Tiny-ImageNet-C",
    places=PLACES,
    groups=("Tiny-ImageNet-C-extra",),
    source="https://zenodo.org/records/2536630 (Tiny-ImageNet-C.tar, and for gaussian_blur, saturate, spatter and "
    "speckle_noise Tiny-ImageNet-C-extra.tar)",
)
COPIES = CorruptedCopies(
    title="Tiny-ImageNet-C",
    severities=COMMON_CORRUPTIONS,
    load=partial(load_folder, folders=FOLDERS),
    clean_split=CLEAN_SPLIT,
    clean_setting=CLEAN_SETTING,
    origin=DataSource(
        title="Tiny-ImageNet-C",
        homepage="https://github.com/hendrycks/robustness",
        licence="CC BY 4.0",
        get=f"Download from {FOLDERS.source}, and unpack; and {CLEAN_FOLDER}, the photos that they were made of.",
        places=PLACES,
        layout=f"CORRUPTION/SEVERITY/WNID/*.JPEG, and {CLEAN_FOLDER}/WNID/*.JPEG",
        shown_by="brightness",
        citation="Hendrycks and Dietterich, ICLR 2019",
    ),
)


def load_clean(data_root: Path, class_names: tuple[str, ...] | None) -> Samples:
    """The clean photos, squeezed to 64 x 64 as they were before they were corrupted.

    Args: class_names: the wnids of Tiny ImageNet, sorted; None where it is not there to tell them.
    Raises: DataError: they are not there, or not in folders of these classes; the message says what belongs where.
    """
    root = data_root.absolute()
    folder = next((root / place / CLEAN_FOLDER for place in PLACES if (root / place / CLEAN_FOLDER).is_dir()), None)
    if folder is None:
        raise DataError(
            f"Tiny-ImageNet-C was made of other photos than those of Tiny ImageNet, and these are not under {root} "
            f"(--data-root), where they may be {CLEAN_FOLDER} in {', '.join(PLACES)}: a folder of images per wnid. "
            "https://github.com/hendrycks/robustness/issues/39 says where to get them. To evaluate the corrupted "
            "photos alone, name the folder of one severity as a data set: --dataset NAME=PATH."
        )
    names = tuple(child.name for child in visible_folders(folder))
    check_class_folders(folder, names, class_names or names)
    layout = FolderLayout(root=folder.parent, splits={CLEAN_SPLIT: folder}, class_folders=names)
    files = folder_samples(
        layout, CLEAN_SPLIT, dataset="tiny-imagenet", order="lexicographic", label_space="tiny-imagenet",
        color_mode="RGB",
    )  # fmt: skip
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        images = np.stack(list(pool.map(_squeezed, files.items)))
    return Samples(
        dataset=files.dataset,
        split=files.split,
        items=images,
        targets=files.targets,
        sample_ids=files.sample_ids,
        class_names=files.class_names,
        fingerprint=arrays_fingerprint(
            images, files.targets, sample_ids=files.sample_ids, class_names=files.class_names
        ),
    )


def _squeezed(path: Path) -> NDArray[Any]:
    from PIL import Image

    return np.asarray(decode(path, color_mode="RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR))
