"""What the doctor found to be wrong: the fault, its fix, and the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from testbed.metrics.accuracy import percent
from testbed.metrics.intervals import wilson
from testbed.records import IntArray, MetricValue

Fault = Literal[
    "class order", "channel order", "missing normalization", "double normalization", "other normalization",
    "pixel range", "inverted pixels", "transposed images", "crop or size", "training mode", "constant answers",
    "answers that are no numbers", "no better than chance",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong.

    Args:
        fault: its kind.
        words: what is wrong, a sentence.
        fix: what to do, a sentence.
        before, after: top-1 accuracy on the same images without and with the fix; None where that was not tried.
        p_value: of the fix being no better, corrected for all that was tried; None where nothing was compared.
        alternatives: other changes that are as good on these images, in a few words each.
        order: of the outputs: for each class the output that stands for it; None where that is as it should be.
        is_joint: the fix was tried together with that of another finding, and the numbers are those of both.
    """

    fault: Fault
    words: str
    fix: str
    before: MetricValue | None = None
    after: MetricValue | None = None
    p_value: float | None = None
    alternatives: tuple[str, ...] = ()
    order: tuple[int, ...] | None = None
    is_joint: bool = False

    def record(self) -> dict[str, Any]:
        """The finding as plain values."""
        numbers = {"before": self.before, "after": self.after}
        shown = {
            name: value and {"accuracy": value.value, "ci_low": value.ci_low, "ci_high": value.ci_high, "n": value.n}
            for name, value in numbers.items()
        }
        words: dict[str, Any] = {
            "fault": self.fault,
            "what": self.words,
            "fix": self.fix,
            "alternatives": list(self.alternatives),
        }
        if self.order is not None:
            words["output_of_class"] = list(self.order)
        return {**words, **shown, "p_value": self.p_value}


@dataclass(frozen=True, eq=False)
class Truth:
    """What the right answers to the images are.

    Args:
        labels: (n, most) the classes that count as right for each image, the target first; filled up with -1.
        class_names: in the order in which answers are read.
    """

    labels: IntArray
    class_names: tuple[str, ...]

    @property
    def targets(self) -> IntArray:
        """(n,) the target of each image; -1 for a class that does not count."""
        return np.asarray(self.labels[:, 0])

    def right(self, predictions: IntArray) -> NDArray[np.bool_]:
        """(n,) whether each prediction is among the right classes. A prediction of -1 never is."""
        is_right = (self.labels == predictions[:, None]) & (self.labels >= 0)
        return np.asarray(is_right.any(axis=1))

    def part(self, positions: IntArray) -> Truth:
        """That of some of the images."""
        return Truth(self.labels[positions], self.class_names)


def accuracy(right: NDArray[np.bool_]) -> MetricValue:
    """Percent of images that are right, with Wilson's interval."""
    num_right, n = int(np.count_nonzero(right)), len(right)
    return percent("top1", num_right / n, wilson(num_right, n), n=n)
