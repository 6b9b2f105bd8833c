"""Classifiers that are fitted in every run and asked through `classify`: scikit-learn's, and a linear one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.errors import DataError
from testbed.records import FloatArray, IntArray, Samples

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 4096  # samples that are looked at together
MAX_FEATURES = 16_384  # of a linear model: 2 GB of sums


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


def linear(dataset: Samples) -> FittedEstimator:
    """Ridge regression of the classes, one-hot, on a data set's values."""
    return fit(Ridge(), dataset)


class Ridge:
    """Scores that are linear in the features, fitted by least squares on one-hot classes.

    The normal equations are summed over blocks in float64: as exact as it gets, without a float64 copy of the data.

    Args:
        penalty: of the squared weights; it decides what pixels that never change weigh, and hardly anything else.
    """

    def __init__(self, penalty: float = 1.0) -> None:
        self.penalty = penalty

    def fit(self, features: FloatArray, targets: IntArray) -> Ridge:
        """Fits to features [n, D] and class indices [n]. Raises: DataError: D is too large to solve for."""
        width = features.shape[1]
        if width > MAX_FEATURES:
            raise DataError(
                f"A linear model of {width:,} values per sample would solve for {width:,} x {width:,} numbers. Give "
                f"it a data set of smaller images: at most {MAX_FEATURES:,} values."
            )
        self.classes_ = np.unique(targets)
        is_class = (targets[:, None] == self.classes_).astype(np.float64)
        mean = features.mean(axis=0, dtype=np.float64)
        gram, cross = self.penalty * np.eye(width), np.zeros((width, len(self.classes_)))
        for start in range(0, len(features), BLOCK):
            centred = features[start : start + BLOCK] - mean
            gram += centred.T @ centred
            cross += centred.T @ is_class[start : start + BLOCK]
        self.weights = np.linalg.solve(gram, cross)
        self.bias = is_class.mean(axis=0) - mean @ self.weights
        return self

    def predict_proba(self, features: FloatArray) -> FloatArray:
        """Scores [n, classes seen], near 1 for the class and 0 for others; not confined to [0, 1]."""
        scores: FloatArray = features @ self.weights + self.bias
        return scores


def classify(images: Tensor, model: FittedEstimator) -> Tensor:
    """[n, num_classes] float32 class probabilities or scores, in the order of the class indices.

    Classes that were never seen have 0, or what is least where scores may be negative.

    Args:
        images: [n, C, H, W] float, or [n, D].
        model: of `fit`.
    """
    import torch

    features = images.detach().cpu().numpy().reshape(len(images), -1)
    scores = _probabilities(model.estimator, features)
    least = np.minimum(scores.min(axis=1, keepdims=True), 0)
    logits = np.repeat(least.astype(np.float32), model.num_classes, axis=1)
    logits[:, model.estimator.classes_] = scores
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
