"""What an examination asks of a model before the images of a setting, whoever answers."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from testbed.doctor.finding import Truth
from testbed.doctor.hypotheses import Hypothesis, View
from testbed.metrics.steadiness import Tolerance
from testbed.records import IntArray

Logits = NDArray[np.float32]


class Patient(Protocol):
    """A model before the images of a setting."""

    @property
    def truth(self) -> Truth: ...

    @property
    def view(self) -> View: ...

    @property
    def tolerance(self) -> Tolerance:
        """What may differ between two answers to an image."""

    def hypotheses(self, view: View) -> list[Hypothesis]:
        """What may be wrong with a view."""

    def logits(self, view: View, positions: IntArray | None = None, *, batch_size: int | None = None) -> Logits:
        """Answers (n, classes) to the images at `positions`, batch by batch.

        Raises: TestbedError: the view does not work: the network takes no such images.
        """

    def evaluation_mode(self) -> bool:
        """Puts parts of the network that are in training mode into evaluation mode. Returns: whether there were any."""
