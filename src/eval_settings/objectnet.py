"""ObjectNet: 50,273 photos of 313 kinds of objects at home, of which ImageNet has 113.

Every photo has a red border of 1 pixel, so that whoever trains on it can be told. The ImageNet Testbed cuts 2 pixels
off each side, and so do the settings here; `..._border-1px` cuts 1. The 113 kinds are 125 classes of ImageNet: a kind
has the largest of its classes' logits.

`objectnet-1.0-beta` is what the ImageNet Testbed evaluated: it declares 18,514 photos of the 113 kinds. The final
version is published with 18,574; here it is `objectnet-1.0`.

Source: Barbu et al., ObjectNet: A large-scale bias-controlled dataset for pushing the limits of object recognition
models, NeurIPS 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from eval_settings._objectnet_classes import OBJECTNET
from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed.data.imagefolder import file_samples, image_files
from testbed.data.json_files import read_json
from testbed.data.places import find_place
from testbed.errors import DataError
from testbed.records import Samples

if TYPE_CHECKING:
    from PIL.Image import Image

VERSION = "1"  # of the definitions below; a bump makes stored results of these settings stale
SPLIT = "test"
BORDER = 2  # pixels that the ImageNet Testbed cuts off
NAMES = tuple(name for _, name, _ in OBJECTNET)
FOLDERS = tuple(folder for folder, _, _ in OBJECTNET)
GROUPS = tuple(columns for _, _, columns in OBJECTNET)
MAPPING = "folder_to_objectnet_label.json"

# name; version in words; how many photos; places
SETS = (
    ("objectnet-1.0-beta", "1.0 beta, as the ImageNet Testbed has it", 18_514,
     ("objectnet-1.0-beta", "objectnet-1.0-beta/images")),
    ("objectnet-1.0", "1.0", 18_574,
     ("objectnet-1.0", "objectnet-1.0/images", "objectnet", "objectnet/images", "objectnet/objectnet-1.0/images")),
)  # fmt: skip


@dataclass(frozen=True)
class CutBorder:
    """Cuts `pixels` off each side of an image."""

    pixels: int

    def __call__(self, image: Image) -> Image:
        return image.crop((self.pixels, self.pixels, image.width - self.pixels, image.height - self.pixels))


def load_overlap(split: str, data_root: Path, *, dataset: str, source: DataSource) -> Samples:
    """The photos of the 113 kinds that ImageNet has; the folders of the others are passed over.

    Raises: DataError: it is not there, lacks a kind, or its own list of folders names them otherwise.
    """
    images = find_place(source, data_root, dataset=dataset, holds=_has_kinds)
    folders = _folders(images)
    if lacking := [folder for folder in folders if not (images / folder).is_dir()]:
        raise DataError(
            f"{images} lacks {len(lacking)} of the {len(folders)} kinds that ImageNet has, such as {lacking[0]}. "
            "Unpack the archive again."
        )
    targets = {
        image.relative_to(images).as_posix(): index
        for index, folder in enumerate(folders)
        for image in image_files(images / folder)
    }
    return file_samples(images, targets, dataset=dataset, split=split, class_names=NAMES, color_mode="RGB")


def _has_kinds(folder: Path) -> bool:
    return any((folder / name).is_dir() for name in FOLDERS)


def _folders(images: Path) -> tuple[str, ...]:
    """Folders of the 113 kinds, by the file that comes with the set where it is there, else by the names we know."""
    mapping = next((place / MAPPING for place in _mapping_places(images) if (place / MAPPING).is_file()), None)
    if mapping is None:
        return FOLDERS
    known = {str(name): folder for folder, name in read_json(mapping, dict).items()}
    if missing := [name for name in NAMES if name not in known]:
        raise DataError(f"{mapping} names no folder of {missing[0]}. Get the file again.")
    return tuple(known[name] for name in NAMES)


def _mapping_places(images: Path) -> tuple[Path, ...]:
    return tuple(parent / "mappings" for parent in (images, images.parent))


def source_of(name: str, version: str, places: tuple[str, ...], num_samples: int) -> DataSource:
    """Where people get a version of ObjectNet."""
    return DataSource(
        title=f"ObjectNet {version}",
        homepage="https://objectnet.dev",
        licence="its own: CC BY 4.0, never to be trained on, and the red border may only be cut off while it is used",
        get=f"Download {name} from the page, which gives the password of the archive, and unpack it. Of the photos "
        "that the ImageNet Testbed has, 18,514 are of these 113 kinds, and of those of version 1.0 18,574.",
        places=places,
        layout="KIND/photo.png, or images/KIND/photo.png with mappings/ beside it; KIND such as alarm_clock",
        citation="Barbu et al., ObjectNet, NeurIPS 2019",
        num_samples={SPLIT: num_samples},
        classes=range(len(NAMES)),
    )


for dataset_name, version, size, places in SETS:
    source = source_of(dataset_name, version, places, size)
    what = f"{source.title}: {size} photos of the 113 kinds that ImageNet has, each the largest of its classes' logits"
    registry.add_dataset(
        Dataset(
            name=dataset_name,
            loader=partial(load_overlap, dataset=dataset_name, source=source),
            label_space="imagenet-1k",
            derives=False,
            source=source,
            description=what,
        )
    )
    for border in (BORDER, 1):
        registry.add_eval_setting(
            EvalSetting(
                name=dataset_name if border == BORDER else f"{dataset_name}_border-{border}px",
                dataset=StandardDataset(name=dataset_name),
                size=size,
                transform=CutBorder(border),
                class_sublist=GROUPS,
                version=VERSION,
                description=f"{what}; {border} px cut off each side",
            )
        )
