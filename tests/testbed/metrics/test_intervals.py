"""Intervals against published and exact values, their limiting cases, and their coverage by simulation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, binomtest
from tests.testbed.metrics.simulations import benchmark

from testbed.errors import DataError, ShapeError
from testbed.metrics.changes import relative_change
from testbed.metrics.intervals import (
    Side,
    Units,
    clopper_pearson,
    clustered_proportion,
    tails,
    weighted_proportion,
    wilson,
)

ROOT = Path(__file__).resolve().parents[3]

# k, n, alpha, low, high: exact values, computed with 30 digits.
CLOPPER_PEARSON = [
    (5, 10, 0.05, 0.18708602844739855, 0.8129139715526015),
    (5, 10, 0.005, 0.10983482890114912, 0.8901651710988514),
    (0, 10, 0.05, 0.0, 0.3084971078187607),
    (10, 10, 0.005, 0.5492802716530588, 1.0),
    (38065, 50000, 0.05, 0.7575383747909376, 0.7650312674950102),
    (6321, 10000, 0.005, 0.618442292936749, 0.6456093914022021),
    (1, 7500, 0.05, 3.375702033543718e-06, 0.0007426594110845504),
    (0, 7500, 0.05, 0.0, 0.0004917296552072394),
]


@pytest.mark.parametrize(("k", "n", "alpha", "low", "high"), CLOPPER_PEARSON)
def test_clopper_pearson_gives_known_values(k: int, n: int, alpha: float, low: float, high: float) -> None:
    assert clopper_pearson(k, n, confidence=1 - alpha)[:2] == pytest.approx((low, high), rel=1e-9)


def test_clopper_pearson_gives_all_shared_examples() -> None:
    path = ROOT.parent / "shared/expected/clopper_pearson_examples.json"
    if not path.exists():
        pytest.skip(f"the shared examples are not there ({path.name})")
    for case in json.loads(path.read_text()):
        interval = clopper_pearson(case["k"], case["n"], confidence=1 - case["alpha"])
        assert interval[:2] == pytest.approx((case["lo"], case["hi"]), rel=1e-9)


@pytest.mark.parametrize(("k", "n"), [(0, 7), (7, 7), (3, 11), (98, 100), (500, 1000)])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_wilson_and_clopper_pearson_agree_with_scipy(k: int, n: int, confidence: float) -> None:
    test = binomtest(k, n)
    assert wilson(k, n, confidence=confidence)[:2] == pytest.approx(tuple(test.proportion_ci(confidence, "wilson")))
    assert clopper_pearson(k, n, confidence=confidence)[:2] == pytest.approx(tuple(test.proportion_ci(confidence)))


@pytest.mark.parametrize("interval", [wilson, clopper_pearson])
def test_one_sided_bounds_spend_the_whole_error_on_one_side(interval) -> None:  # type: ignore[no-untyped-def]
    both = interval(30, 100, confidence=0.9)
    assert interval(30, 100, side="lower")[:2] == pytest.approx((both.low, 1))
    assert interval(30, 100, side="upper")[:2] == pytest.approx((0, both.high))


@pytest.mark.parametrize(("k", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_counts_that_no_sample_has_are_refused(k: int, n: int) -> None:
    with pytest.raises(DataError, match="successes"):
        wilson(k, n)
    with pytest.raises(DataError, match="successes"):
        clopper_pearson(k, n)


def test_confidence_and_side_are_checked() -> None:
    with pytest.raises(DataError, match="95"):
        tails(95)
    with pytest.raises(DataError, match="both"):
        tails(0.95, "left")  # type: ignore[arg-type]


def ones(k: int, n: int) -> np.ndarray:
    return (np.arange(n) < k).astype(float)


@pytest.mark.parametrize("k", [10, 50, 90])
def test_single_draws_with_many_events_give_wilson(k: int) -> None:
    assert clustered_proportion(ones(k, 100)) == (*wilson(k, 100)[:2], "wilson")


@pytest.mark.parametrize("k", range(10))
def test_few_events_are_bounded_exactly_above_and_by_mid_p_below(k: int) -> None:
    low, high, method = clustered_proportion(ones(k, 100))
    assert high == pytest.approx(clopper_pearson(k, 100).high)
    assert method == "exact and mid-p"
    if k == 0:
        assert low == 0
    else:
        assert binom.sf(k, 100, low) + binom.pmf(k, 100, low) / 2 == pytest.approx(0.025)


def test_interval_of_failures_mirrors_that_of_successes() -> None:
    values = np.random.default_rng(0).binomial(10, 0.03, 50) / 10
    one, other = clustered_proportion(values, num_draws=10), clustered_proportion(1 - values, num_draws=10)
    assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low))


@pytest.mark.parametrize("num_draws", [1, 10])
@pytest.mark.parametrize("n", [1, 7, 353])
def test_without_a_flip_draws_do_not_tighten_the_exact_bound(num_draws: int, n: int) -> None:
    interval = clustered_proportion(np.zeros(n), num_draws=num_draws)
    assert (interval.low, interval.high) == pytest.approx((0, 1 - 0.025 ** (1 / n)))


def test_draws_that_agree_are_worth_one_and_independent_ones_more() -> None:
    rng = np.random.default_rng(0)
    agree, single = ones(100, 300), wilson(100, 300)
    interval = clustered_proportion(agree, num_draws=10)
    assert interval[:2] == pytest.approx(single[:2], rel=1e-2)
    independent = clustered_proportion(rng.binomial(10, 1 / 3, 300) / 10, num_draws=10)
    pooled = wilson(1000, 3000)
    assert independent.high - independent.low == pytest.approx(pooled.high - pooled.low, rel=0.1)


def test_images_of_one_cluster_count_as_one() -> None:
    values, clusters = np.repeat(ones(50, 150), 8), np.repeat(np.arange(150), 8)
    interval, single = clustered_proportion(values, clusters=clusters), wilson(50, 150)
    assert interval[:2] == pytest.approx(single[:2], rel=2e-2)
    shuffled = np.random.default_rng(0).permutation(len(values))
    assert clustered_proportion(values[shuffled], clusters=clusters[shuffled])[:2] == pytest.approx(interval[:2])


def test_without_an_event_clusters_have_the_exact_bound_of_their_number() -> None:
    """Of unequal ones the effective number: 25 of one image and 25 of three weigh as much as 100^2 / 250 = 40."""
    equal = clustered_proportion(np.zeros(150), num_draws=10, clusters=np.repeat(np.arange(50), 3))
    assert equal[:2] == pytest.approx((0, clopper_pearson(0, 50).high))
    sizes = np.repeat([1, 3], 25)
    unequal = clustered_proportion(np.zeros(100), clusters=np.repeat(np.arange(50), sizes))
    assert unequal.high == pytest.approx(clopper_pearson(0, 40).high)


def test_clusters_of_one_change_nothing() -> None:
    values = ones(60, 100)
    assert clustered_proportion(values, clusters=np.arange(100))[:2] == pytest.approx(wilson(60, 100)[:2])


def test_values_out_of_range_missing_or_without_cluster_are_refused() -> None:
    with pytest.raises(DataError, match="at least one"):
        clustered_proportion([])
    with pytest.raises(DataError, match="parts"):
        clustered_proportion([0.5, 1.5])
    with pytest.raises(DataError, match="wholes"):
        weighted_proportion([0.0, 0.0], [0.0, 0.0])
    with pytest.raises(ShapeError, match="cluster labels"):
        clustered_proportion([0, 1], clusters=[0])
    with pytest.raises(ShapeError, match="same"):
        relative_change([1, 1], [1, 1, 0])


def test_intervals_hold_the_estimate_and_have_width() -> None:
    """Over many small data sets of all kinds, the degenerate ones included."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        n, k = int(rng.integers(1, 40)), int(rng.integers(1, 12))
        clean = (rng.random(n) < rng.choice([0.5, 0.98, 1])).astype(float)
        clean[0] = 1
        shifted = rng.binomial(k, rng.choice([0, 0.02, 0.5, 1], n)) / k
        proportion = clustered_proportion(shifted, num_draws=k)
        change = relative_change(clean, shifted, num_draws=k)
        for interval, estimate in ((proportion, shifted.mean()), (change, shifted.mean() / clean.mean() - 1)):
            assert interval.low - 1e-9 <= estimate <= interval.high + 1e-9
            assert interval.high - interval.low > 1e-3


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_one_bound_of_50_percent_is_the_estimate_however_much_units_vary(side: Side) -> None:
    values = np.tile([0.0, 0.5, 1.0, 1.0], 20)
    found = clustered_proportion(values, num_draws=2, confidence=0.5, side=side)
    assert (found.low if side == "lower" else found.high) == pytest.approx(0.625, abs=1e-12)
    nearly = clustered_proportion(values, num_draws=2, confidence=0.5 + 1e-9, side=side)
    assert found[:2] == pytest.approx(nearly[:2], abs=1e-8)
    rare = [clustered_proportion([0.5] + 60 * [0.0], num_draws=2, confidence=confidence, side=side)
            for confidence in (0.5, 0.5 + 1e-9)]  # fmt: skip
    assert rare[0][:2] == pytest.approx(rare[1][:2], abs=1e-8)


