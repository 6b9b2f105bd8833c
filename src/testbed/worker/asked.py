"""A classifier as a perturbation asks it: the images that are perturbed in, and out the logits that targets count.

Imports torch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from eval_settings.eval_setting_base import EvalSetting
from testbed.class_subset import has_groups, tensor_in_subset
from testbed.data.imagetransforms import transform_on_tensor
from testbed.randomness import SampleKeys
from testbed.records import ClassSublist, IntArray
from testbed.worker.classifier import Classifier


def as_asked(classifier: Classifier, setting: EvalSetting, keys: SampleKeys) -> Callable[[Tensor], Tensor]:
    """Images [n, C, H, W] in [0, 1], in the space that the setting perturbs in, to logits [n, columns].

    These are the classifier's own, of all its classes; but of the setting's classes where the classifier picks these
    itself, or where several columns are one of them. It is the classifier itself where that does all of it.

    Args:
        classifier, setting: what is perturbed for what.
        keys: of the n samples, for a classifier that draws noise.
    """
    is_resized = setting.space == "canonical" and classifier.transform is not None
    if is_resized or classifier.takes_keys or _answers_in_setting(classifier, setting.columns):
        return _Asked(classifier, setting, keys)
    return classifier


def asked_targets(targets: IntArray, classifier: Classifier, setting: EvalSetting) -> NDArray[np.int64]:
    """Columns of the logits of `as_asked`, from targets that count the setting's classes; -1 stays -1."""
    positions = np.asarray(targets, np.int64)
    if setting.columns is None or _answers_in_setting(classifier, setting.columns):
        return positions
    return np.asarray([*setting.columns, -1], np.int64)[positions]


def _answers_in_setting(classifier: Classifier, columns: ClassSublist | None) -> bool:
    return columns is not None and (classifier.takes_class_sublist or has_groups(columns))


class _Asked(nn.Module):
    def __init__(self, classifier: Classifier, setting: EvalSetting, keys: SampleKeys) -> None:
        super().__init__()
        self.classifier, self.setting, self.keys = classifier, setting, keys

    def forward(self, images: Tensor) -> Tensor:
        if self.setting.space == "canonical":
            images = transform_on_tensor(self.classifier.transform, images)
        logits: Tensor = self.classifier(images, self.setting.class_sublist, keys=self.keys)
        columns = self.setting.columns
        if columns is None or not has_groups(columns):
            return logits
        return tensor_in_subset(logits, columns, is_cut=self.classifier.takes_class_sublist)
