"""The examination of one model on the images of one setting: what is wrong with how it is shown and read.

One change at a time is tried, the one that helps most beyond chance is kept, and the search goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.doctor.asking import Standard, ask, ask_all
from testbed.doctor.behaviour import unsteady, useless
from testbed.doctor.class_orders import NamedOrder, backed, classes, learnt_order, moved_words, named_orders
from testbed.doctor.evidence import LEAST_GAIN, Try, alike, best, least_images
from testbed.doctor.finding import Finding, Truth, accuracy
from testbed.doctor.hypotheses import Hypothesis, View
from testbed.doctor.patient import Logits, Patient
from testbed.doctor.telling import Telling
from testbed.metrics.accuracy import predictions
from testbed.metrics.chance import is_at_chance
from testbed.records import IntArray, MetricValue

MOST_FAULTS = 3  # at once
LEAST_RECALL = 0.2  # of the images of classes that an order moves
LEAST_MOVED = 2  # classes whose images say that an order moves them: one alone may be taken for a class like it
SHOWN = 20  # outputs whose order is written out
POOR = 0.5  # accuracy below which two changes at once are tried


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What an examination found.

    Args:
        accuracy: as the model is defined.
        findings: what is wrong, the largest first; each stands on the fixes of those before it.
        num_tries: changes that were tried.
        num_needed: images more that a change would have to have right; 0 where as many are wrong, or none matters.
    """

    accuracy: MetricValue
    findings: tuple[Finding, ...]
    num_tries: int
    num_needed: int = 0


@dataclass(eq=False)
class _Search:
    """The state of the search: the best view so far, how its answers are read, and what was found."""

    patient: Patient
    view: View
    logits: Logits
    order: NDArray[np.int64] | None = None
    findings: list[Finding] = field(default_factory=list)
    num_tries: int = 0
    num_needed: int = 0
    is_quiet: bool = True

    @property
    def truth(self) -> Truth:
        return self.patient.truth

    def predictions(self) -> IntArray:
        """The classes that are predicted."""
        return _read(self.logits, self.order)

    def right(self) -> NDArray[np.bool_]:
        """(n,) whether each of them is right."""
        return self.truth.right(self.predictions())


@dataclass(frozen=True, kw_only=True, eq=False)
class _Change:
    """What was tried: another view, another order of the outputs, or both."""

    hypothesis: Hypothesis | None = None
    named: NamedOrder | None = None
    logits: Logits | None = None


def examine(patient: Patient, *, is_quiet: bool = True) -> Examination:
    """What is wrong with how a model is shown images and how its answers are read.

    Args:
        is_quiet: does not tell on stderr what it is at.
    Raises: TestbedError: the model does not work on images as it is defined.
    """
    num_images = len(patient.truth.labels)
    with (
        Telling(total=num_images, is_quiet=is_quiet) as telling,
        telling.part("as defined", total=num_images) as advance,
    ):
        changing = unsteady(patient)
        search = _Search(patient, patient.view, ask_all(patient, advance), is_quiet=is_quiet)
    before = accuracy(search.right())
    if changing is not None and changing.after is None:  # answers that change anyway tell nothing of other changes
        return Examination(accuracy=before, findings=(changing,), num_tries=0)
    while len(search.findings) < MOST_FAULTS and _step(search):
        pass
    found = (*((changing,) if changing else ()), *search.findings, *useless(search.predictions(), search.truth))
    return Examination(accuracy=before, findings=found, num_tries=search.num_tries, num_needed=search.num_needed)


def _step(search: _Search) -> bool:
    """Whether a change was found that helps; the search then goes on from there."""
    before = search.right()
    if np.mean(~before) < LEAST_GAIN:  # nothing can gain enough
        return False
    is_poor = np.mean(before) < POOR or is_at_chance(
        int(before.sum()), len(before), chance=1 / len(search.truth.class_names)
    )
    orders = named_orders(search.truth.class_names) if search.order is None else []
    options = search.patient.hypotheses(search.view)
    num_orders = len(orders) + 1 if search.order is None else 0
    num_tries = (len(options) + 1) * (num_orders + 1) - 1 if is_poor else len(options) + num_orders
    if not Try(before=before, after=np.ones_like(before)).counts(num_tries):
        search.num_needed = least_images(len(before), num_tries=num_tries)
        return False
    search.num_tries += num_tries
    standard = Standard(
        truth=search.truth,
        outputs=predictions(search.logits),
        before=before,
        orders=(search.order, *(named.order for named in orders if is_poor)),
        may_learn=is_poor and search.order is None,
        num_tries=num_tries,
    )
    tries = [*_of_orders(search, search.logits, None, orders)]
    for hypothesis, logits in _answered(search, options, standard):
        likelihood = _likelihood(logits, search.order, search.truth)
        right = search.truth.right(_read(logits, search.order))
        change = _Change(hypothesis=hypothesis, logits=logits)
        tries.append(Try(before=before, after=right, likelihood=likelihood, what=change,
                         least_gain=hypothesis.least_gain, plausibility=hypothesis.plausibility))  # fmt: skip
        if is_poor:
            tries.extend(_of_orders(search, logits, hypothesis, orders))
    chosen = best(tries, num_tries=num_tries)
    if chosen is None:
        return False
    _keep(search, chosen, alike(chosen, tries, num_tries=num_tries), num_tries)
    return True


