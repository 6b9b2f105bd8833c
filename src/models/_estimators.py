"""Classifiers of scikit-learn as models: fitted in every run, and asked through `classify`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.records import FloatArray, Samples

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class FittedEstimator:
    """An estimator, and the number of classes of its data set: a split may lack some."""

    estimator: Any
    num_classes: int


def fit(estimator: Any, dataset: Samples) -> FittedEstimator:
    """`estimator` fitted on a data set held as an array; pixels are scaled to [0, 1]."""
    return FittedEstimator(estimator.fit(_features(dataset), dataset.targets), len(dataset.class_names))


def classify(images: Tensor, model: FittedEstimator) -> Tensor:
    """[n, num_classes] float32 class probabilities, in the order of the class indices; 0 for classes never seen.

    Args:
        images: [n, C, H, W] float, or [n, D].
        model: of `fit`.
    """
    import torch

    features = images.detach().cpu().numpy().reshape(len(images), -1)
    logits = np.zeros((len(images), model.num_classes), dtype=np.float32)
    logits[:, model.estimator.classes_] = model.estimator.predict_proba(features)
    return torch.from_numpy(logits)


def _features(dataset: Samples) -> FloatArray:
    items = np.asarray(dataset.items)
    pixels = items / np.float32(255) if items.dtype == np.uint8 else items
    if pixels.ndim == 4:  # as `classify` sees them: channels first
        pixels = pixels.transpose(0, 3, 1, 2)
    return pixels.reshape(len(pixels), -1)
