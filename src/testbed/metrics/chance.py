"""Whether answers to clean images look as if something were wrong with how a model is shown them, or is read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testbed.records import IntArray

LEVEL = 0.01  # chance of as many right answers by guessing, above which they count as guesses
ONE_CLASS = 0.99  # part of the predictions in one class, from which on they count as constant
FEWEST = 10  # images that tell anything


def suspicion(right: NDArray[np.bool_], predictions: IntArray, targets: IntArray, *, num_classes: int) -> str | None:
    """What is suspicious about answers to clean images, as the end of a sentence; None where nothing is.

    Args:
        right: (n,) whether each answer is right.
        predictions: (n,) classes; -1 for a row that is not finite.
        targets: (n,) classes; -1 for one that does not count.
        num_classes: among which there is a choice.
    """
    n = len(right)
    if n < FEWEST or num_classes < 2:
        return None
    if np.mean(predictions < 0) >= ONE_CLASS:
        return f"{100 * ONE_CLASS:.0f} % or more of the answers are not finite"
    if is_constant(predictions, targets):
        return f"{100 * ONE_CLASS:.0f} % or more of the predictions are one class"
    chance = chance_of(targets, num_classes=num_classes)
    if is_at_chance(int(np.count_nonzero(right)), n, chance=chance):
        found, rate = 100 * float(np.mean(right)), 100 * chance
        return f"top-1 is {found:.2f} %, no better than chance ({rate:.2f} % with {num_classes} classes)"
    return None


def chance_of(targets: IntArray, *, num_classes: int) -> float:
    """The larger part of images that is right by guessing evenly, or by always answering the most frequent class.

    >>> chance_of(np.array([0, 0, 0, 1]), num_classes=2)
    0.75
    """
    known = targets[targets >= 0]
    return max(1 / num_classes, _most_common(known)[1] / len(known)) if len(known) else 1 / num_classes


def is_constant(predictions: IntArray, targets: IntArray) -> bool:
    """Whether nearly all predictions are one class, and the targets are not."""
    if len(predictions) < FEWEST:
        return False
    common, count = _most_common(predictions)
    return bool(count >= ONE_CLASS * len(predictions) and np.mean(targets == common) < 0.9)


def is_at_chance(num_right: int, n: int, *, chance: float) -> bool:
    """Whether guessing gives as many right answers, and a model half-way between it and perfection hardly so few."""
    from scipy.special import bdtr, bdtrc

    as_many = bdtrc(num_right - 1, n, chance) if num_right else 1.0
    return bool(as_many > LEVEL and bdtr(num_right, n, (1 + chance) / 2) < LEVEL)


def _most_common(values: IntArray) -> tuple[int, int]:
    found, counts = np.unique(values, return_counts=True)
    return int(found[counts.argmax()]), int(counts.max())
