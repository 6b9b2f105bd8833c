"""How often predictions flip along sequences of frames: CIFAR-10-P, CIFAR-100-P and ImageNet-P.

`cifar10-p.brightness`, `cifar100-p.tilt`, `imagenet-p.gaussian_noise`, ...: about 30 frames of each test image, along
which a perturbation grows. `flip_rate` is the percentage of frames whose prediction is another than that of the frame
before; where every frame has noise of its own, than that of the first, which is clean. It needs no labels: without
CIFAR itself the accuracy, which is of all frames, is undefined. `_2` and `_3` are stronger noise.

The mean over perturbations is the published flip probability; it is normalised by AlexNet's only in the published mFR.
The frames of ImageNet-P are 224 px and not resized for a model that crops 224 px.

Source: Hendrycks & Dietterich, Benchmarking Neural Network Robustness to Common Corruptions and Perturbations, ICLR
2019, section 4.2.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed.data.array_files import mapped_array
from testbed.data.arrays import arrays_fingerprint
from testbed.data.class_order import label_space_names
from testbed.data.datasets import load_samples
from testbed.data.labelled_files import found_folder
from testbed.data.published_files import Format, PublishedFiles
from testbed.data.sequences import sequence_samples
from testbed.errors import DataError, MissingDataError
from testbed.metrics.frames import flip_rate, frame_id
from testbed.records import Samples

VERSION = "1"
NOISES = ("gaussian_noise", "shot_noise", "speckle_noise")
PERTURBATIONS = (
    *(f"{noise}{strength}" for noise in NOISES for strength in ("", "_2", "_3")), "motion_blur", "zoom_blur",
    "gaussian_blur", "snow", "spatter", "brightness", "translate", "rotate", "tilt", "scale", "shear",
)  # fmt: skip
LICENCE = "CC BY 4.0; the photos are those of {}"
CITATION = (
    "Hendrycks & Dietterich, Benchmarking Neural Network Robustness to Common Corruptions and Perturbations, ICLR 2019"
)
# name of the clean data set, title, address
ARRAYS = (
    ("cifar10", "CIFAR-10-P", "https://zenodo.org/records/2535967"),
    ("cifar100", "CIFAR-100-P", "https://zenodo.org/records/3555552"),
)
VIDEOS = DataSource(
    title="ImageNet-P",
    homepage="https://zenodo.org/records/3565846",
    licence=LICENCE.format("ImageNet"),
    get="Get the archives of the perturbations, and unpack them; the package av reads the videos (pip install av).",
    places=("ImageNet-P", "imagenet-p", "imagenet/ImageNet-P"),
    layout="PERTURBATION/WNID/ILSVRC2012_val_*.mp4, or in place of a video a folder of its name with its frames",
    citation=CITATION,
    classes=range(1_000),
)
GROUPS = ("", "blur", "digital", "extra", "noise", "weather")  # folders that archives may have been unpacked to


def load_frames(split: str, data_root: Path, *, clean: str, files: PublishedFiles) -> Samples:
    """All frames of a perturbation of a test set, in its order; with its labels where that is there.

    Args:
        split: the perturbation.
        clean: name of the data set whose test images the sequences begin with.
        files: an array uint8 [images, frames, H, W, 3] per perturbation.
    Raises: DataError: not there, or of another number or size of images than the test set.
    """
    file = files.find(split, data_root)[0]
    frames, still = mapped_array(file), _still_images(clean, data_root)
    shape = frames.shape[:1] + frames.shape[2:] if still is None else np.asarray(still.items).shape
    if frames.dtype != np.uint8 or frames.ndim != 5 or (frames.shape[0], *frames.shape[2:]) != shape:
        wanted = "images, frames, H, W, 3" if still is None else f"{shape[0]}, frames, {', '.join(map(str, shape[1:]))}"
        raise DataError(
            f"{file} has frames of type {frames.dtype} and shape {list(frames.shape)}, but those of '{clean}' should "
            f"be uint8 [{wanted}]. Get it again."
        )
    count = frames.shape[1]
    names = tuple(f"test/{index}" for index in range(len(frames))) if still is None else still.sample_ids
    labels = np.full(len(frames), -1, np.int32) if still is None else still.targets
    items, targets = frames.reshape(-1, *shape[1:]), np.repeat(labels, count)
    sample_ids = tuple(frame_id(name, frame) for name in names for frame in range(count))
    class_names = (label_space_names(clean) or ()) if still is None else still.class_names
    return Samples(
        dataset=f"{clean}-p",
        split=split,
        items=items,
        targets=targets,
        sample_ids=sample_ids,
        class_names=class_names,
        fingerprint=arrays_fingerprint(items, targets, sample_ids=sample_ids, class_names=class_names),
    )


def _still_images(clean: str, data_root: Path) -> Samples | None:
    """The test images that the sequences begin with; None where they are not there: flips need no labels."""
    try:
        return load_samples(registry.dataset(clean), "test", data_root=data_root)
    except MissingDataError:
        return None


def load_videos(split: str, data_root: Path) -> Samples:
    """All frames of a perturbation of ImageNet's validation photos. Raises: DataError: not there, or not readable."""
    folder = found_folder(VIDEOS, (split,), data_root, dataset="imagenet-p", groups=GROUPS) / split
    names = label_space_names("imagenet-1k") or ()
    return sequence_samples(folder, dataset="imagenet-p", split=split, class_names=names)