def test_relative_change_has_the_linearised_variance_when_flips_are_many() -> None:
    rng = np.random.default_rng(2)
    clean = (rng.random(20_000) < 0.7).astype(float)
    shifted = rng.binomial(5, np.where(clean == 1, 0.6, 0.3)) / 5
    ratio = shifted.mean() / clean.mean()
    error = (shifted - ratio * clean).std() / np.sqrt(len(clean)) / clean.mean()
    interval = relative_change(clean, shifted, num_draws=5)
    assert (interval.low, interval.high) == pytest.approx(
        (ratio - 1 - 1.96 * error, ratio - 1 + 1.96 * error), abs=2e-4
    )


def test_one_sided_relative_change_equals_a_side_of_the_wider_interval() -> None:
    clean, shifted = ones(80, 100), np.r_[ones(70, 80), ones(5, 20)]
    both = relative_change(clean, shifted, confidence=0.9)
    assert relative_change(clean, shifted, side="lower")[:2] == pytest.approx((both.low, np.inf))
    assert relative_change(clean, shifted, side="upper")[:2] == pytest.approx((-1, both.high))


def test_arrays_give_what_their_rows_give() -> None:
    rng = np.random.default_rng(3)
    rows = rng.binomial(4, rng.random((6, 1)) ** 3, (6, 25)) / 4
    whole = clustered_proportion(rows, num_draws=4)
    for row, low, high in zip(rows, whole.low, whole.high, strict=True):
        assert clustered_proportion(row, num_draws=4)[:2] == pytest.approx((low, high))


