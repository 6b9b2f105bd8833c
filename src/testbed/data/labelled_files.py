"""Image files with the classes that count as right for each, as published metadata list them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eval_settings.source_base import DataSource
from testbed.data.manifest import manifest
from testbed.errors import DataError
from testbed.fingerprint import fingerprint
from testbed.records import Samples


@dataclass(frozen=True, kw_only=True)
class LabelledFile:
    """A sample of a data set of files.

    Args:
        sample_id: its name; several samples may be of one file.
        path: of the file, relative to the folder of the data set.
        labels: the classes that count as right, the target first.
    """

    sample_id: str
    path: str
    labels: tuple[int, ...]


def labelled_samples(
    root: Path, rows: Sequence[LabelledFile], *, dataset: str, split: str, class_names: tuple[str, ...]
) -> Samples:
    """The files as samples, in the order of the rows.

    Raises: DataError: a file cannot be read, or a label is no class.
    """
    files = manifest(root, sorted({row.path for row in rows}))
    labels = tuple(row.labels for row in rows)
    return Samples(
        dataset=dataset,
        split=split,
        items=[root / row.path for row in rows],
        targets=np.array([of_one[0] for of_one in labels], np.int32),
        sample_ids=tuple(row.sample_id for row in rows),
        class_names=class_names,
        fingerprint=fingerprint(
            {
                "files": files,
                "samples": [(row.sample_id, row.path, row.labels) for row in rows],
                "class_names": class_names,
                "color_mode": "RGB",
            }
        ),
        label_sets=labels if any(len(of_one) > 1 for of_one in labels) else None,
    )


def found_folder(
    source: DataSource, files: Sequence[str], data_root: Path, *, dataset: str, groups: Sequence[str] = ("",)
) -> Path:
    """The first of a source's places that has all of some files.

    Args:
        source: of the data set.
        files: relative to a place.
        data_root: folder that holds data sets.
        dataset: its name, for messages.
        groups: folders within a place that may hold the files instead; '' is the place itself.
    Raises: DataError: none has; the message says what belongs where.
    """
    root = data_root.absolute()
    folders = [root / place / group for place in source.places for group in groups]
    for folder in folders:
        if all((folder / file).exists() for file in files):
            return folder
    begun = next((folder for folder in folders if any((folder / file).exists() for file in files)), None)
    lacking = [] if begun is None else [file for file in files if not (begun / file).exists()]
    where = " or ".join(source.places)
    within = f", or in {', '.join(filter(None, groups))} there" if any(groups) else ""
    lacks = f"; {begun} lacks {', '.join(lacking)}" if lacking else ""
    raise DataError(
        f"Data set '{dataset}' is not under {root} (--data-root), where it may be {', '.join(files)} in "
        f"{where}{within}{lacks}. {source.get} Put it in {root / source.places[0]}. See {source.homepage}."
    )
