"""What is held out of the fit split where a data set has no validation split."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import eval_settings.digits
import models.digits  # noqa: F401  (registers the models)
from registry import registry
from testbed.errors import DataError
from testbed.training.holdout import held_out_indices, learning_samples
from testbed.training.recipe import Recipe
from testbed.training.train import train

DIGITS = registry.dataset("digits")
WITHOUT = replace(DIGITS, splits=("train", "test"))
LINEAR = registry.model("digits-linear", "digits")
FIT = eval_settings.digits.load_digits_split("train")


def test_a_tenth_is_held_out_and_the_rest_is_learned_from():
    learning = learning_samples(WITHOUT, Recipe(), data_root=None)
    held_out, rest = held_out_indices(FIT, fraction=0.1)
    assert (len(learning.fit), len(learning.validation)) == (900, 100)
    assert sorted([*held_out, *rest]) == list(range(1000))
    assert np.array_equal(learning.indices, rest)
    for part, indices in ((learning.fit, rest), (learning.validation, held_out)):
        assert np.array_equal(part.items, FIT.items[indices])
        assert np.array_equal(part.targets, FIT.targets[indices])
        assert part.sample_ids == tuple(f"train/{index}" for index in indices)


def test_held_out_images_are_a_sample_of_all_classes_and_the_same_every_time():
    first, again = (held_out_indices(FIT, fraction=0.1)[0] for _ in range(2))
    assert np.array_equal(first, again)
    assert np.bincount(FIT.targets[first], minlength=10).min() >= 3  # 10 expected
    assert 300 < first.mean() < 700


@pytest.mark.parametrize(
    ("dataset", "recipe", "sizes"),
    [(DIGITS, Recipe(), (1000, 200)), (WITHOUT, Recipe(keep="last"), (1000, None)),
     (WITHOUT, Recipe(validation_fraction=0.25), (750, 250))],
)  # fmt: skip
def test_a_validation_split_and_the_last_epoch_need_no_images_held_out(dataset, recipe, sizes):
    learning = learning_samples(dataset, recipe, data_root=None)
    assert (len(learning.fit), learning.validation and len(learning.validation)) == sizes


def test_held_out_images_decide_and_are_not_learned_from():
    def network(change):
        def loader(split):
            samples = eval_settings.digits.load_digits_split(split)
            return replace(samples, items=change(samples.items)) if split == "train" else samples

        trained = train(LINEAR, replace(WITHOUT, loader=loader), Recipe(epochs=1), seed=0)
        return trained, torch.cat([value.flatten() for value in trained.network.state_dict().values()])

    def blacken(items):
        return np.where(np.isin(np.arange(1000), held_out_indices(FIT, fraction=0.1)[0])[:, None, None], 0, items)

    usual, parameters = network(lambda items: items)
    changed, same_parameters = network(blacken)
    assert torch.equal(parameters, same_parameters)
    assert (usual.num_fitted, usual.validation.n) == (900, 100)
    assert usual.validation.loss != changed.validation.loss
    assert set(usual.fingerprints) == {"train", "test"}


@pytest.mark.parametrize(("size", "fraction"), [(4, 0.1), (4, 0.9)])
def test_too_few_images_are_told_with_two_ways_out(size, fraction):
    few = replace(FIT, items=FIT.items[:size], targets=FIT.targets[:size], sample_ids=FIT.sample_ids[:size])
    with pytest.raises(DataError, match=r"of the 4 samples of 'digits' \(train\).*--validation-fraction.*--keep last"):
        held_out_indices(few, fraction=fraction)
