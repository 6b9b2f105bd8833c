"""Sequences of frames in folders of classes: videos, or folders that bear the names of videos and hold their frames.

Videos are decoded by the package `av`. The frames that OpenCV gives, with which the published numbers were made, may
differ by a grey level or two, for the two libraries turn the colours of a video to RGB in their own ways.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.data.contained_images import ContainedImages
from testbed.data.decoding import SUFFIXES, decode
from testbed.data.imagefolder import visible_folders
from testbed.data.manifest import manifest
from testbed.errors import DataError, reading
from testbed.fingerprint import fingerprint
from testbed.metrics.frames import frame_id
from testbed.records import Samples

VIDEO_SUFFIX = ".mp4"
_NUM_KEPT = 16  # sequences whose frames are at hand: a few of each thread that decodes
_NO_PACKAGE = (
    "reading videos needs the package 'av' (pip install av). Install it, or unpack every video to a folder of its name "
    "without '.mp4' that holds its frames as images"
)


def sequence_samples(
    folder: Path, *, dataset: str, split: str, class_names: tuple[str, ...], num_threads: int | None = None
) -> Samples:
    """All frames of the sequences in `folder/CLASS/`, under the ids `CLASS/SEQUENCE#0`, `#1`, ...

    Args:
        folder: holds a folder per class, each with videos `SEQUENCE.mp4` or folders `SEQUENCE` of images.
        dataset, split: names.
        class_names: in the order of the model's outputs; names of the class folders among them.
        num_threads: that look into videos; None for as many as there are cores.
    Raises: DataError: no sequence, a folder of no class, a video that cannot be read, or no package to read it with.
    """
    found = [sequence for class_folder in visible_folders(folder) for sequence in _sequences(class_folder)]
    if not found:
        raise DataError(f"{folder} has no videos ({VIDEO_SUFFIX}) nor folders of frames in folders of classes.")
    if unknown := sorted({sequence.parent.name for sequence in found} - set(class_names)):
        raise DataError(f"The class folder {folder / unknown[0]} is none of the {len(class_names)} classes. Remove it.")
    with ThreadPoolExecutor(max_workers=num_threads or min(8, os.cpu_count() or 1)) as pool:
        counts = list(pool.map(num_frames, found))
    files = [file.relative_to(folder).as_posix() for sequence in found for file in _files(sequence)]
    names = [sequence.relative_to(folder).as_posix().removesuffix(VIDEO_SUFFIX) for sequence in found]
    targets = np.repeat([class_names.index(sequence.parent.name) for sequence in found], counts).astype(np.int32)
    frames = zip(names, counts, strict=True)
    sample_ids = tuple(frame_id(name, number) for name, count in frames for number in range(count))
    return Samples(
        dataset=dataset,
        split=split,
        items=ContainedImages(found, counts, read=read_frames, image=_frame, num_kept=_NUM_KEPT),
        targets=targets,
        sample_ids=sample_ids,
        class_names=class_names,
        fingerprint=fingerprint(
            {"files": manifest(folder, files), "counts": counts, "class_names": class_names, "color_mode": "RGB"}
        ),
    )


def num_frames(sequence: Path) -> int:
    """How many frames a video or a folder of frames has. Raises: DataError: none, or it cannot be read."""
    if sequence.is_dir():
        count = len(_files(sequence))
    else:
        with _opened(sequence) as video, _reading(sequence):
            count = int(video.streams.video[0].frames)
        count = count or len(read_frames(sequence))  # some files do not say
    if not count:
        raise DataError(f"{sequence} has no frames. Get it again.")
    return count


def read_frames(sequence: Path) -> list[NDArray[np.uint8]]:
    """The frames [H, W, 3] of a video or a folder, in their order. Raises: DataError: it cannot be read."""
    if sequence.is_dir():
        return [np.asarray(decode(file, color_mode="RGB")) for file in _files(sequence)]
    with _opened(sequence) as video:
        with _reading(sequence):
            return [frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)]


def _frame(frames: Sequence[NDArray[np.uint8]], number: int) -> NDArray[np.uint8]:
    if number >= len(frames):
        raise DataError(f"a video says that it has more than {number} frames, but has {len(frames)}. Get it again")
    return frames[number]


def _opened(video: Path) -> Any:
    try:
        import av
    except ImportError as error:
        raise DataError(f"{video}: {_NO_PACKAGE}.") from error
    with _reading(video):
        return av.open(str(video))


def _reading(video: Path) -> AbstractContextManager[None]:
    return reading(video, kind="a video", remedy="Get it again.")


def _sequences(class_folder: Path) -> list[Path]:
    """Videos and folders of frames, by name; the folder goes before the video of its name."""
    folders = {folder.name: folder for folder in visible_folders(class_folder)}
    videos = {video.stem: video for video in class_folder.glob(f"*{VIDEO_SUFFIX}") if not video.name.startswith(".")}
    return [path for _, path in sorted({**videos, **folders}.items())]


def _files(sequence: Path) -> list[Path]:
    """The video itself, or the images in a folder: by the number in their names, or else by name."""
    if sequence.is_file():
        return [sequence]
    images = [file for file in sequence.iterdir() if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")]
    return sorted(images, key=lambda file: ([int(part) for part in re.findall(r"\d+", file.stem)], file.name))
