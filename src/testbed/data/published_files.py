"""Data sets in the files that their authors publish: where these may lie, what is in them, and who downloads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.data.arrays import array_samples
from testbed.data.download import downloading
from testbed.errors import MissingDataError, reading
from testbed.records import IntArray, Samples

Arrays = tuple[NDArray[np.uint8], IntArray]


@dataclass(frozen=True, kw_only=True)
class Format:
    """One form in which a data set is published.

    Args:
        folders: where its files may lie, relative to the data root; the first folder that has them all counts.
        files: of each split.
    """

    folders: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class PublishedFiles:
    """The files of a data set, found under the data root or downloaded to it.

    Args:
        dataset: its name, and that of the folder under the data root which it is downloaded to.
        formats: the forms it is published in; the first that is there counts.
        source: where people find it.
        download: `download(folder, split)` fetches at least that split, into one of the places of a format; None where
            people must get it themselves.
    """

    dataset: str
    formats: tuple[Format, ...]
    source: str
    download: Callable[[Path, str], object] | None = None

    def find(self, split: str, data_root: Path) -> tuple[Path, ...]:
        """The files of a split.

        Raises: DataError: not there, and not to be had; the message says what was looked for and where it belongs.
        """
        root = data_root.absolute()
        if (found := self._found(split, root)) is not None:
            return found
        missing = self._missing(split, root)
        if self.download is None:
            raise MissingDataError(f"{missing} Get it from {self.source}, and put it into the first of these.")
        with downloading(self.source, root / self.dataset, missing=missing):
            self.download(root / self.dataset, split)
        if (found := self._found(split, root)) is None:
            raise MissingDataError(f"{missing} What was downloaded to {root / self.dataset} lacks it too.")
        return found

    def _found(self, split: str, root: Path) -> tuple[Path, ...] | None:
        return next((files for files in self._places(split, root) if all(file.is_file() for file in files)), None)

    def _places(self, split: str, root: Path) -> Iterator[tuple[Path, ...]]:
        for form in self.formats:
            for folder in form.folders:
                yield tuple(root / folder / name for name in form.files[split])

    def _missing(self, split: str, root: Path) -> str:
        """A sentence that says what was looked for, and what the first folder that has a part of it lacks."""
        looked_for = "; ".join(f"{_span(form.files[split])} in {', '.join(form.folders)}" for form in self.formats)
        for files in self._places(split, root):
            absent = [file.name for file in files if not file.is_file()]
            if len(absent) < len(files):
                looked_for += f"; {files[0].parent} lacks {', '.join(absent)}"
                break
        return f"Data set '{self.dataset}' ({split}) is not under {root} (--data-root), where it may be {looked_for}."


def load_arrays(
    split: str,
    data_root: Path,
    *,
    files: PublishedFiles,
    read: Callable[[Sequence[Path]], Arrays],
    class_names: tuple[str, ...],
) -> Samples:
    """The samples of a split that is published as files of many images each.

    Args:
        split, data_root: see `Dataset.loader`.
        files: where they are.
        read: the files of a split -> images [n, H, W] or [n, H, W, 3], uint8, and targets [n].
        class_names: in the order of the targets.
    Raises: DataError: not there, damaged, or not what the format says.
    """
    images, targets = read(files.find(split, data_root))
    return array_samples(images, targets, dataset=files.dataset, split=split, class_names=class_names)


def read_bytes(path: Path, opened: Callable[..., Any] = open) -> bytes:
    """The content of a file; `opened` is `open`, or `gzip.open`. Raises: DataError: it cannot be read."""
    with reading(path, kind="a file", remedy="Get the file again."), opened(path, "rb") as stream:
        content: bytes = stream.read()
        return content


def _span(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{names[0]} to {names[-1]}"
