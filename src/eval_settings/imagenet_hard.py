"""ImageNet-Hard: 10,980 photos of several ImageNet-like sets that classifiers get wrong, however they are zoomed.

A photo has one right class or several. The files are those of the hub: .parquet files of encoded images.

Source: Taesiri et al., ImageNet-Hard: The Hardest Images Remaining from a Study of the Power of Zoom and Spatial Biases
in Image Classification, NeurIPS 2023.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed.data.class_order import label_space_names
from testbed.data.manifest import manifest
from testbed.data.parquet import EncodedImages
from testbed.errors import DataError
from testbed.fingerprint import fingerprint
from testbed.records import Samples

NAME, SIZE = "imagenet-hard", 10_980
PATTERN = "validation-*.parquet"
SOURCE = DataSource(
    title="ImageNet-Hard",
    homepage="https://huggingface.co/datasets/taesiri/imagenet-hard",
    licence="MIT; the photos are those of ImageNet, -V2, -A, -R, -Sketch and ObjectNet",
    get=f"Get all files {PATTERN} of its folder data; the package pyarrow reads them (pip install pyarrow).",
    places=("imagenet-hard", "imagenet-hard/data", "ImageNet-Hard"),
    layout=f"{PATTERN}, with the columns image and label (a list of classes)",
    citation="Taesiri et al., ImageNet-Hard, NeurIPS 2023",
    num_samples={"validation": SIZE},
)


def load_split(split: str, data_root: Path) -> Samples:
    """All photos, decoded when they are asked for, in the order of the files; the id of the first is `validation/0`.

    Raises: DataError: not there, or not readable.
    """
    root = data_root.absolute()
    files = next((found for place in SOURCE.places if (found := sorted((root / place).glob(PATTERN)))), None)
    if files is None:
        raise DataError(
            f"Data set '{NAME}' is not under {root} (--data-root), where it may be {PATTERN} in "
            f"{', '.join(SOURCE.places)}. {SOURCE.get} Put them in {root / SOURCE.places[0]}. See {SOURCE.homepage}."
        )
    names = label_space_names("imagenet-1k") or ()
    images = EncodedImages(files)
    label_sets = tuple(images.labels)
    return Samples(
        dataset=NAME,
        split=split,
        items=images,
        targets=np.array([labels[0] for labels in label_sets], np.int32),
        sample_ids=tuple(f"{split}/{position}" for position in range(len(images))),
        class_names=names,
        fingerprint=fingerprint(
            {
                "files": [row[1:] for row in manifest(files[0].parent, [file.name for file in files])],
                "label_sets": label_sets,
                "class_names": names,
                "color_mode": "RGB",
            }
        ),
        label_sets=label_sets,
    )


registry.add_dataset(
    Dataset(
        name=NAME,
        loader=load_split,
        label_space="imagenet-1k",
        splits=("validation",),
        eval_split="validation",
        canonical_size=224,
        derives=False,
        source=SOURCE,
        description="ImageNet-Hard: 10,980 photos that classifiers get wrong, in ImageNet's classes",
    )
)
registry.add_eval_setting(
    EvalSetting(
        name=NAME,
        dataset=StandardDataset(name=NAME),
        size=SIZE,
        version="1",
        description="ImageNet-Hard: a prediction is right where it is any of a photo's labels",
    )
)
