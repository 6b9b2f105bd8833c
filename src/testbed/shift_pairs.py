"""The pairs of settings that the ImageNet Testbed's paper draws, and the models that its lines are fitted on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ShiftPair:
    """Two settings that models are compared on.

    Args:
        name: of the pair.
        title: of the shift, as a figure says it.
        x, y: settings or aggregates of settings: without the shift and with it.
        pivot: accuracy on x, percent, at which one line ends and another begins; None for one line.
        pivot_model: whose accuracy the pivot is. No line is fitted on it.
    """

    name: str
    title: str
    x: str
    y: str
    pivot: float | None = None
    pivot_model: str = ""


# ImageNet-A holds images that ResNet-50 gets wrong, so the line bends where ResNet-50 stands: at its accuracy on the
# images of ImageNet's validation set that are of ImageNet-A's 200 classes.
_RESNET50_ON_IMAGENET_A_CLASSES = 91.86

_ROWS = (
    ("imagenetv2", "ImageNet-V2 (matched frequency)", "val", "imagenetv2-matched-frequency-format-val"),
    ("imagenetv2-original", "ImageNet-V2 (matched frequency, original JPEG)", "val", "imagenetv2-matched-frequency"),
    ("imagenetv2-threshold", "ImageNet-V2 (threshold 0.7)", "val", "imagenetv2-threshold-0.7-format-val"),
    ("imagenetv2-top-images", "ImageNet-V2 (top images)", "val", "imagenetv2-top-images-format-val"),
    ("objectnet", "ObjectNet", "val-on-objectnet-classes", "objectnet-1.0-beta"),
    ("objectnet-val", "ObjectNet against all of ImageNet", "val", "objectnet-1.0-beta"),
    ("imagenet-sketch", "ImageNet-Sketch", "val", "imagenet-sketch"),
    ("imagenet-r", "ImageNet-R", "val-on-imagenet-r-classes", "imagenet-r"),
    ("imagenet-r-val", "ImageNet-R against all of ImageNet", "val", "imagenet-r"),
    ("imagenet-a-val", "ImageNet-A against all of ImageNet", "val", "imagenet-a"),
    ("vid-robust", "ImageNet-Vid-Robust (pm-0)", "val-on-vid-robust-classes", "imagenet-vid-robust_pm0"),
    ("ytbb-robust", "YTBB-Robust (pm-0)", "val-on-ytbb-robust-classes", "ytbb-robust_pm0"),
    ("vid-robust-pmk", "ImageNet-Vid-Robust (pm-0 to pm-10)", "imagenet-vid-robust_pm0", "imagenet-vid-robust_pm10"),
    ("ytbb-robust-pmk", "YTBB-Robust (pm-0 to pm-10)", "ytbb-robust_pm0", "ytbb-robust_pm10"),
    ("corruptions", "Common corruptions (mean)", "val", "avg_corruptions"),
    ("imagenet-c-in-memory", "ImageNet-C made in memory (mean)", "val", "avg_imagenet_c_in_memory"),
    ("imagenet-c-on-disk", "ImageNet-C's files (mean)", "val", "avg_imagenet_c_on_disk"),
    ("pgd", "PGD attacks (mean)", "val", "avg_pgd"),
    ("stylized", "Stylized ImageNet", "val", "stylized_imagenet"),
    ("greyscale", "Greyscale", "val", "greyscale"),
    ("subsampled", "ImageNet-V2, an eighth of the classes", "val_subsampled_class_1_8",
     "imagenetv2-matched-frequency-format-val_subsampled_class_1_8"),
)  # fmt: skip

SHIFT_PAIRS: Mapping[str, ShiftPair] = {
    name: ShiftPair(name=name, title=title, x=x, y=y) for name, title, x, y in _ROWS
} | {
    "imagenet-a": ShiftPair(
        name="imagenet-a",
        title="ImageNet-A",
        x="val-on-imagenet-a-classes",
        y="imagenet-a",
        pivot=_RESNET50_ON_IMAGENET_A_CLASSES,
        pivot_model="resnet50",
    )
}


def pair_of(x: str, y: str) -> ShiftPair | None:
    """The named pair of two settings, if they are one."""
    return next((pair for pair in SHIFT_PAIRS.values() if (pair.x, pair.y) == (x, y)), None)
