"""Sign flips, McNemar and Holm against exact counts and published examples."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_1samp

from testbed.errors import DataError
from testbed.metrics import permutation
from testbed.metrics.permutation import holm, mcnemar_p, sign_flip_p


def brute_force(values: np.ndarray, alternative: str) -> float:
    sums = np.array([np.dot(signs, values) for signs in product((1, -1), repeat=len(values))])
    if alternative == "two-sided":
        return float(np.mean(np.abs(sums) >= abs(values.sum()) - 1e-9))
    return float(np.mean(sums >= values.sum() - 1e-9 if alternative == "greater" else sums <= values.sum() + 1e-9))


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_few_differences_are_enumerated(alternative: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.choice([-0.3, -0.1, 0.1, 0.2, 1], rng.integers(1, 10))
        with_zeros = np.insert(values, 0, np.zeros(5))
        assert sign_flip_p(with_zeros, key=0, alternative=alternative) == brute_force(values, alternative)  # type: ignore[arg-type]


def test_six_images_one_way_are_significant_and_five_are_not() -> None:
    assert sign_flip_p(np.ones(6), key=0) == 2 / 2**6
    assert sign_flip_p(np.ones(5), key=0) == 2 / 2**5


def test_models_that_do_the_same_do_not_differ() -> None:
    assert sign_flip_p(np.zeros(9), key=0) == mcnemar_p(np.ones(9), np.ones(9)) == 1


def test_many_differences_are_sampled_by_key() -> None:
    values = np.random.default_rng(1).normal(0.1, 1, 500)
    found = sign_flip_p(values, key=7)
    assert found == sign_flip_p(values, key=7)
    assert found == pytest.approx(ttest_1samp(values, 0).pvalue, abs=0.02)
    assert {sign_flip_p(values, key=key) for key in range(5)} != {found}
    assert sign_flip_p(np.ones(100), key=1) == 1 / 10_000


def test_sampling_agrees_with_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(2).normal(0.3, 1, 15)
    exact = sign_flip_p(values, key=0)
    monkeypatch.setattr(permutation, "MOST_ENUMERATED", 3)
    monkeypatch.setattr(permutation, "_BLOCK", 64 * 1000)  # several blocks
    assert sign_flip_p(values, key=0) == pytest.approx(exact, abs=4 * np.sqrt(exact / 9_999))


def test_sampled_signs_are_fair_and_of_a_known_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first word of Philox with key 0 decides the first 64 signs, lowest bit of the lowest byte last."""
    monkeypatch.setattr(permutation, "NUM_FLIPS", 4000)
    rows = np.concatenate([permutation._random_sums(np.eye(70)[index], 0)[0][:, None] for index in (0, 69)], axis=1)
    assert set(np.unique(rows)) == {-1.0, 1.0}
    assert np.abs(rows.mean(axis=0)).max() < 4 / np.sqrt(4000)
    assert abs(np.mean(rows[:, 0] * rows[:, 1])) < 4 / np.sqrt(4000)


@pytest.mark.parametrize(("wins", "losses"), [(5, 1), (0, 4), (12, 7), (101, 59)])
def test_mcnemar_is_the_binomial_test_of_the_images_with_one_winner(wins: int, losses: int) -> None:
    first = np.repeat([1, 0, 1, 0], [wins, losses, 30, 9]).astype(bool)
    second = np.repeat([0, 1, 1, 0], [wins, losses, 30, 9]).astype(bool)
    for alternative in ("two-sided", "greater", "less"):
        exact = binomtest(wins, wins + losses, alternative=alternative).pvalue
        assert mcnemar_p(first, second, alternative=alternative) == pytest.approx(exact)
    if wins + losses <= 20:
        assert mcnemar_p(first, second) == pytest.approx(sign_flip_p(first * 1.0 - second, key=0))


def test_holm_multiplies_by_what_is_left_and_never_falls() -> None:
    # 0.01 x 4; 0.02 x 3 = 0.06; 0.03 x 2 = 0.06; 0.5 x 1
    assert holm([0.02, 0.5, 0.01, 0.03]).tolist() == pytest.approx([0.06, 0.5, 0.04, 0.06])
    assert holm([0.9, 0.8]).tolist() == [1, 1]
    assert holm([]).tolist() == []
    with pytest.raises(DataError, match="between 0 and 1"):
        holm([1.2])


def test_sign_flips_reject_five_percent_of_models_that_are_alike() -> None:
    """Draws of one image are no more than one image: 400 experiments, standard error 1.1 points."""
    rng = np.random.default_rng(3)
    hard = rng.random((400, 300)) < 0.1
    rates = np.where(hard, rng.random((400, 300)), 0)
    pairs = [rng.binomial(10, np.where(rng.random((400, 300)) < 0.5, rates, 0)) / 10 for _ in range(2)]
    rejected = [sign_flip_p(first - second, key=0) <= 0.05 for first, second in zip(*pairs, strict=True)]
    assert 0.02 < np.mean(rejected) < 0.085
