"""Whether answers depend on the images, and on nothing else: the pass they are asked in, or the others of a batch."""

from __future__ import annotations

import numpy as np

from testbed.doctor.finding import Finding, Truth, accuracy
from testbed.doctor.patient import Logits, Patient
from testbed.metrics.accuracy import predictions
from testbed.metrics.chance import is_at_chance, is_constant
from testbed.metrics.steadiness import Steadiness, steadiness
from testbed.records import IntArray

STEADY = 32  # images that are asked about more than once


def unsteady(patient: Patient) -> Finding | None:
    """What is wrong where the answer to an image depends on more than the image; None where nothing is.

    Its `after` is known where the network could be put right for the rest of the examination.
    """
    n = min(len(patient.truth.labels), STEADY)
    if n < 4 or patient.view.model.draws:
        return None
    first, repeated, mixed = _asked_again(patient, n)
    if repeated.is_steady and mixed.is_steady:
        return None
    truth, steady = patient.truth.part(np.arange(n)), None
    if patient.evaluation_mode():
        steady, *again = _asked_again(patient, n)
        steady = steady if all(found.is_steady for found in again) else None
    is_random = not repeated.is_steady
    shown = repeated if is_random else mixed
    words = "from one pass over the same images to the next" if is_random else "with the other images of its batch"
    cause = "as dropout in training mode does" if is_random else "as batch normalization in training mode does"
    return Finding(
        fault="training mode",
        words=f"The answer to an image changes {words}, {cause}: {shown.num_changed} of {shown.n} predictions "
        f"changed, and logits by up to {shown.change:.2g} of their standard deviation.",
        fix="Call .eval() on the network in classifier_loader, and nowhere .train(); a function such as "
        "torch.nn.functional.dropout needs training=False. If it is random on purpose: Model(stochastic=True).",
        before=accuracy(truth.right(predictions(first))),
        after=None if steady is None else accuracy(truth.right(predictions(steady))),
    )


def _asked_again(patient: Patient, n: int) -> tuple[Logits, Steadiness, Steadiness]:
    """Answers to the first n images; how they differ in a second pass; and how in other batches of the same size."""
    images = np.arange(n)
    mixed = np.argsort(images % 2, kind="stable")  # the even ones, then the odd ones
    first, again, other = (
        patient.logits(patient.view, positions, batch_size=n // 2) for positions in (images, images, mixed)
    )
    mixed_again = steadiness(first, other[np.argsort(mixed)], patient.tolerance)
    return first, steadiness(first, again, patient.tolerance), mixed_again


def useless(found: IntArray, truth: Truth) -> list[Finding]:
    """What is wrong with predictions (n,) that tell nothing about the images."""
    num_classes, right = len(truth.class_names), truth.right(found)
    if num_nonfinite := int(np.count_nonzero(found < 0)):
        words = f"{num_nonfinite} of {len(found)} answers are not finite (NaN or infinite)."
        fix = "Look at the weights and the range of the input; in 16 bits try --precision fp32."
        return [Finding(fault="answers that are no numbers", words=words, fix=fix, before=accuracy(right))]
    if is_constant(found, truth.targets):
        name = truth.class_names[int(np.bincount(found).argmax())]
        words = f"Whatever the image, the answer is the same class, '{name}'."
        fix = (
            "See that the weights were loaded (all keys of the checkpoint, none left out), and that the network is "
            "not saturated."
        )
        return [Finding(fault="constant answers", words=words, fix=fix, before=accuracy(right))]
    if is_at_chance(int(right.sum()), len(right), chance=1 / num_classes):
        words = "The answers are no better than chance, and nothing that was tried helps."
        fix = "See that the weights were loaded, and that they belong to these classes."
        return [Finding(fault="no better than chance", words=words, fix=fix, before=accuracy(right))]
    return []
