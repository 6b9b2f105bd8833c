"""A change of the view tried on an examination's images: those that are wrong without it first, and no more than it
takes to see that it cannot count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed.doctor.class_orders import Order, classes, learnt_order
from testbed.doctor.evidence import Try, least_images
from testbed.doctor.finding import Truth
from testbed.doctor.hypotheses import View
from testbed.doctor.patient import Logits, Patient
from testbed.doctor.telling import Advance
from testbed.errors import TestbedError
from testbed.metrics.accuracy import predictions
from testbed.records import IntArray

PIECE = 16  # images between two looks at whether it is worth going on
HOPELESS = 0.01  # chance of so few put right so far, below which a change is given up that would have to do better


@dataclass(frozen=True, kw_only=True, eq=False)
class Standard:
    """What a change is measured by.

    Args:
        truth: the right answers.
        outputs: (n,) the output with the largest logit without the change.
        before: (n,) whether each answer is right without it.
        orders: in which outputs may be read with it; None for the order that is assumed.
        may_learn: whether the images may suggest another order.
        num_tries: for the correction.
    """

    truth: Truth
    outputs: IntArray
    before: NDArray[np.bool_]
    orders: Sequence[Order | None]
    may_learn: bool
    num_tries: int


def ask_all(patient: Patient, advance: Advance) -> Logits:
    """Answers (n, classes) to all images as the model is defined. Raises: TestbedError: it does not work."""
    found = []
    for positions in _pieces(np.arange(len(patient.truth.labels))):
        found.append(patient.logits(patient.view, positions))
        advance(len(positions))
    return np.concatenate(found)


def ask(patient: Patient, view: View, standard: Standard, *, least_gain: float, advance: Advance) -> Logits | None:
    """Answers (n, classes) under another view; None where it does not work, or cannot count.

    Args:
        least_gain: accuracy that the change must gain.
        advance: is told how many images more were asked about.
    """
    wrong, right = np.flatnonzero(~standard.before), np.flatnonzero(standard.before)
    seen, found = np.arange(0), np.zeros((0, len(standard.truth.class_names)), np.float32)
    with suppress(TestbedError):
        for positions in (*_pieces(wrong), *_pieces(right)):
            if not _is_worth_it(standard, seen, predictions(found), least_gain):
                return None
            found = np.concatenate([found, patient.logits(view, positions)])
            seen = np.concatenate([seen, positions])
            advance(len(positions))
        return found[np.argsort(seen)]
    return None


def _pieces(positions: IntArray) -> Iterator[IntArray]:
    for start in range(0, len(positions), PIECE):
        yield positions[start : start + PIECE]


def _is_worth_it(standard: Standard, seen: IntArray, outputs: IntArray, least_gain: float) -> bool:
    """Whether a change would count if it had all other images right, and helps with enough so far to hope for it."""
    truth = standard.truth.part(seen)
    read = [truth.right(outputs if order is None else classes(outputs, order)) for order in standard.orders]
    gained = max(int(right.sum()) for right in read)
    if standard.may_learn:
        read.append(_best_right(outputs, truth))
        gained = max(gained, int(read[-1].sum()) - int(_best_right(standard.outputs[seen], truth).sum()))
    if not standard.before[seen].any() and _is_hopeless(standard, gained, len(seen), least_gain):
        return False
    return any(_could_count(standard, seen, right, least_gain) for right in read)


def _is_hopeless(standard: Standard, gained: int, num_seen: int, least_gain: float) -> bool:
    """Whether a change that just counts would hardly put so few of the wrong images right that were asked about."""
    from scipy.special import bdtr

    n, num_wrong = len(standard.before), int(np.count_nonzero(~standard.before))
    needed = max(least_images(n, num_tries=standard.num_tries), math.ceil(least_gain * n))
    return bool(num_wrong > needed and bdtr(max(gained, 0), num_seen, needed / num_wrong) < HOPELESS)


def _best_right(outputs: IntArray, truth: Truth) -> NDArray[np.bool_]:
    """Whether each answer is right in the order of the outputs that suits these answers best."""
    order = learnt_order(outputs, truth.targets, num_classes=len(truth.class_names))
    return truth.right(classes(outputs, order))


def _could_count(standard: Standard, seen: IntArray, right: NDArray[np.bool_], least_gain: float) -> bool:
    after = np.ones(len(standard.before), bool)
    after[seen] = right
    return Try(before=standard.before, after=after, least_gain=least_gain).counts(standard.num_tries)
