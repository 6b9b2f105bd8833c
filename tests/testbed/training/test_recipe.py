"""Recipes: the published one as it was published, and what makes no sense."""

from __future__ import annotations

from dataclasses import fields

import pytest
from train import main

from testbed.errors import DefinitionError, UnknownNameError
from testbed.training.recipe import RECIPES, Recipe, recipe_named

MSCR = RECIPES["mscr-cifar10"]


def test_published_recipe_has_its_three_stages_of_rates():
    """Siedel et al. 2022, their code: 20 epochs at 0.01, 5 at 0.002, 5 at 0.0004."""
    rates = [MSCR.learning_rate * factor for factor in MSCR.rate_factors()]
    assert rates == [0.01] * 20 + [0.002] * 5 + [0.0004] * 5


def test_published_recipe_is_otherwise_as_published():
    assert (MSCR.optimizer, MSCR.resets_momentum, MSCR.weight_decay, MSCR.batch_size) == ("sgd", True, 5e-4, 32)
    assert (MSCR.max_shift, MSCR.flip, MSCR.noise, MSCR.keep) == (4, True, "uniform-linf", "last")
    assert MSCR.epsilon == pytest.approx(0.10588236153125763, rel=1e-6)  # the published level, a rounded 27/255


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [(6, [1, 1, 1, 1, 0.2, 0.04]), (3, [1, 1, 0.2]), (1, [1]), (60, [1] * 40 + [0.2] * 10 + [0.04] * 10)],
)
def test_stages_keep_their_shares_of_another_number_of_epochs(epochs, expected):
    assert recipe_named("mscr-cifar10", epochs=epochs).rate_factors() == expected


def test_default_recipe_goes_through_one_cycle():
    assert Recipe().rate_factors() == []
    assert recipe_named("one-cycle") == Recipe()


def test_given_values_go_before_the_recipes_and_others_stay():
    changed = recipe_named("mscr-cifar10", epsilon=0.0, flip=False, batch_size=None)
    assert (changed.epsilon, changed.flip, changed.batch_size, changed.max_shift) == (0.0, False, 32, 4)


def test_unknown_recipe_is_told_with_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"Unknown recipe 'mscr-cifar'\. Did you mean mscr-cifar10\?.*one-cycle"):
        recipe_named("mscr-cifar")


@pytest.mark.parametrize(
    "values",
    [{"epochs": 0}, {"batch_size": 0}, {"max_shift": -1}, {"learning_rate": 0.0}, {"sigma": -1.0},
     {"epsilon": float("nan")}, {"noise": "pink"}, {"optimizer": "adam"}, {"keep": "first"},
     {"validation_fraction": 1.0}, {"stages": ((5, 0.0),)}, {"stages": ((0, 1.0),)}],
)  # fmt: skip
def test_recipes_that_make_no_sense_are_refused(values):
    with pytest.raises(DefinitionError, match=f"has {next(iter(values))}"):
        Recipe(**values)


def test_every_value_of_a_recipe_but_its_schedule_is_an_option():
    options = {option.name: option.default for option in main.params}
    for field in fields(Recipe):
        if field.name not in ("stages", "resets_momentum"):
            assert options[field.name] is None, "an option that is not given must leave the recipe's value"
