"""YTBB-Robust: 2,030 frames of YouTube videos, the anchors, each with up to 20 frames around it that look alike.

`ytbb-robust_pm0` evaluates the anchors alone: its top-1 accuracy is the pm-0 accuracy. `ytbb-robust_pm10` evaluates all
frames: an anchor counts as right in `pm10` where it and every frame within 10 frames of it are. An anchor may have
several right classes, which are those of the frames around it too.

ImageNet has 19 of the 24 classes. As published, anchors of the others (cow, giraffe, skateboard, toilet, none) are
among the samples; no model can have them right. The ImageNet Testbed gives these classes a logit of 0, so that a model
whose other logits are all negative predicts the first of them; here they are never predicted.

Source: Shankar et al., Do Image Classifiers Generalize Across Time?, ICCV 2021.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from eval_settings._pm_settings import ANCHORS, FRAMES, REACH, register_frames
from eval_settings._video_classes import YTBB_COLUMNS, YTBB_GROUPS, YTBB_NAMES
from eval_settings.source_base import DataSource
from testbed.data.class_order import label_space_names
from testbed.data.json_files import read_json
from testbed.data.labelled_files import LabelledFile, found_folder, labelled_samples
from testbed.data.published_files import read_bytes
from testbed.errors import DataError, reading
from testbed.metrics.frames import anchored_id
from testbed.records import Samples

NAME = "ytbb-robust"
NUM_ANCHORS = 2_030
VIDEOS, METADATA = "ytbb_videos", "metadata"
ANCHOR_FILE, FRAME_FILE, FIRST_FILE = "anchor_labels.json", "pmk_labels.json", "ytbb_robustness_test_anchors_full.csv"
# words of the reviewers: what makes a frame no good
UNSURE = ("bad", "unsure")
PROBLEMS = (
    "dissimilar", "problematic", "incorrect", "dont know", "deformation", "background-change", "occlusion-increased",
    "blur-increase", "bad-anchor",
)  # fmt: skip
SWAPPED = {22: 23, 23: 22}  # the first labels number 'none' and 'car' the other way round
ABSENT = tuple(name for name, columns in zip(YTBB_NAMES, YTBB_COLUMNS, strict=True) if not columns)
SOURCE = DataSource(
    title="YTBB-Robust",
    homepage="https://modestyachts.github.io/natural-perturbations-website",
    licence="BSD 2-Clause for what its authors made; YouTube-BoundingBoxes is CC BY 4.0, the videos are their owners'",
    get=f"Get imagenet_vid_ytbb_robust.tar.gz, which the homepage links to, and unpack it; {ANCHOR_FILE}, {FRAME_FILE} "
    f"and {FIRST_FILE} are those of the ImageNet Testbed (github.com/modestyachts/imagenet-testbed, "
    f"src/eval_settings/ytbb-robust_metadata) and belong in a folder '{METADATA}' beside '{VIDEOS}'.",
    places=("imagenet_vid_ytbb_robust/ytbb-robust", "ytbb-robust"),
    layout=f"{VIDEOS}/VIDEO_MS/frame-N.jpg, and {METADATA} with {ANCHOR_FILE}, {FRAME_FILE} and {FIRST_FILE}",
    citation="Shankar et al., Do Image Classifiers Generalize Across Time?, ICCV 2021",
    num_samples={ANCHORS: NUM_ANCHORS},
)


class Reviewed(NamedTuple):
    """What the reviewers said of a frame, or of a frame around an anchor ('ANCHOR,FRAME')."""

    key: str
    words: frozenset[str]


def load_split(split: str, data_root: Path) -> Samples:
    """The anchors, or the anchors and the frames around them, as files that are decoded later.

    Raises: DataError: not there, or metadata that do not fit together.
    """
    names = (VIDEOS, *(f"{METADATA}/{name}" for name in (ANCHOR_FILE, FRAME_FILE, FIRST_FILE)))
    folder = found_folder(SOURCE, names, data_root, dataset=NAME)
    first = _first_labels(folder / METADATA / FIRST_FILE)
    frames = list(_reviewed(folder / METADATA / FRAME_FILE))
    bad = {one.key.split(",")[0] for one in frames if "bad-anchor" in one.words}
    anchors = {one.key: one.words for one in _reviewed(folder / METADATA / ANCHOR_FILE)
               if "good" in one.words and not one.words & set(UNSURE) and one.key not in bad}  # fmt: skip
    around: dict[str, list[str]] = {anchor: [] for anchor in anchors}
    for one in frames if split == FRAMES else ():
        anchor, _, frame = one.key.partition(",")
        if anchor in around and "similar" in one.words and not one.words & set(PROBLEMS):
            around[anchor].append(frame)
    rows = [row for anchor in sorted(anchors) for row in _rows(anchor, around[anchor], anchors[anchor], first)]
    return labelled_samples(folder / VIDEOS, rows, dataset=NAME, split=split, class_names=_class_names())


def _rows(anchor: str, around: list[str], words: frozenset[str], first: Mapping[str, int]) -> Iterator[LabelledFile]:
    """The anchor and the frames within reach of it, in their order; all with the anchor's classes."""
    sequence, number = _frame(anchor)
    if sequence not in first:
        raise DataError(f"{FIRST_FILE} has no class for the anchor {anchor}. Get the metadata of '{NAME}' again.")
    classes = dict.fromkeys((first[sequence], *(YTBB_NAMES.index(word) for word in YTBB_NAMES if word in words)))
    labels = tuple(_label(index) for index in classes)
    offsets = {_frame(frame)[1] - number: frame for frame in around if _frame(frame)[0] == sequence}
    for offset, frame in sorted({**offsets, 0: anchor}.items()):
        if abs(offset) <= REACH:
            yield LabelledFile(sample_id=anchored_id(anchor, offset), path=frame, labels=labels)


