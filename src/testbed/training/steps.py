"""Gradient steps: the optimizer and the learning rates of a recipe, and one pass over the training images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from testbed.training.batches import Batches
from testbed.training.recipe import Recipe

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler

MOMENTUM = 0.9


class Steps:
    """Trains a network in place, epoch by epoch.

    Args:
        network: in any mode, on the device of the images.
        batches: with their recipe.
    """

    def __init__(self, network: nn.Module, batches: Batches) -> None:
        self._network, self._batches = network, batches
        self._optimizer = _optimizer(network, batches.recipe)
        self._schedule = _schedule(self._optimizer, batches.recipe, steps_per_epoch=batches.per_epoch)

    def run_epoch(self, epoch: int) -> float:
        """Takes the steps of an epoch, counted from 1; the mean loss of its batches in nats, each before its step."""
        from torch.autograd import backward
        from torch.nn.functional import cross_entropy

        if self._batches.recipe.resets_momentum:
            self._optimizer.state.clear()  # as a new optimizer: what it remembers of past gradients lies here
        self._network.train()
        losses = []
        for images, targets in self._batches.of_epoch(epoch):
            self._optimizer.zero_grad()
            loss = cross_entropy(self._network(images), targets)
            backward(loss)
            self._optimizer.step()
            self._schedule.step()
            losses.append(loss.detach())
        return float(sum(losses) / len(losses))


def _optimizer(network: nn.Module, recipe: Recipe) -> Optimizer:
    from torch.optim import SGD, AdamW

    parameters = network.parameters()
    if recipe.optimizer == "sgd":
        return SGD(parameters, lr=recipe.learning_rate, momentum=MOMENTUM, weight_decay=recipe.weight_decay)
    return AdamW(parameters, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)


def _schedule(optimizer: Optimizer, recipe: Recipe, *, steps_per_epoch: int) -> LRScheduler:
    from torch.optim.lr_scheduler import LambdaLR, OneCycleLR

    factors = recipe.rate_factors()
    if not factors:
        return OneCycleLR(optimizer, max_lr=recipe.learning_rate, total_steps=recipe.epochs * steps_per_epoch)
    last = len(factors) - 1  # the schedule also looks at the step after the last one
    return LambdaLR(optimizer, lambda step: factors[min(step // steps_per_epoch, last)])
