"""scikit-learn's classifiers as models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier

from models import _estimators
from models._estimators import classify, fit, linear
from testbed.data.arrays import array_samples
from testbed.errors import DataError
from testbed.records import Samples


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


def test_a_forest_answers_as_its_own_predict_proba():
    points = np.random.default_rng(0).uniform(size=(60, 2)).astype(np.float32)
    forest = RandomForestClassifier(n_estimators=20, random_state=1)
    model = fit(forest, samples(points, (points[:, 0] > points[:, 1]).astype(int), num_classes=2))
    queries = np.random.default_rng(1).uniform(size=(40, 2)).astype(np.float32)
    expected = forest.predict_proba(queries).astype(np.float32)
    np.testing.assert_array_equal(classify(torch.from_numpy(queries), model).numpy(), expected)


def test_image_files_are_refused_in_a_sentence(tmp_path: Path) -> None:
    files = Samples(
        dataset="birds", split="train", items=(tmp_path / "a.png",), targets=np.zeros(1, np.int32),
        sample_ids=("a.png",), class_names=("bird",), fingerprint="",
    )  # fmt: skip
    with pytest.raises(DataError, match="'birds' is a folder of image files"):
        fit(KNeighborsClassifier(1), files)


def test_linear_pixels_are_the_ridge_regression_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.linear_model import Ridge

    monkeypatch.setattr(_estimators, "BLOCK", 7)  # the sums are over blocks, of which the last is not whole
    chance = np.random.default_rng(0)
    pixels, targets = chance.integers(0, 256, (40, 3, 4), dtype=np.uint8), chance.integers(0, 3, 40)
    model = linear(samples(pixels, targets, num_classes=4))
    images = torch.from_numpy(chance.random((9, 1, 3, 4), dtype=np.float32))
    one_hot = (targets[:, None] == np.arange(3)).astype(float)
    expected = Ridge(alpha=1).fit(pixels.reshape(40, -1) / 255, one_hot).predict(images.flatten(1).numpy())
    found = classify(images, model).numpy()
    np.testing.assert_allclose(found[:, :3], expected, atol=2e-6)
    np.testing.assert_array_equal(found[:, 3], np.minimum(found[:, :3].min(axis=1), 0))  # a class it never saw


def test_a_linear_model_of_large_images_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_estimators, "MAX_FEATURES", 11)
    with pytest.raises(DataError, match="12 values per sample"):
        linear(samples(np.zeros((2, 3, 4), np.uint8), [0, 1], num_classes=2))
