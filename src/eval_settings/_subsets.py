"""Rules that pick some of a data set's samples: for `EvalSetting.idx_subsample_list`, which asks them at preflight.

What a rule picks depends on the samples alone, never on a run's seed, and no sample is picked twice. The positions are
part of the setting's fingerprint, so another pick is another setting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eval_settings.eval_setting_base import EvalSetting
from testbed.randomness import permutation, stream_key
from testbed.records import Samples

TENTH = "_10percent"  # ends the names of settings on a tenth of ImageNet's validation photos
NUM_CLASSES, OF_EACH = 1_000, 5


@dataclass(frozen=True)
class OfClasses:
    """All samples of some classes, given by their indices."""

    classes: tuple[int, ...]

    def __call__(self, samples: Samples) -> NDArray[np.int64]:
        return np.flatnonzero(np.isin(samples.targets, self.classes))


@dataclass(frozen=True)
class OneOf:
    """One of every `parts` samples, drawn at random without looking at their classes; finer parts lie in coarser."""

    parts: int

    def __call__(self, samples: Samples) -> NDArray[np.int64]:
        order = _order(samples.dataset, "iid-subset", len(samples))
        return np.sort(order[: len(samples) // self.parts])


@dataclass(frozen=True)
class OfEachClass:
    """So many samples of each class, drawn at random; all of a class that has no more."""

    count: int

    def __call__(self, samples: Samples) -> NDArray[np.int64]:
        order = _order(samples.dataset, "of-each-class", len(samples))
        by_class = order[np.argsort(samples.targets[order], kind="stable")]
        classes = samples.targets[by_class]
        rank_in_class = np.arange(len(classes)) - np.searchsorted(classes, classes)
        return np.sort(by_class[rank_in_class < self.count])


def random_classes(num_classes: int, count: int, *, label_space: str) -> tuple[int, ...]:
    """`count` classes of a label space drawn at random, ascending; fewer of them are a part of more."""
    return tuple(sorted(map(int, _order(label_space, "class-subset", num_classes)[:count])))


def tenth(whole: EvalSetting) -> EvalSetting:
    """5 photos of each class of a setting of ImageNet, for which the whole one stands where it is complete.

    Its shift is another family's, so that no report takes it for the whole.
    """
    shift = whole.shift and replace(whole.shift, family=f"{whole.shift.family}-10percent")
    return replace(
        whole,
        name=f"{whole.name}{TENTH}",
        size=OF_EACH * NUM_CLASSES,
        idx_subsample_list=OfEachClass(OF_EACH),
        parent_eval_setting=whole.name,
        shift=shift,
        description=f"{whole.description}; {OF_EACH} photos of each class",
    )


def _order(name: str, stream: str, length: int) -> NDArray[np.int64]:
    return permutation(stream_key(0, purpose="split", dataset=name, stream=stream), length)
