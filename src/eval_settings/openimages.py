"""Photos of Open Images' test part that show just one of ImageNet's classes, as the ImageNet Testbed picks them.

420 of ImageNet's classes have a label in Open Images. A photo belongs to the set where people have confirmed exactly
one of these labels; it is classified among the 420. The ImageNet Testbed evaluated 23,104 such photos, which it lists
by their positions in its own copy: here they are found by their labels, of which hardly any may lack its photo.

Source: Kuznetsova et al., The Open Images Dataset V4, IJCV 2020; Taori et al., Measuring Robustness to Natural
Distribution Shifts in Image Classification, NeurIPS 2020.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from functools import partial
from pathlib import Path, PurePosixPath

from eval_settings._openimages_classes import OPENIMAGES
from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed.data.class_order import label_space_names
from testbed.data.imagefolder import file_samples, image_files
from testbed.data.places import find_place
from testbed.data.published_files import read_bytes
from testbed.errors import DataError, reading
from testbed.records import Samples

VERSION = "1"  # of the definition below; a bump makes stored results of the setting stale
NAME, SPLIT = "openimages-test", "test"
MOST_ABSENT = 0.01  # of the photos that the labels name
LABELS = "test-annotations-human-imagelabels.csv"
COLUMNS = tuple(sorted(OPENIMAGES.values()))
SOURCE = DataSource(
    title="Open Images, test part, photos of one ImageNet class",
    homepage="https://storage.googleapis.com/openimages/web/download_v7.html",
    licence="CC BY 2.0 for the photos, CC BY 4.0 for the labels",
    get=f"Download the test images (36 GB) and {LABELS} (human-verified image-level labels) from the page.",
    places=("openimages-test", "openimages", "open-images"),
    layout=f"{LABELS}, and photos named ID.jpg beside it or in folders below",
    citation="Kuznetsova et al., The Open Images Dataset V4, IJCV 2020",
)


def load_single_class(split: str, data_root: Path, *, source: DataSource) -> Samples:
    """The photos with exactly one confirmed label of ImageNet's classes; the others are passed over.

    Raises: DataError: photos or labels are not there, or the labels are not as published.
    """
    folder = find_place(source, data_root, dataset=NAME, holds=lambda place: (place / LABELS).is_file())
    classes = single_classes(folder / LABELS)
    targets = {
        image.relative_to(folder).as_posix(): classes[image.stem]
        for image in image_files(folder)
        if image.stem in classes
    }
    absent = sorted(classes.keys() - {PurePosixPath(path).stem for path in targets})
    if len(absent) > MOST_ABSENT * len(classes):
        raise DataError(
            f"{folder} lacks {len(absent):,} of the {len(classes):,} photos that {LABELS} names with one class of "
            f"ImageNet, such as {absent[0]}.jpg. Download the test images again."
        )
    names = label_space_names("imagenet-1k") or ()
    return file_samples(folder, targets, dataset=NAME, split=split, class_names=names, color_mode="RGB")


def single_classes(table: Path) -> dict[str, int]:
    """ImageNet class by id of the photo, of photos with exactly one confirmed label of them.

    Raises: DataError: the file is not a table with ImageID, LabelName and Confidence.
    """
    found: dict[str, set[int]] = defaultdict(set)
    with reading(table, kind="a table with the columns ImageID, LabelName and Confidence", remedy="Get it again."):
        for row in csv.DictReader(io.StringIO(read_bytes(table).decode("utf-8-sig"))):
            if int(float(row["Confidence"])) == 1 and row["LabelName"] in OPENIMAGES:
                found[row["ImageID"]].add(OPENIMAGES[row["LabelName"]])
    return {image: classes.pop() for image, classes in found.items() if len(classes) == 1}


registry.add_dataset(
    Dataset(
        name=NAME,
        loader=partial(load_single_class, source=SOURCE),
        label_space="imagenet-1k",
        derives=False,
        source=SOURCE,
        description=f"{SOURCE.title}: about 23,000 of 125,436 photos",
    )
)
registry.add_eval_setting(
    EvalSetting(
        name="openimages_test_ilsvrc_subset",
        dataset=StandardDataset(name=NAME),
        class_sublist=COLUMNS,
        version=VERSION,
        description=f"{SOURCE.title}, told apart from {len(COLUMNS)} classes; 23104 in the ImageNet Testbed's copy",
    )
)