def _label(index: int) -> int:
    """A class of ImageNet that stands for one of the 24, or a number above those for one that ImageNet lacks."""
    return YTBB_COLUMNS[index][0] if YTBB_COLUMNS[index] else 1_000 + ABSENT.index(YTBB_NAMES[index])


def _class_names() -> tuple[str, ...]:
    """Those of ImageNet, and behind them the classes that it lacks."""
    return (*(label_space_names("imagenet-1k") or ()), *ABSENT)


def _reviewed(path: Path) -> Iterator[Reviewed]:
    """What was said last of each key. Raises: DataError: the file is of another format."""
    content = read_json(path, dict)
    with reading(path, kind="annotations with keys and labels", remedy="Get the file again."):
        last: dict[str, Any] = {row["key"]: row["labels"] for row in content["annotations"]}
        for key, words in last.items():
            parts = (PurePosixPath(part) for part in key.split(","))
            yield Reviewed(
                key=",".join(f"{part.parent.name}/{part.name}" for part in parts),
                words=frozenset(content["labels"][number] for number in words),
            )


def _first_labels(path: Path) -> dict[str, int]:
    """VIDEO_MS -> class. Raises: DataError: the file is of another format."""
    with reading(path, kind="a table with the columns ytid, time_ms and label", remedy="Get it again."):
        rows = csv.DictReader(read_bytes(path).decode(errors="replace").splitlines())
        labels = {f"{row['ytid']}_{row['time_ms']}": int(row["label"]) for row in rows}
    if unknown := [label for label in labels.values() if not 0 <= label < len(YTBB_NAMES)]:
        raise DataError(f"{path} has the class {unknown[0]}, but there are {len(YTBB_NAMES)}. Get it again.")
    return {sequence: SWAPPED.get(label, label) for sequence, label in labels.items()}


def _frame(key: str) -> tuple[str, int]:
    """Sequence and number of `VIDEO_MS/frame-17.jpg`."""
    sequence, _, name = key.partition("/")
    number = PurePosixPath(name).stem.removeprefix("frame-")
    if not number.isdecimal():
        raise DataError(
            f"The metadata of '{NAME}' name a frame {key}, which is no VIDEO_MS/frame-N.jpg. Get them again."
        )
    return sequence, int(number)


register_frames(
    NAME,
    load_split,
    source=SOURCE,
    groups=YTBB_GROUPS,
    num_anchors=NUM_ANCHORS,
    description="YTBB-Robust: 2,030 frames of YouTube videos in 24 classes, with the frames around them",
    classes="24 classes, of which the five that ImageNet lacks count as wrong",
)
