"""ImageNet-ReaL: ImageNet's validation photos with new labels, all classes that are to be seen in each.

46,837 of the 50,000 photos have labels; the others are left out, as published. The labels belong to the numbers in the
file names, whatever folder a photo lies in, and are those that timm brings along. A prediction is right where it is any
of a photo's labels.

Source: Beyer et al., Are we done with ImageNet?, 2020.
"""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed.data.datasets import load_samples
from testbed.data.timm_lists import timm_file
from testbed.errors import DataError
from testbed.fingerprint import fingerprint
from testbed.records import Samples

NAME, SIZE = "imagenet-real", 46_837
_FILE = re.compile(r"ILSVRC2012_val_(\d{8})")
SOURCE = DataSource(
    title="ImageNet-ReaL",
    homepage="https://github.com/google-research/reassessed-imagenet",
    licence="Apache 2.0 for the labels; the photos are ImageNet's",
    get="Get ImageNet's validation photos, under their published names; the labels come with timm.",
    places=("imagenet", "ILSVRC2012", "."),
    layout="val/CLASS/ILSVRC2012_val_00000001.JPEG, CLASS a wnid",
    shown_by="val",
    citation="Beyer et al., Are we done with ImageNet?, 2020",
    num_samples={"val": SIZE},
)


def real_labels() -> list[list[int]]:
    """For each of the 50,000 photos, by number, the classes that are to be seen in it; none for some."""
    labels: list[list[int]] = json.loads(timm_file("imagenet_real_labels.json").read_text(encoding="utf-8"))
    return labels


def load_split(split: str, data_root: Path) -> Samples:
    """The photos that have labels, under the ids that they have in `val`.

    Raises: DataError: ImageNet is not there, or a file bears no name of a validation photo.
    """
    photos, labels = load_samples(registry.dataset("imagenet"), split, data_root=data_root), real_labels()
    of_photo = [labels[_number(sample_id, len(labels)) - 1] for sample_id in photos.sample_ids]
    kept = [position for position, found in enumerate(of_photo) if found]
    items: list[Any] = [photos.items[position] for position in kept]
    label_sets = tuple(_target_first(of_photo[position], int(photos.targets[position])) for position in kept)
    return Samples(
        dataset=NAME,
        split=split,
        items=items,
        targets=np.array([found[0] for found in label_sets], np.int32),
        sample_ids=tuple(photos.sample_ids[position] for position in kept),
        class_names=photos.class_names,
        fingerprint=fingerprint({"photos": photos.fingerprint, "label_sets": label_sets}),
        label_sets=label_sets,
    )


def _number(sample_id: str, num_photos: int) -> int:
    found = _FILE.fullmatch(PurePosixPath(sample_id).stem)
    if found is None or not 1 <= int(found[1]) <= num_photos:
        raise DataError(
            f"Data set '{NAME}' finds labels by file name, and {sample_id} is not named as a validation photo of "
            "ImageNet, such as ILSVRC2012_val_00000001.JPEG. Unpack ImageNet again under the published names."
        )
    return int(found[1])


def _target_first(labels: list[int], original: int) -> tuple[int, ...]:
    """The labels, with the original one first where it is among them."""
    first = original if original in labels else labels[0]
    return tuple(dict.fromkeys((first, *labels)))


registry.add_dataset(
    Dataset(
        name=NAME,
        loader=load_split,
        label_space="imagenet-1k",
        splits=("val",),
        eval_split="val",
        canonical_size=224,
        derives=False,
        source=SOURCE,
        description="ImageNet's validation photos with all classes that are to be seen in each",
    )
)
registry.add_eval_setting(
    EvalSetting(
        name=NAME,
        dataset=StandardDataset(name=NAME),
        size=SIZE,
        version="1",
        description="ImageNet-ReaL: a prediction is right where it is any of a photo's labels",
    )
)
