"""Where a published data set lies under the data root, and the one line that says what is missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from eval_settings.source_base import DataSource
from testbed.data.class_order import class_difference, label_space_names, some_of
from testbed.data.imagefolder import FolderLayout, folder_samples, visible_folders
from testbed.errors import DataError
from testbed.records import Samples

_WNID = re.compile(r"n\d{8}")


def find_place(source: DataSource, data_root: Path, *, dataset: str, holds: Callable[[Path], bool]) -> Path:
    """The first of a source's places that holds the data set, absolute.

    Args:
        source: of the data set.
        data_root: folder that holds data sets.
        dataset: its name, for the message.
        holds: whether a folder, which exists, is the one.
    Raises: DataError: none is; the message says what to get and where to put it.
    """
    root = data_root.absolute()
    places = [root / place for place in source.places]
    there = [folder for folder in places if folder.is_dir()]
    if (found := next(filter(holds, there), None)) is not None:
        return found
    lacks = f" {there[0]} is there, but is not laid out so." if there else ""
    raise DataError(
        f"Data set '{dataset}' is not under {root} (--data-root), where it may be in {', '.join(source.places)}: "
        f"{source.layout}.{lacks} {source.get} Put it in {places[0]}. See {source.homepage}."
    )


def load_imagenet_folders(split: str, data_root: Path, *, dataset: str, source: DataSource) -> Samples:
    """Images of ImageNet classes in a folder per class, named by its wnid or by its number among the 1,000.

    Args:
        split, data_root: see `Dataset.loader`.
        dataset: its name.
        source: where it may lie.
    Raises: DataError: it is not there, or a folder is named after no class.
    """
    folder = find_place(source, data_root, dataset=dataset, holds=has_imagenet_folders)
    names = tuple(child.name for child in visible_folders(folder))
    are_numbers = all(map(str.isdecimal, names))
    if not are_numbers:
        check_wnids(folder, names, source)
    return folder_samples(
        FolderLayout(root=folder, splits={split: folder}, class_folders=names),
        split,
        dataset=dataset,
        order="numeric" if are_numbers else None,
        label_space="imagenet-1k",
        color_mode="RGB",
    )


def check_wnids(folder: Path, names: Sequence[str], source: DataSource) -> None:
    """Raises a DataError unless all class folders of `folder` are named by a wnid of ImageNet.

    Args: source: of the data set; of the classes that it has, the message names those that few are wanting of.
    """
    known = label_space_names("imagenet-1k") or ()
    if others := sorted({*names}.difference(known)):
        published = [known[index] for index in source.classes or ()]
        absent = [wnid for wnid in published if wnid not in names]
        is_telling = 0 < len(absent) < len(published) / 2  # else most is absent, which the count tells
        remedy = f"There is none of {some_of(absent)}. Name them as they were, or move" if is_telling else "Move"
        raise DataError(
            f"{folder} has {len(others)} folders that are named after no class of ImageNet: {', '.join(others[:5])}"
            f"{', ...' if len(others) > 5 else ''}. {remedy} them out."
        )


def check_class_folders(folder: Path, names: Collection[str], known: Sequence[str]) -> None:
    """Raises a DataError unless the class folders of `folder` are just those of the known classes."""
    if difference := class_difference(names, known):
        raise DataError(
            f"{folder} has other class folders than the {len(known)} classes: {difference}. Unpack the archive again, "
            "or name the folders as they were."
        )


def has_imagenet_folders(folder: Path) -> bool:
    """Whether a folder has one named by a wnid, or nothing but numbered ones."""
    names = [child.name for child in visible_folders(folder)]
    return any(_WNID.fullmatch(name) for name in names) or (bool(names) and all(map(str.isdecimal, names)))
