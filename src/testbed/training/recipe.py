"""How a network is trained, as plain values: a published recipe is a row of `RECIPES`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from testbed.errors import DefinitionError, UnknownNameError, suggestion

Noise = Literal["none", "uniform-linf", "gaussian"]
Optimizer = Literal["adamw", "sgd"]
Keep = Literal["best", "last"]
_CHOICES = {"noise": get_args(Noise), "optimizer": get_args(Optimizer), "keep": get_args(Keep)}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Stochastic gradient steps on the cross-entropy of images that are moved, flipped and made noisy, in this order.

    Args:
        epochs: passes over the training images.
        learning_rate: the highest one.
        batch_size: images per step.
        weight_decay: of the optimizer.
        max_shift: each image is moved by up to this many pixels in each direction, zeros moving in; 0 for none.
        flip: every second image, at random, is mirrored left to right.
        noise: 'none'; 'uniform-linf', within [0, 1] ('truncate'); or 'gaussian', clipped to [0, 1].
        epsilon: radius of uniform-linf, in [0, 1] pixel units.
        sigma: standard deviation of gaussian, in [0, 1] pixel units.
        optimizer: 'adamw', whose weight decay is decoupled from the gradient; or 'sgd' with momentum 0.9, where it is
            part of the gradient.
        stages: each (share, factor): for this share of the epochs the rate is factor * learning_rate. Without any, one
            cycle over all steps.
        resets_momentum: whether every epoch starts with a new optimizer, which remembers no gradient.
        keep: 'best', the epoch with the best clean accuracy on images that are not learned from; or 'last'.
        validation_fraction: with 'best', the part of the fit split that is held out where a data set has no split
            'validation'.
    """

    epochs: int = 60
    learning_rate: float = 1e-2
    batch_size: int = 50
    weight_decay: float = 5e-4
    max_shift: int = 0
    flip: bool = False
    noise: Noise = "none"
    epsilon: float = 0.1
    sigma: float = 0.1
    optimizer: Optimizer = "adamw"
    stages: tuple[tuple[int, float], ...] = ()
    resets_momentum: bool = False
    keep: Keep = "best"
    validation_fraction: float = 0.1

    def __post_init__(self) -> None:
        for name, lowest in (("epochs", 1), ("batch_size", 1), ("max_shift", 0)):
            self._check(name, getattr(self, name) >= lowest, f"{lowest} or more")
        for name in ("weight_decay", "epsilon", "sigma"):
            self._check(name, 0 <= getattr(self, name) < math.inf, "0 or a positive number")
        for name, choices in _CHOICES.items():
            self._check(name, getattr(self, name) in choices, f"one of {', '.join(choices)}")
        self._check("learning_rate", 0 < self.learning_rate < math.inf, "a positive number")
        self._check("validation_fraction", 0 < self.validation_fraction < 1, "between 0 and 1")
        is_positive = all(share > 0 and 0 < factor < math.inf for share, factor in self.stages)
        self._check("stages", is_positive, "pairs of positive numbers")

    def _check(self, name: str, is_right: bool, allowed: str) -> None:
        if not is_right:
            raise DefinitionError(f"Recipe has {name} {getattr(self, name)!r}. It must be {allowed}.")

    def rate_factors(self) -> list[float]:
        """By epoch, what `learning_rate` is multiplied by; an empty list where the rate goes through one cycle."""
        factors = [factor for share, factor in self.stages for _ in range(share)]
        return [factors[epoch * len(factors) // self.epochs] for epoch in range(self.epochs) if factors]


DEFAULT_RECIPE = "one-cycle"
RECIPES = {
    DEFAULT_RECIPE: Recipe(),
    # Siedel et al. 2022 and their code: epsilon is half the minimal class separation of CIFAR-10, 54/255
    "mscr-cifar10": Recipe(
        epochs=30,
        learning_rate=0.01,
        batch_size=32,
        weight_decay=5e-4,
        max_shift=4,
        flip=True,
        noise="uniform-linf",
        epsilon=27 / 255,
        optimizer="sgd",
        stages=((20, 1.0), (5, 0.2), (5, 0.04)),
        resets_momentum=True,
        keep="last",
    ),
}


def recipe_named(name: str, **changes: Any) -> Recipe:
    """The recipe `name` with the values in `changes` in place of its own; those that are None change nothing.

    Raises:
        UnknownNameError: there is no such recipe.
        DefinitionError: a value makes no sense.
    """
    if name not in RECIPES:
        parts = (f"Unknown recipe '{name}'.", suggestion(name, RECIPES), f"All recipes: {', '.join(RECIPES)}.")
        raise UnknownNameError(" ".join(filter(None, parts)))
    return replace(RECIPES[name], **{field: value for field, value in changes.items() if value is not None})
