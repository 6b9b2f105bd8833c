"""The largest logits: the right ones in the right order, with what a probability needs, in few bytes."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.metrics.accuracy import predictions, target_ranks
from testbed.top_logits import bytes_per_sample, decode_top, encode_top, top_logits


@pytest.mark.parametrize("k", [1, 2, 5, 9, 12])
def test_the_first_classes_agree_with_predictions_and_ranks(k: int) -> None:
    rng = np.random.default_rng(k)
    logits = rng.integers(-2, 3, (500, 9)).astype(np.float32)  # so few values that ties are many
    targets = rng.integers(0, 9, 500)
    top = top_logits(logits, targets, k=k)
    kept = min(k, 9)
    assert top.values.shape == top.classes.shape == (500, kept)
    assert np.array_equal(top.classes[:, 0], predictions(logits))
    ranks = target_ranks(logits, targets)
    assert np.array_equal((top.classes == targets[:, None]).any(axis=1), ranks < kept), "so is top-k accuracy"
    assert np.array_equal(top.classes, np.argsort(-logits, axis=1, kind="stable")[:, :kept])
    assert np.array_equal(top.values, np.take_along_axis(logits, top.classes, 1))


def test_a_worked_example() -> None:
    logits = np.array([[0, np.log(2), np.log(5)], [1, 1, 1]], np.float32)
    top = top_logits(logits, np.array([1, -1]), k=2)
    assert top.classes.tolist() == [[2, 1], [0, 1]]
    assert top.log_normalizers == pytest.approx([np.log(8), 1 + np.log(3)], rel=1e-6)
    assert top.target_probabilities[0] == pytest.approx(2 / 8, rel=1e-6)
    assert np.isnan(top.target_probabilities[1]), "the second sample's class has no column"
    assert top.first(1).classes.tolist() == [[2], [0]]


def test_large_logits_have_a_normalizer() -> None:
    top = top_logits(np.array([[1e4, 1e4]], np.float32), np.array([0]), k=1)
    assert top.log_normalizers[0] == pytest.approx(1e4 + np.log(2))


def test_a_row_that_is_no_number_is_kept_as_it_is() -> None:
    logits = np.array([[np.nan, 1, np.inf], [-np.inf, np.nan, np.nan]], np.float32)
    top = top_logits(logits, np.array([1, 0]), k=3)
    assert top.classes[0].tolist() == [2, 1, 0]
    assert top.values[0, :2].tolist() == [np.inf, 1]
    assert np.isnan(top.target_probabilities).all()


@pytest.mark.parametrize("scale", [1.0, 2.0**17])
@pytest.mark.parametrize("k", [1, 2, 5, 6])
def test_bytes_give_back_what_was_encoded(k: int, scale: float) -> None:
    logits = (np.random.default_rng(0).normal(size=(3, 5)) * scale).astype(np.float32)
    top = top_logits(logits, np.array([0, 4, -1]), k=k)
    payload, is_half = encode_top(top, num_classes=5)
    found = decode_top(payload, k=k, is_half=is_half, num_classes=5)
    assert is_half == (scale == 1)
    exact = ("classes", "target_logits", "log_normalizers", *(("values",) if not is_half else ()))
    for name in exact:
        assert getattr(found, name).tobytes() == getattr(top, name).tobytes(), name
    if is_half:
        assert np.array_equal(found.values, top.values.astype(np.float16).astype(np.float32))
        assert len(payload) == 3 * bytes_per_sample(k, 5)


@pytest.mark.parametrize(("num_classes", "width"), [(1000, 2), (65536, 2), (65537, 4)])
def test_a_class_takes_two_bytes_or_four(num_classes: int, width: int) -> None:
    logits = np.zeros((2, num_classes), np.float32)
    logits[:, -1] = 1
    payload, is_half = encode_top(top_logits(logits, np.array([0, 1]), k=20), num_classes=num_classes)
    assert len(payload) == 2 * (20 * (2 + width) + 8) == 2 * bytes_per_sample(20, num_classes)
    assert decode_top(payload, k=20, is_half=is_half, num_classes=num_classes).classes[0, 0] == num_classes - 1
