"""ImageNet-Vid-Robust: 1,109 frames of videos, the anchors, each with up to 20 frames around it that look alike.

`imagenet-vid-robust_pm0` evaluates the anchors alone: its top-1 accuracy is the pm-0 accuracy. `..._pm10` evaluates all
frames: an anchor counts as right in `pm10` where it and every frame within 10 frames of it are. A frame may have
several right classes.

Source: Shankar et al., Do Image Classifiers Generalize Across Time?, ICCV 2021.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from eval_settings._pm_settings import ANCHORS, FRAMES, REACH, register_frames
from eval_settings._video_classes import VID_GROUPS, VID_NAMES
from eval_settings.source_base import DataSource
from testbed.data.json_files import read_json
from testbed.data.labelled_files import LabelledFile, found_folder, labelled_samples
from testbed.errors import DataError, reading
from testbed.metrics.frames import anchored_id
from testbed.records import Samples

NAME = "imagenet-vid-robust"
SOURCE = DataSource(
    title="ImageNet-Vid-Robust",
    homepage="https://modestyachts.github.io/natural-perturbations-website",
    licence="BSD 2-Clause for what its authors made; the frames are ImageNet's (non-commercial research)",
    get="Get imagenet_vid_ytbb_robust.tar.gz, which the homepage links to, and unpack it.",
    places=("imagenet_vid_ytbb_robust/imagenet-vid-robust", "imagenet-vid-robust"),
    layout="val/VIDEO/FRAME.JPEG, metadata/labels.json (frame -> classes), metadata/pmsets.json (anchor -> frames)",
    citation="Shankar et al., Do Image Classifiers Generalize Across Time?, ICCV 2021",
    num_samples={ANCHORS: 1_109},
)


def load_split(split: str, data_root: Path) -> Samples:
    """The anchors, or the anchors and the frames around them, as files that are decoded later.

    Raises: DataError: not there, or metadata that do not fit together.
    """
    names = ("metadata/pmsets.json", "metadata/labels.json")
    folder = found_folder(SOURCE, names, data_root, dataset=NAME)
    pmsets, labels = (read_json(folder / name, dict) for name in names)
    with reading(folder / names[0], kind="lists of frames with classes", remedy="Get the metadata again."):
        rows = [row for anchor in sorted(pmsets) for row in _rows(folder, anchor, pmsets[anchor], labels)]
    kept = rows if split == FRAMES else [row for row in rows if row.sample_id.endswith("#+0")]
    return labelled_samples(folder, kept, dataset=NAME, split=split, class_names=VID_NAMES)


def _rows(folder: Path, anchor: str, around: Sequence[str], labels: Mapping[str, Any]) -> Iterator[LabelledFile]:
    """The anchor and the frames around it, in their order."""
    for offset, frame in sorted((_offset(folder, anchor, frame), frame) for frame in (anchor, *around)):
        right = labels.get(frame)
        if not right or not all(isinstance(label, int) and 0 <= label < len(VID_NAMES) for label in right):
            raise DataError(
                f"{folder / 'metadata/labels.json'} has {right!r} for {frame}, which is no list of classes."
            )
        yield LabelledFile(sample_id=anchored_id(anchor, offset), path=frame, labels=tuple(dict.fromkeys(right)))


def _offset(folder: Path, anchor: str, frame: str) -> int:
    """How many frames after the anchor a frame is: file names are numbers."""
    here, other = PurePosixPath(anchor), PurePosixPath(frame)
    is_far = here.parent != other.parent or not here.stem.isdecimal() or not other.stem.isdecimal()
    offset = 0 if is_far else int(other.stem) - int(here.stem)
    if is_far or abs(offset) > REACH or (offset == 0 and frame != anchor):
        raise DataError(
            f"{folder / 'metadata/pmsets.json'} has {frame} around {anchor}, which is not within {REACH} frames of it."
        )
    return offset


register_frames(
    NAME,
    load_split,
    source=SOURCE,
    groups=VID_GROUPS,
    num_anchors=1_109,
    description="ImageNet-Vid-Robust: 1,109 frames of videos in 30 classes, with the frames around them",
    classes="30 classes",
)
