"""Corrupted copies in folders NAME/SEVERITY/WNID of image files: ImageNet-C and Tiny-ImageNet-C.

Source: Hendrycks & Dietterich, Benchmarking Neural Network Robustness to Common Corruptions and Perturbations, ICLR
2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from testbed.data.imagefolder import image_files, visible_folders
from testbed.data.manifest import manifest
from testbed.errors import DataError
from testbed.fingerprint import fingerprint
from testbed.records import Samples


@dataclass(frozen=True, kw_only=True)
class CorruptedFolders:
    """Where the folders of a published set lie.

    Args:
        title: what the set is called.
        places: folders relative to the data root, any of which may hold NAME/SEVERITY/WNID/image.
        groups: folders within a place that the archives unpack to; also a place without them counts.
        source: where people get it, and which archives.
        other_names: by corruption, what the folders of severities 1, 2, ... may be called instead.
    """

    title: str
    places: tuple[str, ...]
    groups: tuple[str, ...]
    source: str
    other_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def find(self, corruption: str, severity: int, data_root: Path) -> Path:
        """The folder of class folders. Raises: DataError: not there; the message says what belongs where."""
        root = data_root.absolute()
        names = [str(severity), *self.other_names.get(corruption, ())[severity - 1 : severity]]
        for place in self.places:
            for group in ("", *self.groups):
                for name in names:
                    if (folder := root / place / group / corruption / name).is_dir():
                        return folder
        groups = f", or in {', '.join(self.groups)} there" if self.groups else ""
        raise DataError(
            f"{self.title} ({corruption}/{severity}) is not under {root} (--data-root), where it may be "
            f"{corruption}/{' or '.join(names)} in {', '.join(self.places)}{groups}: a folder of images per wnid. Get "
            f"it from {self.source}, and unpack it to {root / self.places[0]}."
        )


def load_folder(
    clean: Samples, corruption: str, severity: int, data_root: Path, *, folders: CorruptedFolders
) -> Samples:
    """The copies of the clean images, each found by its file name, which must lie in the folder of the clean class.

    Args:
        clean, corruption, severity, data_root: see `CorruptedCopies.load`; the clean samples are files.
        folders: where they are.
    Raises: DataError: not there; a copy that is missing, of no clean image, there twice, or in the folder of another
        class.
    """
    folder = folders.find(corruption, severity, data_root)
    copies = _by_stem(folder)
    stems = [PurePosixPath(sample_id).stem for sample_id in clean.sample_ids]
    _check_one_to_one(folder, copies, stems, clean)
    paths = [copies[stem] for stem in stems]
    for path, target in zip(paths, clean.targets, strict=True):
        if path.split("/")[0] != clean.class_names[target]:
            raise DataError(
                f"{folder / path} is a copy of an image of class {clean.class_names[target]}, but lies in the folder "
                f"of {path.split('/')[0]}. Unpack {folders.title} again."
            )
    return Samples(
        dataset=clean.dataset,
        split=clean.split,
        items=[folder / path for path in paths],
        targets=clean.targets,
        sample_ids=clean.sample_ids,
        class_names=clean.class_names,
        fingerprint=_fingerprint(folder, paths, clean),
        color_mode=clean.color_mode,
    )


def _fingerprint(folder: Path, paths: Sequence[str], clean: Samples) -> str:
    return fingerprint(
        {
            "files": manifest(folder, paths),
            "sample_ids": clean.sample_ids,
            "targets": clean.targets.tolist(),
            "class_names": clean.class_names,
            "color_mode": clean.color_mode,
        }
    )


def _by_stem(folder: Path) -> dict[str, str]:
    """File name without its extension -> path relative to `folder`. Raises: DataError: a name is there twice."""
    found: dict[str, str] = {}
    for class_folder in visible_folders(folder):
        for image in image_files(class_folder):
            if image.stem in found:
                raise DataError(f"{folder} has {image.stem} twice, one is {image}. Unpack it again.")
            found[image.stem] = image.relative_to(folder).as_posix()
    return found


def _check_one_to_one(folder: Path, copies: dict[str, str], stems: Sequence[str], clean: Samples) -> None:
    """Raises a DataError unless there is exactly one copy of each clean image."""
    lacking = [stem for stem in stems if stem not in copies]
    others = sorted(copies.keys() - set(stems))
    if not lacking and not others:
        return
    faults = [f"lacks {len(lacking):,}, such as {lacking[0]}"] if lacking else []
    faults += [f"has {len(others):,} others, such as {others[0]}"] if others else []
    raise DataError(
        f"{folder} should have a copy of each of the {len(stems):,} images of '{clean.dataset}' ({clean.split}), but "
        f"it {' and '.join(faults)}. Check what was unpacked, and that it was made of these images."
    )
