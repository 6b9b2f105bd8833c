"""The data set of a benchmark of video frames and its two settings: pm-0 of the anchors, pm-10 with the frames around.

Source: Shankar et al., Do Image Classifiers Generalize Across Time?, ICCV 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed.metrics.frames import pm_k
from testbed.records import MetricValue, Samples

REACH = 10  # frames on either side of an anchor
ANCHORS, FRAMES = "anchors", "frames"
VERSION = "1"  # of the settings below


def pm_accuracies(target_ranks: Any, sample_ids: Sequence[str]) -> dict[str, MetricValue]:
    """Percent of anchors that are right, and that are right with all frames around them."""
    return pm_k(target_ranks, sample_ids, k=REACH)


def register_frames(
    name: str,
    load_split: Callable[..., Samples],
    *,
    source: DataSource,
    groups: Sequence[int | Sequence[int]],
    num_anchors: int,
    description: str,
    classes: str,
) -> None:
    """Registers a data set with the splits 'anchors' and 'frames', and the settings `NAME_pm0` and `NAME_pm10`.

    Args:
        groups: columns of ImageNet's logits, by class of the videos.
        classes: which classes there are, for the settings' description.
    """
    registry.add_dataset(
        Dataset(
            name=name,
            loader=load_split,
            label_space="imagenet-1k",
            splits=(ANCHORS, FRAMES),
            eval_split=ANCHORS,
            canonical_size=224,
            derives=False,
            source=source,
            description=description,
        )
    )
    for suffix, split, size, metrics, what in (
        ("pm0", ANCHORS, num_anchors, None, "the anchor frames alone"),
        ("pm10", FRAMES, None, pm_accuracies, "an anchor is right with all frames within 10 of it"),
    ):
        registry.add_eval_setting(
            EvalSetting(
                name=f"{name}_{suffix}",
                dataset=StandardDataset(name=name, split=split),
                size=size,
                class_sublist=groups,
                metrics_fn=metrics,
                version=VERSION,
                description=f"{source.title} in {classes}: {what}",
            )
        )
