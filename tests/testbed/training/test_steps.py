"""Gradient steps against the same steps written out by hand, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy

import eval_settings.digits
import models.digits
from models._architecture import build_architecture
from registry import registry
from testbed.randomness import seeded_globals, stream_key
from testbed.training.batches import Batches, images_tensor
from testbed.training.recipe import RECIPES, Recipe
from testbed.training.train import train

LINEAR = registry.model("digits-linear", "digits")
DIGITS = registry.dataset("digits")
CYCLE = Recipe(epochs=3, noise="uniform-linf", max_shift=1, keep="last")
STAGES = replace(RECIPES["mscr-cifar10"], epochs=3, max_shift=1)  # two epochs at the full rate, one at a fifth


def trained(recipe):
    return train(LINEAR, DIGITS, recipe, seed=0).network.state_dict()


def by_hand(recipe, optimizer_of_epoch, after_step=lambda: None):
    """The network after the recipe's epochs, with a given optimizer in each of them."""
    fit = eval_settings.digits.load_digits_split("train")
    batches = Batches(
        images=images_tensor(fit), targets=torch.from_numpy(fit.targets).long(), sample_indices=np.arange(len(fit)),
        recipe=recipe, seed=0, dataset="digits",
    )  # fmt: skip
    with seeded_globals(stream_key(0, purpose="train", dataset="digits", stream="init")):
        network = build_architecture(LINEAR.arch)
    for epoch in range(1, recipe.epochs + 1):
        optimizer = optimizer_of_epoch(epoch, network)
        for images, targets in batches.of_epoch(epoch):
            optimizer.zero_grad()
            cross_entropy(network(images), targets).backward()
            optimizer.step()
            after_step()
    return network.state_dict()


def are_equal(first, second):
    return all(torch.equal(value, second[name]) for name, value in first.items())


def test_default_recipe_is_adamw_under_one_cycle():
    made = []

    def once(epoch, network):
        if not made:
            made.append(torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=5e-4))
            made.append(torch.optim.lr_scheduler.OneCycleLR(made[0], max_lr=0.01, total_steps=3 * 20))
        return made[0]

    assert are_equal(trained(CYCLE), by_hand(CYCLE, once, lambda: made[1].step()))


def sgd(network, rate):
    return torch.optim.SGD(network.parameters(), lr=rate, momentum=0.9, weight_decay=5e-4)


def test_published_recipe_is_a_new_sgd_in_every_epoch_at_the_rate_of_its_stage():
    rates = {1: 0.01, 2: 0.01, 3: 0.002}
    expected = by_hand(STAGES, lambda epoch, network: sgd(network, rates[epoch]))
    assert are_equal(trained(STAGES), expected)


def test_momentum_that_is_kept_gives_another_network():
    kept = []

    def same(epoch, network):
        kept[:] = kept or [sgd(network, 0.01)]
        kept[0].param_groups[0]["lr"] = 0.002 if epoch == 3 else 0.01
        return kept[0]

    expected = by_hand(STAGES, same)
    assert are_equal(trained(replace(STAGES, resets_momentum=False)), expected)
    assert not are_equal(trained(STAGES), expected)


def test_committed_weights_are_those_of_the_default_recipe():
    """To a tolerance that other processors and versions of torch stay within; another recipe does not."""
    again = trained(Recipe())
    committed = load_file(Path(models.digits.WEIGHTS) / "digits-linear.safetensors")
    assert max(float((again[name] - value).abs().max()) for name, value in committed.items()) < 1e-3
    assert float(committed["1.weight"].abs().max()) > 0.5


def test_last_epoch_is_kept_without_looking_at_validation_images():
    seen = []
    recipe = replace(CYCLE, learning_rate=0.1)
    last = train(LINEAR, DIGITS, recipe, seed=0, on_epoch=lambda loss, validation: seen.append((loss, validation)))
    assert (last.epoch, last.validation, last.num_fitted) == (3, None, 1000)
    assert set(last.fingerprints) == {"train", "test"}
    assert [validation for _, validation in seen] == [None] * 3
    assert seen[-1][0] < seen[0][0] == pytest.approx(np.log(10), rel=0.5)
