"""Classifiers of scikit-learn as models: fitted in every run, and asked through `classify`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.errors import DataError
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


def random_forest(seed: int, dataset: Samples) -> FittedEstimator:
    """A random forest of 100 trees, fitted on a data set."""
    from sklearn.ensemble import RandomForestClassifier

    return fit(RandomForestClassifier(n_estimators=100, n_jobs=1, random_state=seed), dataset)


def nearest_neighbour(dataset: Samples) -> FittedEstimator:
    """The nearest neighbour in L2 among a data set's samples."""
    from sklearn.neighbors import KNeighborsClassifier

    # a tree, not 'brute': its distances are sums of their own, so that they cannot depend on the batch
    return fit(KNeighborsClassifier(n_neighbors=1, algorithm="kd_tree", n_jobs=1), dataset)


def classify(images: Tensor, model: FittedEstimator) -> Tensor:
    """[n, num_classes] float32 class probabilities, in the order of the class indices; 0 for classes never seen.

    Args:
        images: [n, C, H, W] float, or [n, D].
        model: of `fit`.
    """
    import torch

    features = images.detach().cpu().numpy().reshape(len(images), -1)
    logits = np.zeros((len(images), model.num_classes), dtype=np.float32)
    logits[:, model.estimator.classes_] = _probabilities(model.estimator, features)
    return torch.from_numpy(logits)


def _probabilities(estimator: Any, features: FloatArray) -> FloatArray:
    """The estimator's `predict_proba`, [n, classes it has seen].

    A forest's own spends more time on handing out its trees than they do on answering: here they are asked in turn, in
    its order, which gives the same bits in half the time.
    """
    from sklearn.ensemble import RandomForestClassifier

    if not isinstance(estimator, RandomForestClassifier):
        probabilities: FloatArray = estimator.predict_proba(features)
        return probabilities
    total = np.zeros((len(features), len(estimator.classes_)))
    for tree in estimator.estimators_:
        total += tree.predict_proba(features, check_input=False)
    return total / len(estimator.estimators_)


def _features(dataset: Samples) -> FloatArray:
    if not isinstance(dataset.items, np.ndarray):
        raise DataError(
            f"Data set '{dataset.dataset}' is a folder of image files; scikit-learn's models are fitted on an array. "
            "Save it as an .npz with x_train, y_train, x_test and y_test."
        )
    items = dataset.items
    pixels = items / np.float32(255) if items.dtype == np.uint8 else items
    if pixels.ndim == 4:  # as `classify` sees them: channels first
        pixels = pixels.transpose(0, 3, 1, 2)
    return pixels.reshape(len(pixels), -1)
