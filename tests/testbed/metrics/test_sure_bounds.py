"""Bounds that hold in any sample: exact values, exact error rates, and what draws and clusters may add."""

from __future__ import annotations

import json
from itertools import product
from math import comb, log
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import rel_entr

from testbed.metrics.sure_bounds import Rate, log_capital, lower_bound, upper_bound

SHARED = Path(__file__).resolve().parents[4] / "shared/expected/clopper_pearson_examples.json"


def images(values: list[float] | np.ndarray, *, single: bool = False) -> Rate:
    return Rate.of_units(values, 1.0, 1.0, is_single=single)


def flips(count: int, n: int, *, single: bool = False) -> Rate:
    return images((np.arange(n) < count).astype(float), single=single)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize(("alpha", "n"), [(0.05, 299), (0.01, 459)])
def test_without_a_flip_one_percent_takes_so_many_images_whatever_the_draws(single: bool, alpha: float, n: int) -> None:
    """0.99^n <= alpha for n >= ln(alpha) / ln(0.99) = 298.07 and 458.2."""
    assert upper_bound(flips(0, n, single=single), alpha) <= 0.01
    assert upper_bound(flips(0, n - 1, single=single), alpha) > 0.01
    assert upper_bound(flips(0, n, single=single), alpha) == pytest.approx(1 - alpha ** (1 / n), rel=1e-9)


# k, n, alpha of both sides, low, high: exact values, computed with 30 digits.
@pytest.mark.parametrize(
    ("k", "n", "alpha", "low", "high"),
    [
        (5, 10, 0.05, 0.18708602844739855, 0.8129139715526015),
        (6321, 10000, 0.005, 0.618442292936749, 0.6456093914022021),
        (1, 7500, 0.05, 3.375702033543718e-06, 0.0007426594110845504),
    ],
)
def test_single_draws_are_bounded_by_clopper_and_pearson(k: int, n: int, alpha: float, low: float, high: float) -> None:
    rate = flips(k, n, single=True)
    assert (lower_bound(rate, alpha / 2), upper_bound(rate, alpha / 2)) == pytest.approx((low, high), rel=1e-9)


def test_single_draws_give_all_shared_examples() -> None:
    if not SHARED.exists():
        pytest.skip(f"the shared examples are not there ({SHARED.name})")
    for case in json.loads(SHARED.read_text()):
        rate = flips(case["k"], case["n"], single=True)
        bounds = (lower_bound(rate, case["alpha"] / 2), upper_bound(rate, case["alpha"] / 2))
        assert bounds == pytest.approx((case["lo"], case["hi"]), rel=1e-9)


@pytest.mark.parametrize(("k", "n"), [(1, 100), (3, 100), (40, 100), (5, 5000)])
def test_draws_that_all_agree_give_hoeffdings_bound(k: int, n: int) -> None:
    def excess(bound: float) -> float:
        share = k / n
        return n * float(rel_entr(share, bound) + rel_entr(1 - share, 1 - bound)) - log(20)

    expected = brentq(excess, k / n + 1e-12, 1 - 1e-12, xtol=1e-14)
    assert upper_bound(flips(k, n), 0.05) == pytest.approx(expected, rel=1e-8)


def test_draws_that_differ_are_worth_more_than_draws_that_agree() -> None:
    agree, differ = flips(40, 400), images([0.1] * 400)
    assert agree.value == pytest.approx(differ.value)
    assert upper_bound(differ, 0.05) < upper_bound(agree, 0.05)
    assert lower_bound(differ, 0.05) > lower_bound(agree, 0.05)


def test_no_distribution_of_three_values_is_excluded_more_often_than_alpha() -> None:
    """Exactly, over all samples of six images with two draws, which flip in none, one or both."""
    n, alpha = 6, 0.2
    samples = [(zero, one, n - zero - one) for zero in range(n + 1) for one in range(n + 1 - zero)]
    uppers = {s: upper_bound(images([0] * s[0] + [0.5] * s[1] + [1] * s[2]), alpha) for s in samples}
    worst = 0.0
    for zero, one in product(np.linspace(0, 1, 41), repeat=2):
        if zero + one > 1:
            continue
        chances = (zero, one, max(0.0, 1 - zero - one))
        mean = 0.5 * chances[1] + chances[2]
        missed = sum(
            comb(n, s[0]) * comb(n - s[0], s[1]) * np.prod([p**c for p, c in zip(chances, s, strict=True)])
            for s in samples if uppers[s] < mean - 1e-9
        )  # fmt: skip
        worst = max(worst, float(missed))
    assert 0.1 < worst <= alpha


def test_the_capital_grows_with_what_is_bet_against() -> None:
    """So that what is excluded is everything above the bound."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        size = rng.uniform(0.2, 1, 8)
        whole = size * rng.uniform(0.2, 0.9, 8)
        rate = Rate.of_units(whole * rng.random(8) ** 3, whole, size, is_single=False)
        capital = log_capital(rate, np.linspace(0.01, 0.99, 40), 0.05)
        assert np.all(np.diff(capital) > 0)


def test_a_cluster_counts_as_one_unit_however_large() -> None:
    whole = Rate.of_units([0.0] * 20, [30] * 20, [30] * 20, is_single=False)
    assert upper_bound(whole, 0.05) == pytest.approx(1 - 0.05 ** (1 / 20))


def test_small_clusters_say_less_than_large_ones() -> None:
    sizes = np.array([30] * 20 + [3] * 20)
    mixed = Rate.of_units(np.zeros(40), sizes, sizes, is_single=False)
    assert 1 - 0.05 ** (1 / 40) < upper_bound(mixed, 0.05) < 1 - 0.05 ** (1 / 20)


@pytest.mark.parametrize("values", [[1.0] * 7, [0.5], [0.0, 1.0], [0.2, 0.2, 0.2]])
def test_bounds_hold_the_rate_and_have_width_in_the_smallest_samples(values: list[float]) -> None:
    rate = images(values)
    low, high = lower_bound(rate, 0.05), upper_bound(rate, 0.05)
    assert 0 <= low <= rate.value <= high <= 1
    assert high - low > 0.1


def test_arrays_give_what_their_rows_give() -> None:
    counts = np.array([[50.0, 2.0, 1.0], [10.0, 0.0, 4.0]])
    cells = (np.array([0.0, 0.5, 1.0]), np.ones(3), np.ones(3))
    whole = upper_bound(Rate(*cells, counts=counts, is_single=False), 0.05)
    for row, bound in zip(counts, whole, strict=True):
        assert upper_bound(Rate(*cells, counts=row, is_single=False), 0.05) == pytest.approx(bound)


def test_a_sample_scaled_is_the_sample_repeated() -> None:
    values = [0.0] * 20 + [0.3, 1.0]
    for single in (False, True):
        values = values if not single else np.ceil(values).tolist()
        scaled = images(values, single=single).scaled(3)
        assert upper_bound(scaled, 0.05) == pytest.approx(upper_bound(images(values * 3, single=single), 0.05))
