"""Whether a model answers the same images the same again: its answers may depend on the images alone. Imports torch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.model_base import Model
from testbed.engine.arithmetic import Arithmetic
from testbed.errors import DefinitionError
from testbed.metrics.steadiness import COARSE, EXACT, Tolerance, steadiness

NUM_KEPT = 8  # images
FEWEST = 2
EVERY = 5_000  # images that a model answers between two checks; with one at the end of a worker's turn, under 1 %
_ORDER = (6, 3, 0, 5, 2, 7, 4, 1)
_COARSE_TYPES = (torch.float16, torch.bfloat16)


class UnsteadyError(DefinitionError):
    """A model has answered the same images differently: nothing that it answered in this run can be relied on."""


class Repetition:
    """A few images that a model is asked about again and again, and what it answered first.

    Args:
        model: by name in what is said.
        ask: images to logits.
        images: (n, ...) that are kept; at least `FEWEST`, or nothing can be told.
        tolerance: how far two answers to an image may differ.
        padded_size: of a compiled network, which is given whole batches of this size alone.
    Raises: UnsteadyError: two answers to them, the second in other batches and another order, differ.
    """

    def __init__(
        self,
        model: Model,
        ask: Callable[[Tensor], NDArray[np.float32]],
        images: Tensor,
        tolerance: Tolerance,
        *,
        padded_size: int | None = None,
    ) -> None:
        self._model, self._ask, self._images, self._tolerance = model, ask, images, tolerance
        self._first = ask(images)
        self._num_since = 0
        order = [position for position in _ORDER if position < len(images)]
        self._every = EVERY if padded_size is None else max(EVERY, EVERY // NUM_KEPT * padded_size)
        half = len(order) // 2 if padded_size is None else len(order)
        parts = [ask(images[part]) for part in (order[:half], order[half:]) if part]
        self._compare(np.concatenate(parts)[np.argsort(order)], "in other batches and another order")

    @property
    def num_images(self) -> int:
        """How many images are kept."""
        return len(self._images)

    def answered(self, num_images: int) -> None:
        """Takes note of what the model has answered, and asks again now and then. Raises: UnsteadyError."""
        self._num_since += num_images
        if self._num_since >= self._every:
            self.check()

    def check(self) -> None:
        """Asks about half of the images once more. Raises: UnsteadyError: the answers are not the first ones."""
        if self._num_since:
            self._num_since = 0
            half = len(self._images) // 2
            self._compare(self._ask(self._images[:half]), "after it had answered others")

    def _compare(self, answers: NDArray[np.float32], how: str) -> None:
        found = steadiness(self._first[: len(answers)], answers, self._tolerance, spread_of=self._first)
        if found.is_steady:
            return
        raise UnsteadyError(
            f"the answers of '{self._model.name}' to the same {found.n} images changed when it was asked again {how}: "
            f"logits by up to {found.change:.2g} of their standard deviation, {found.num_changed} predictions. They "
            "depend on more than the image, as with dropout or batch statistics in training mode, parameters that are "
            "adapted or a counter, so that they differ with the number of workers. Call .eval() on every part of the "
            "network in classifier_loader, also on those in lists and wrappers. If it is random on purpose: "
            f"Model(stochastic=True), or --stochastic {self._model.name}; if it is to adapt to what it is shown: "
            'Model(adapts="per-evaluation").'
        )


def tolerance(arithmetic: Arithmetic, device: torch.device, network: object) -> Tolerance:
    """How far two answers to an image may differ by rounding alone."""
    is_exact = arithmetic.precision == "fp32" or (arithmetic.precision is None and device.type == "cpu")
    return EXACT if is_exact and not _is_coarse(network) else COARSE


def _is_coarse(network: object) -> bool:
    """Whether a network computes in 16 bits by itself, or in whole numbers scaled by what is in a batch."""
    if not isinstance(network, nn.Module):
        return False
    is_half = any(parameter.dtype in _COARSE_TYPES for parameter in network.parameters())
    return is_half or any("quantized" in type(module).__module__ for module in network.modules())