def _register(dataset: Dataset, *, keeps_size: bool) -> None:
    """Registers a data set of frames and a setting for each of its perturbations."""
    registry.add_dataset(dataset)
    for perturbation in dataset.splits:
        is_noise = perturbation.startswith(NOISES)
        reference: Literal["first", "previous"] = "first" if is_noise else "previous"
        registry.add_eval_setting(
            EvalSetting(
                name=f"{dataset.name}.{perturbation}",
                dataset=StandardDataset(name=dataset.name, split=perturbation),
                metrics_fn=partial(flip_rate, reference=reference),
                keeps_size=keeps_size,
                store_logits="predictions",
                version=VERSION,
                description=f"flips of predictions along frames of {dataset.description.split(':')[0]} under "
                f"{perturbation.replace('_', ' ')}, against the {reference} frame",
            )
        )


for clean, title, homepage in ARRAYS:
    source = DataSource(
        title=title,
        homepage=homepage,
        licence=LICENCE.format(clean.upper()),
        get=f"Get {title}.tar, and unpack it; accuracies need the labels of {clean} itself as well.",
        places=(title, f"{clean}-p/{title}", f"{clean}/{title}", f"{clean}-p"),
        layout="PERTURBATION.npy, uint8 [10000, frames, 32, 32, 3]",
        citation=CITATION,
    )
    form = Format(folders=source.places, files={name: (f"{name}.npy",) for name in PERTURBATIONS})
    files = PublishedFiles(dataset=f"{clean}-p", formats=(form,), source=homepage)
    _register(
        Dataset(
            name=f"{clean}-p",
            loader=partial(load_frames, clean=clean, files=files),
            label_space=clean,
            splits=PERTURBATIONS,
            eval_split=PERTURBATIONS[0],
            canonical_size=32,
            derives=False,
            source=source,
            description=f"{title}: about 30 frames of each of the 10,000 test images, under 20 perturbations",
        ),
        keeps_size=False,
    )
_register(
    Dataset(
        name="imagenet-p",
        loader=load_videos,
        label_space="imagenet-1k",
        splits=PERTURBATIONS,
        eval_split=PERTURBATIONS[0],
        canonical_size=224,
        derives=False,
        source=VIDEOS,
        description="ImageNet-P: videos of about 30 frames of each of the 50,000 validation photos, 20 perturbations",
    ),
    keeps_size=True,
)
