"""Orders in which a model's outputs may stand for the classes: those that sorting mistakes make, and one learnt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.records import IntArray

Order = NDArray[np.int64]  # of outputs: order[k] is the output that stands for class k
_DIGITS = re.compile(r"(\d+)")
_LISTED = 4  # classes that are named; there may be a thousand


@dataclass(frozen=True, eq=False)
class NamedOrder:
    """An order of the outputs, and what it is."""

    words: str
    order: Order


def named_orders(class_names: Sequence[str]) -> list[NamedOrder]:
    """The orders that people's mistakes make of these classes, each once, without the order that is assumed.

    Class folders and class numbers are sorted as text where they should be sorted as numbers, or the other way round;
    upper case goes before lower case or not; counting starts at 1.
    """
    num_classes = len(class_names)
    numbers = np.arange(num_classes)
    as_text = np.array(sorted(range(num_classes), key=str))
    found = [
        NamedOrder("in the order of the class names as text", _by(class_names, lambda name: name)),
        NamedOrder("in the order of the class names, numbers in them as numbers", _by(class_names, _natural)),
        NamedOrder("in the order of the class names without regard to case", _by(class_names, str.lower)),
        NamedOrder("in the order of the class numbers as text (0, 1, 10, 11, ..., 2, 20, ...)", np.argsort(as_text)),
        NamedOrder("in the order that undoes sorting the class numbers as text", as_text),
        NamedOrder("one place too late (as if output 0 were no class)", np.roll(numbers, -1)),
        NamedOrder("one place too early", np.roll(numbers, 1)),
        NamedOrder("in reversed order", numbers[::-1].copy()),
    ]
    distinct: dict[tuple[int, ...], NamedOrder] = {}
    for one in found:
        distinct.setdefault(tuple(one.order.tolist()), one)
    distinct.pop(tuple(range(num_classes)), None)
    return list(distinct.values())


def _by(class_names: Sequence[str], key: Any) -> Order:
    """The outputs' order where output j stands for the j-th of the names, sorted by `key`."""
    by_name = sorted(range(len(class_names)), key=lambda index: key(class_names[index]))
    return np.argsort(np.array(by_name))


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts numbers within names as numbers, before any other text."""
    parts = _DIGITS.split(name)
    return [(0, int(part), "") if part.isdecimal() and part.isascii() else (1, 0, part) for part in parts]


def learnt_order(outputs: IntArray, targets: IntArray, *, num_classes: int) -> Order:
    """The order of the outputs under which most answers are right.

    An output whose answers tell nothing stays at its place.

    Args:
        outputs: (n,) the output with the largest logit; -1 for none.
        targets: (n,) class indices; -1 for a class that does not count.
    """
    from scipy.optimize import linear_sum_assignment

    is_known = (outputs >= 0) & (targets >= 0)
    seen, places = np.unique(np.stack([targets[is_known], outputs[is_known]]), return_inverse=True)
    counts = np.diag(np.full(len(seen), 0.5))  # less than an image
    np.add.at(counts, tuple(places.reshape(2, -1)), 1)
    order = np.arange(num_classes)
    order[seen] = seen[linear_sum_assignment(counts, maximize=True)[1]]
    return order


def backed(order: Order, outputs: IntArray, targets: IntArray) -> NDArray[np.bool_]:
    """(classes,) whether an order moves each class, and an image that it was learnt from says so. Args: as above."""
    is_backed = np.zeros(len(order), bool)
    is_known = (outputs >= 0) & (targets >= 0)
    is_backed[targets[is_known][order[targets[is_known]] == outputs[is_known]]] = True
    return np.asarray(is_backed & (order != np.arange(len(order))))


def classes(outputs: IntArray, order: Order) -> IntArray:
    """The classes (n,) that outputs stand for under an order; -1 stays -1."""
    places = np.argsort(order)
    return np.where(outputs >= 0, places[outputs], -1)


def moved_words(order: Order, class_names: Sequence[str]) -> str:
    """The classes that an order moves, in words."""
    moved = np.flatnonzero(order != np.arange(len(order)))
    shown = [f"output {order[index]} is class '{class_names[index]}'" for index in moved[:_LISTED]]
    more = f", and so on for {len(moved)} classes" if len(moved) > _LISTED else ""
    return f"{', '.join(shown)}{more}"