@pytest.mark.parametrize("n", [10, 50, 360])
def test_exact_coverage_of_single_draws_is_never_below_93(n: int) -> None:
    """No simulation: the chance of each count is known."""
    counts, rates = np.arange(n + 1), np.linspace(0.2 / n, 0.5, 800)
    interval = clustered_proportion((np.arange(n) < counts[:, None]).astype(float))
    for rate in rates:
        covers = (interval.low <= rate) & (rate <= interval.high)
        assert binom.pmf(counts, n, rate)[covers].sum() > 0.93


COVERAGE = benchmark("interval_coverage")


@pytest.mark.parametrize("scenario", [pytest.param(s, id=s.name) for s in COVERAGE.quick_scenarios()])
def test_coverage_by_simulation(scenario) -> None:  # type: ignore[no-untyped-def]
    """1,000 repeats have a standard error of 0.7 points; the benchmark repeats each scenario 10,000 times."""
    found = COVERAGE.coverage(scenario, repeats=1000)
    assert found["covered"] > 0.93 - 0.014
    assert found["covered"] < scenario.most + 0.014
    assert found["least width"] > 1e-3


@pytest.mark.parametrize("k", [0, 1, 12, 50, 88, 100])
def test_exact_tails_are_clopper_and_pearsons_however_many_the_events(k: int) -> None:
    for tail in (0.025, 1e-6, 1e-12):
        low, high, method = Units.of(ones(k, 100), np.ones(100)).exact_interval(tail, tail)
        exact = clopper_pearson(k, 100, confidence=1 - 2 * tail)
        assert (low, high, method) == (pytest.approx(exact.low, rel=1e-3), pytest.approx(exact.high, rel=1e-3), "exact")


def test_exact_tails_are_nested_down_to_what_numbers_hold() -> None:
    values = np.random.default_rng(5).binomial(10, 0.02, 500) / 10
    data = Units.of(values, np.ones(500), num_draws=10)
    found = [data.exact_interval(tail, tail) for tail in np.geomspace(0.4, 1e-300, 200)]
    assert np.all(np.diff([one.low for one in found]) < 0)
    assert np.all(np.diff([one.high for one in found]) > 0)


def test_exact_bounds_of_one_side_leave_the_other_open() -> None:
    data = Units.of(ones(12, 100), np.ones(100))
    assert data.exact_interval(0.05, 0.0)[:2] == pytest.approx((data.exact_interval(0.05, 0.05).low, 1.0))
    assert data.exact_interval(0.0, 0.05)[:2] == pytest.approx((0.0, data.exact_interval(0.05, 0.05).high))


def test_few_units_that_vary_widen_exact_tails() -> None:
    """Of eight patients nobody knows the variance well: Student's t of 7 degrees instead of a normal deviate."""
    values, labels = np.repeat([1.0, 0.0], 40), np.repeat(np.arange(8), 10)
    few = Units.of(values, np.ones(80), clusters=labels).exact_interval(0.025, 0.025)
    assert few.high - few.low > clopper_pearson(4, 8).high - clopper_pearson(4, 8).low
