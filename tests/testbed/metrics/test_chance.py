"""Answers to clean images that look like guesses are told, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.metrics.chance import is_at_chance, is_constant, suspicion

TARGETS = np.arange(300) % 10


def _suspicion(predictions: np.ndarray, targets: np.ndarray = TARGETS, num_classes: int = 10) -> str | None:
    return suspicion(predictions == targets, predictions, targets, num_classes=num_classes)


def test_guesses_and_answers_below_chance_are_suspicious() -> None:
    guesses = np.random.default_rng(0).integers(0, 10, 300)
    assert "no better than chance (10.00 % with 10 classes)" in str(_suspicion(guesses))
    assert "top-1 is 0.00 %" in str(_suspicion((TARGETS + 1) % 10))


def test_one_class_for_all_images_is_suspicious_unless_they_are_of_it() -> None:
    assert str(_suspicion(np.full(300, 3))).startswith("99 % or more of the predictions are one class")
    mostly = np.where(np.arange(300) < 280, 3, 1)
    assert not is_constant(np.full(300, 3), mostly)


def test_answers_better_than_chance_are_not_suspicious() -> None:
    assert _suspicion(np.where(np.arange(300) % 4, TARGETS, 0)) is None
    assert _suspicion(np.where(np.arange(300) % 4, (TARGETS + 1) % 10, TARGETS)) is None  # 25 % of 10 classes


@pytest.mark.parametrize(("num_right", "n", "num_classes"), [(6, 10, 10), (2, 3, 2), (1, 4, 10)])
def test_few_images_that_say_nothing_are_not_suspicious(num_right: int, n: int, num_classes: int) -> None:
    assert not is_at_chance(num_right, n, chance=1 / num_classes)


def test_fewer_than_ten_images_or_a_single_class_say_nothing() -> None:
    assert _suspicion(np.zeros(9, int), np.arange(9)) is None
    assert _suspicion(np.zeros(300, int), np.zeros(300, int), num_classes=1) is None


def test_chance_is_the_rate_of_the_most_frequent_class() -> None:
    targets = np.where(np.arange(300) < 240, 3, np.arange(300) % 10)
    random = np.random.default_rng(0)
    uninformed = np.where(random.random(300) < 0.97, 3, random.integers(0, 10, 300))
    assert "no better than chance (82.00 %" in str(_suspicion(uninformed, targets))
    assert _suspicion(np.where(np.arange(300) % 20, targets, 0), targets) is None


def test_answers_that_are_no_numbers_are_not_called_one_class() -> None:
    assert _suspicion(np.full(300, -1)) == "99 % or more of the answers are not finite"
