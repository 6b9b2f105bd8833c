"""Folders with one sub-folder of images per class, and optionally one of these per split."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from testbed.data.class_order import ClassOrder, class_map, some_of
from testbed.data.decoding import SUFFIXES, UNREAD_SUFFIXES, ColorMode
from testbed.data.manifest import manifest
from testbed.errors import DataError
from testbed.fingerprint import fingerprint
from testbed.records import Samples

_SPLITS = {"train": "train", "validation": "validation", "val": "validation", "test": "test"}
# What file servers and systems keep for themselves beside files, such as thumbnails and deleted files; lower case.
_SYSTEM_FOLDERS = frozenset({
    "@eadir", "#recycle", "#snapshot", "@recycle", "@recently-snapshot", "@__thumb", "~snapshot", "$recycle.bin",
    "system volume information", "lost+found", "network trash folder", "temporary items",
})  # fmt: skip
_IMAGE_LIKE = SUFFIXES | UNREAD_SUFFIXES
_ARRANGEMENT = (
    "Arrange it as ROOT/CLASS/image.png with one folder per class, or as ROOT/SPLIT/CLASS/image.png with the splits "
    "train, validation (or val) and test"
)


@dataclass(frozen=True, kw_only=True)
class FolderLayout:
    """How a folder of images is arranged.

    Args:
        root: the folder.
        splits: split -> the folder that holds its class folders; where there are none, `root` is the split 'test'.
        class_folders: names of the class folders of all splits together, sorted.
    """

    root: Path
    splits: Mapping[str, Path]
    class_folders: tuple[str, ...]


def folder_layout(root: Path) -> FolderLayout:
    """The arrangement of a folder, from the names of its sub-folders alone.

    Sub-folders named train, val or validation, and test are splits if they hold folders themselves. Hidden folders and
    those that systems keep for themselves are ignored.

    Raises: DataError: no class folders, or splits and other folders side by side.
    """
    folders = visible_folders(root)
    named = {folder: _SPLITS[folder.name.lower()] for folder in folders if folder.name.lower() in _SPLITS}
    splits = {folder: split for folder, split in named.items() if visible_folders(folder)}
    if not folders or (len(named) == len(folders) and len(splits) < len(named)):
        flat = next((folder for folder in named if folder not in splits), root)
        raise DataError(f"{flat} has no class folders. {_ARRANGEMENT}.")
    if not splits:
        return FolderLayout(root=root, splits={"test": root}, class_folders=tuple(folder.name for folder in folders))
    if others := [folder.name for folder in folders if folder not in splits]:
        raise DataError(
            f"{root} mixes folders of splits ({', '.join(folder.name for folder in splits)}) with others "
            f"({', '.join(others[:5])}). Move the others out, or name the folder of one split as the data set."
        )
    if len(set(splits.values())) < len(splits):
        raise DataError(
            f"{root} has two folders for one split ({', '.join(f.name for f in splits)}). Keep one of them."
        )
    classes = {child.name for folder in splits for child in visible_folders(folder)}
    by_name = {split: folder for folder, split in splits.items()}
    return FolderLayout(root=root, splits=by_name, class_folders=tuple(sorted(classes)))


def folder_samples(
    layout: FolderLayout,
    split: str,
    *,
    dataset: str,
    order: ClassOrder | None,
    label_space: str | None,
    color_mode: ColorMode,
) -> Samples:
    """The images of one split, sorted by their paths relative to the root, which are the sample ids.

    Image files at any depth below a class folder count, told by their extension in upper or lower case. Hidden files,
    other files, folders behind links below a class folder, and thumbnails that file servers keep do not; those that
    look like images are counted in a note.

    Raises: DataError: no such split, a class folder without images that no class order file names, or class names that
        do not tell their order.
    """
    if split not in layout.splits:
        raise DataError(f"{layout.root} has no split '{split}'. Its splits: {', '.join(layout.splits)}.")
    classes = class_map(layout.class_folders, order=order, label_space=label_space, where=str(layout.root))
    root = layout.splits[split]
    images: dict[str, list[str]] = {}
    unread: Counter[str] = Counter()
    for folder in visible_folders(root):
        looked_at = list(_image_like_files(folder, folder))
        images[folder.name] = [_sample_id(path, layout.root) for path, reason in looked_at if reason is None]
        unread.update(reason for _, reason in looked_at if reason is not None)
    unread.update(_unread_beside(root))
    empty = [name for name, found in images.items() if not found]
    if empty and not isinstance(order, Path):
        told = _empty_folders(root, empty, is_known=classes.label_space is not None)
        raise DataError(" ".join((told, *_unread_note(unread))))
    targets = {image: classes.indices[name] for name, found in images.items() for image in found}
    samples = file_samples(
        layout.root, targets, dataset=dataset, split=split, class_names=classes.class_names, color_mode=color_mode
    )
    return replace(samples, notes=_unread_note(unread))


def _unread_beside(root: Path) -> Iterator[str]:
    """Why files that look like images and lie in none of the class folders of `root` are no samples, one for each."""
    for child in root.iterdir():
        if not child.is_dir():
            if child.suffix.lower() in _IMAGE_LIKE:
                yield "beside the class folders"
        elif _is_passed_over(child.name):
            yield from (str(reason) for _, reason in _image_like_files(root, child))


def _unread_note(unread: Counter[str]) -> tuple[str, ...]:
    """What is told of files that look like images and are no samples, by why they are none; nothing where all are."""
    if not unread:
        return ()
    shown = ", ".join(f"{count:,} {reason}" for reason, count in sorted(unread.items()))
    remedy = " Convert files of formats that are not read to PNG or JPEG." if UNREAD_SUFFIXES & unread.keys() else ""
    return (f"{unread.total():,} file(s) that look like images are no samples: {shown}.{remedy}",)


def _empty_folders(root: Path, names: Sequence[str], *, is_known: bool) -> str:
    """What is wrong with class folders of a split that have no images; `is_known`: the classes are, whatever lies here.

    Where classes are not known, folders tell them, and an empty one may be meant to.
    """
    remedy = (
        "Add what is missing, or remove them."
        if is_known
        else "Add some, remove them, or name the classes in a --class-order file."
    )
    formats = " ".join(sorted(SUFFIXES))
    return f"{len(names)} class folder(s) of {root} have no images ({formats}): {some_of(names)}. {remedy}"


def file_samples(
    root: Path,
    target_of: Mapping[str, int],
    *,
    dataset: str,
    split: str,
    class_names: tuple[str, ...],
    color_mode: ColorMode,
) -> Samples:
    """Image files as samples, sorted by their paths relative to the root, which are the sample ids.

    Args:
        root: the folder that the paths are relative to.
        target_of: relative path -> class index.
        dataset, split: names.
        class_names: in the order of the model's outputs.
        color_mode: what the files are decoded to.
    Raises: DataError: a file that cannot be read.
    """
    sample_ids = tuple(sorted(target_of))
    targets = np.array([target_of[sample_id] for sample_id in sample_ids], dtype=np.int32)
    return Samples(
        dataset=dataset,
        split=split,
        items=[root / sample_id for sample_id in sample_ids],
        targets=targets,
        sample_ids=sample_ids,
        class_names=class_names,
        fingerprint=fingerprint(
            {
                "files": manifest(root, sample_ids),
                "targets": targets.tolist(),
                "class_names": class_names,
                "color_mode": color_mode,
            }
        ),
        color_mode=color_mode,
    )


def visible_folders(root: Path) -> list[Path]:
    """Sub-folders sorted by name, without hidden ones and those that systems keep for themselves."""
    try:
        return sorted(child for child in root.iterdir() if child.is_dir() and not _is_passed_over(child.name))
    except OSError as error:
        raise DataError(f"Cannot list the folder {root} ({error.strerror}). Check its permissions.") from error


def image_files(folder: Path) -> Iterator[Path]:
    """Image files at any depth below a folder, told by their extension. Raises: DataError: it cannot be listed."""
    return (path for path, reason in _image_like_files(folder, folder) if reason is None)


def _image_like_files(root: Path, folder: Path) -> Iterator[tuple[Path, str | None]]:
    """Files below `folder` that look like images, with why one is no sample; `folder` is `root` or lies in it."""

    def failed(error: OSError) -> None:
        if _passed_over(Path(error.filename), root) is None:  # what is passed over need not be readable
            raise DataError(
                f"Cannot list the folder {error.filename} ({error.strerror}). Check its permissions."
            ) from error

    for parent, _, files in os.walk(folder, onerror=failed):
        outside = _passed_over(Path(parent), root)
        for name in files:
            if (suffix := Path(name).suffix.lower()) not in _IMAGE_LIKE:
                continue
            if outside is not None:
                yield Path(parent, name), f"in {outside}"
            elif name.startswith("."):
                yield Path(parent, name), "hidden"
            else:
                yield Path(parent, name), None if suffix in SUFFIXES else suffix


def _passed_over(folder: Path, root: Path) -> str | None:
    """The name of the first folder on the way from `root` to `folder` that is passed over; None where none is."""
    return next(filter(_is_passed_over, folder.relative_to(root).parts), None)


def _is_passed_over(name: str) -> bool:
    return name.startswith((".", "__MACOSX")) or name.lower() in _SYSTEM_FOLDERS


def _sample_id(path: Path, root: Path) -> str:
    sample_id = path.relative_to(root).as_posix()
    if not sample_id.isascii() and sample_id.encode(errors="replace").decode() != sample_id:
        raise DataError(f"The file name {sample_id!r} under {root} is not valid Unicode. Rename the file.")
    return sample_id