def _answered(
    search: _Search, options: Sequence[Hypothesis], standard: Standard
) -> Iterator[tuple[Hypothesis, Logits]]:
    """Changes that work and may count, with the answers under them; tells how far it is."""
    n, num_options = len(standard.before), len(options)
    num_wrong = int(np.count_nonzero(~standard.before))
    with Telling(total=n * num_options, is_quiet=search.is_quiet) as telling:
        if options:
            telling.note(
                f"Trying {num_options} changes: up to {num_options} passes over {n} images, the {num_wrong} wrong ones "
                "first, and fewer where that tells enough."
            )
        for number, hypothesis in enumerate(options, 1):
            with telling.part(f"change {number} of {num_options}", total=n) as advance:
                logits = ask(
                    search.patient, hypothesis.view, standard, least_gain=hypothesis.least_gain, advance=advance
                )
            if logits is not None:
                yield hypothesis, logits


def _of_orders(
    search: _Search, logits: Logits, hypothesis: Hypothesis | None, orders: Sequence[NamedOrder]
) -> list[Try]:
    """Tries of other orders of the outputs: those with a name, and one that is learnt from half of the images."""
    if search.order is not None:
        return []
    truth, before, num_changes = search.truth, search.right(), 1 if hypothesis is None else 2
    tries = []
    for named in orders:
        change = _Change(hypothesis=hypothesis, named=named, logits=logits)
        right = truth.right(_read(logits, named.order))
        if not _is_often_right(right, truth.targets, named.order != np.arange(len(named.order))):
            continue
        likelihood = _likelihood(logits, named.order, truth)
        tries.append(Try(before=before, after=right, likelihood=likelihood, num_changes=num_changes, what=change))
    if (learnt := _learnt(search, logits, hypothesis, before, num_changes)) is not None:
        tries.append(learnt)
    return tries


def _learnt(
    search: _Search, logits: Logits, hypothesis: Hypothesis | None, before: NDArray[np.bool_], num_changes: int
) -> Try | None:
    """The order of the outputs that half of the images suggest, tried on the other half; None where it is no order."""
    outputs, truth, num_classes = predictions(logits), search.truth, len(search.truth.class_names)
    learning, tested = np.arange(0, len(before), 2), np.arange(1, len(before), 2)
    order = learnt_order(outputs[learning], truth.targets[learning], num_classes=num_classes)
    right = truth.part(tested).right(classes(outputs[tested], order))
    is_backed = backed(order, outputs[learning], truth.targets[learning])
    if np.count_nonzero(is_backed) < LEAST_MOVED or not _is_often_right(right, truth.targets[tested], is_backed):
        return None
    whole = learnt_order(outputs, truth.targets, num_classes=num_classes)
    named = NamedOrder(f"in another order: {moved_words(whole, truth.class_names)}", whole)
    change = _Change(hypothesis=hypothesis, named=named, logits=logits)
    return Try(before=before[tested], after=right, images=tested, num_changes=num_changes, what=change, plausibility=-1)


def _is_often_right(right: NDArray[np.bool_], targets: IntArray, is_moved: NDArray[np.bool_]) -> bool:
    """Whether a good part of the images whose class an order moves is right under it.

    Images that were chosen because models fail on them are taken for some classes more often than for their own, which
    makes other orders a little better without being anybody's.
    """
    of_moved = is_moved[targets] & (targets >= 0)
    return bool(of_moved.any() and np.mean(right[of_moved]) >= LEAST_RECALL)


def _keep(search: _Search, chosen: Try, others: Sequence[Try], num_tries: int) -> None:
    """Takes a change that helps into the view, and notes what was wrong."""
    change: _Change = chosen.what
    evidence: dict[str, Any] = {
        "before": accuracy(chosen.before), "after": accuracy(chosen.after), "p_value": chosen.p_value(num_tries),
        "is_joint": chosen.num_changes > 1,
    }  # fmt: skip
    if change.hypothesis is not None:
        found = change.hypothesis
        same = [other.what.hypothesis for other in others if other.what.named is None and other.what.hypothesis]
        alternatives = tuple(dict.fromkeys(one.change for one in same))[:3]
        search.findings.append(
            Finding(fault=found.fault, words=found.words, fix=found.fix, alternatives=alternatives, **evidence)
        )
        search.view = found.view
    if change.logits is not None:
        search.logits = change.logits
    if change.named is not None:
        search.order = change.named.order
        search.findings.append(_of_class_order(change.named, evidence))


def _of_class_order(named: NamedOrder, evidence: Mapping[str, Any]) -> Finding:
    order = tuple(map(int, named.order))
    columns = str(list(order)) if len(order) <= SHOWN else f"order (of {len(order)} outputs: see --json)"
    return Finding(
        fault="class order",
        words=f"The model's outputs are {named.words}.",
        fix=f"Give the Model a classify that returns model(images)[:, {columns}], or read the data set's classes in "
        "the order of the outputs (--class-order).",
        order=order,
        **evidence,
    )


def _read(logits: Logits, order: NDArray[np.int64] | None) -> IntArray:
    """The classes that are predicted, where outputs stand for classes in this order."""
    outputs = predictions(logits)
    return outputs if order is None else classes(outputs, order)


def _likelihood(logits: Logits, order: NDArray[np.int64] | None, truth: Truth) -> float:
    """Mean logarithm of the probability of the targets; the lowest there is where an answer is not finite."""
    values = logits if order is None else logits[:, order]
    known = truth.targets >= 0
    if not known.any() or not np.isfinite(values).all():
        return -float("inf")
    values = values[known].astype(np.float64)
    values = values - values.max(axis=1, keepdims=True)
    own = np.take_along_axis(values, truth.targets[known][:, None].astype(np.int64), axis=1)[:, 0]
    return float(np.mean(own - np.log(np.exp(values).sum(axis=1))))
