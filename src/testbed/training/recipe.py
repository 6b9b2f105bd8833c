"""How a network is trained, as plain values: a published recipe is a row of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from testbed.errors import DefinitionError

Noise = Literal["none", "uniform-linf", "gaussian"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """AdamW on the cross-entropy, with one cycle of the learning rate.

    Args:
        epochs: passes over the training images.
        learning_rate: the highest of the cycle.
        batch_size: images per step.
        weight_decay: AdamW's, decoupled from the gradient.
        max_shift: each image is moved by up to this many pixels in each direction, zeros moving in; 0 for none.
        noise: 'none'; 'uniform-linf', within [0, 1] ('truncate'); or 'gaussian', clipped to [0, 1].
        epsilon: radius of uniform-linf, in [0, 1] pixel units.
        sigma: standard deviation of gaussian, in [0, 1] pixel units.
    """

    epochs: int = 60
    learning_rate: float = 1e-2
    batch_size: int = 50
    weight_decay: float = 5e-4
    max_shift: int = 0
    noise: Noise = "none"
    epsilon: float = 0.1
    sigma: float = 0.1

    def __post_init__(self) -> None:
        for name, lowest in (("epochs", 1), ("batch_size", 1), ("max_shift", 0)):
            if getattr(self, name) < lowest:
                raise DefinitionError(f"Recipe has {name} {getattr(self, name)}. It must be {lowest} or more.")
        if not 0 < self.learning_rate < math.inf:
            raise DefinitionError(f"Recipe has learning_rate {self.learning_rate}. It must be a positive number.")
        for name in ("weight_decay", "epsilon", "sigma"):
            if not 0 <= getattr(self, name) < math.inf:
                raise DefinitionError(f"Recipe has {name} {getattr(self, name)}. It must be 0 or a positive number.")
        if self.noise not in get_args(Noise):
            raise DefinitionError(f"Recipe has noise '{self.noise}'. Use one of {', '.join(get_args(Noise))}.")
