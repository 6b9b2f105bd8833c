"""The split of every run: scikit-learn's, and the same for ever."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from testbed.errors import DefinitionError
from testbed.run_split import RunSplit


@pytest.mark.parametrize(("num_samples", "seed"), [(4674, 0), (991, 1199), (7, 3)])
def test_the_split_is_that_of_scikit_learn(num_samples: int, seed: int) -> None:
    split = RunSplit(test_fraction=0.2)
    fit, test = train_test_split(np.arange(num_samples), test_size=0.2, random_state=seed)
    np.testing.assert_array_equal(split.test_indices(num_samples, seed=seed), test)
    np.testing.assert_array_equal(split.fit_indices(num_samples, seed=seed), fit)


def test_published_sizes_of_set_b() -> None:
    split = RunSplit(test_fraction=0.2)
    assert split.num_test(4674) == 935
    assert len(split.fit_indices(4674, seed=0)) == 3739


def test_a_limit_takes_the_first_of_the_same_test_samples_and_leaves_the_fit_alone() -> None:
    whole, limited = RunSplit(test_fraction=0.25), RunSplit(test_fraction=0.25, limit=3)
    np.testing.assert_array_equal(limited.test_indices(40, seed=5), whole.test_indices(40, seed=5)[:3])
    np.testing.assert_array_equal(limited.fit_indices(40, seed=5), whole.fit_indices(40, seed=5))


def test_positions_are_fixed_for_good() -> None:
    assert RunSplit(test_fraction=0.3).test_indices(10, seed=0).tolist() == [2, 8, 4]


@pytest.mark.parametrize("fraction", [0, 1, -0.1])
def test_a_fraction_outside_0_to_1_is_refused(fraction: float) -> None:
    with pytest.raises(DefinitionError, match="between 0 and 1"):
        RunSplit(test_fraction=fraction)


def test_a_setting_without_a_split_has_none() -> None:
    assert RunSplit.of_spec({"shift": None}) is None
    assert RunSplit.of_spec({"run_split": {"test_fraction": 0.2, "limit": None}}) == RunSplit(test_fraction=0.2)
