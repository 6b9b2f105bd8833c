"""scikit-learn's classifiers as models."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.neighbors import KNeighborsClassifier

from models._estimators import classify, fit
from testbed.data.arrays import array_samples


def samples(x, targets, num_classes):
    names = tuple(map(str, range(num_classes)))
    return array_samples(np.asarray(x), np.asarray(targets), dataset="toy", split="train", class_names=names)


def test_columns_are_class_indices_also_where_the_split_lacks_a_class():
    dataset = samples([[0.0, 0.0], [5.0, 5.0]], [3, 1], num_classes=5)
    logits = classify(torch.tensor([[0.1, 0.0], [4.0, 5.0]]), fit(KNeighborsClassifier(1), dataset))
    assert logits.dtype == torch.float32
    assert torch.equal(logits, torch.tensor([[0, 0, 0, 1.0, 0], [0, 1.0, 0, 0, 0]]))


def test_fitted_pixels_are_the_pixels_that_classify_sees():
    pixels = np.random.default_rng(0).integers(0, 256, (6, 2, 3, 3), dtype=np.uint8)  # n, H, W, C
    model = fit(KNeighborsClassifier(1), samples(pixels, range(6), num_classes=6))
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255
    distances, _ = model.estimator.kneighbors(images.flatten(1).numpy())
    assert distances.max() == 0
    assert classify(images, model).argmax(dim=1).tolist() == list(range(6))
