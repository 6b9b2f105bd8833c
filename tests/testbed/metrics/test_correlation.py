"""Correlations over models: values worked out by hand, and intervals that cover when models come in families."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.errors import ShapeError
from testbed.metrics.correlation import correlation
from testbed.records import MetricValue


def test_pearson_is_covariance_over_spreads() -> None:
    # sums of products about the means: 4; of squares: 10 and 2
    found = correlation([1, 2, 3, 4, 5], [1, 1, 2, 2, 2], kind="pearson")
    assert found.value == pytest.approx(3 / np.sqrt(10 * 1.2))
    assert found.n == 5


def test_spearman_is_of_ranks_and_equal_numbers_share_theirs() -> None:
    found = correlation([1, 10, 100, 1000], [1, 2, 2, 3], kind="spearman")
    assert found.value == pytest.approx(4.5 / np.sqrt(5 * 4.5))
    assert correlation([1, 2, 3, 9], [4, 5, 70, 80], kind="spearman").value == pytest.approx(1)


def test_rows_without_both_numbers_do_not_count() -> None:
    whole = correlation([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], kind="pearson")
    holes = correlation([1, 2, np.nan, 3, 4, 5, 6], [2, 1, 0, 4, 3, 5, -np.inf], kind="pearson")
    assert (holes.value, holes.n, holes.ci_low) == (whole.value, 5, whole.ci_low)


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [([1, 2, 3], [1, 3, 2], "fewer than 4 models"), ([1, 2, 3, 4], [7, 7, 7, 7], "the same number")],
)
def test_what_has_no_correlation_says_why(x: list[float], y: list[float], reason: str) -> None:
    found = correlation(x, y, kind="pearson")
    assert found.value is None
    assert reason in found.reason


def test_an_exact_correlation_or_few_families_have_no_interval() -> None:
    assert correlation([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], kind="pearson").ci_low is None
    few = correlation([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], kind="pearson", groups=list("aabbc"))
    assert (few.value, few.ci_low, few.detail["num_groups"]) == (pytest.approx(0.8), None, 3)


def test_copies_of_models_widen_nothing_when_they_are_one_family() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=30)
    y = x + rng.normal(size=30)
    once = correlation(x, y, kind="pearson")
    twice = correlation(np.tile(x, 2), np.tile(y, 2), kind="pearson", groups=np.tile(np.arange(30), 2))
    assert (twice.value, twice.ci_low, twice.ci_high) == pytest.approx((once.value, once.ci_low, once.ci_high))
    naive = correlation(np.tile(x, 2), np.tile(y, 2), kind="pearson")
    assert _width(naive) < 0.8 * _width(once)


@pytest.mark.parametrize("truth", [0.0, 0.7])
def test_intervals_cover_95_percent_over_families(truth: float) -> None:
    rng = np.random.default_rng(5)
    root = np.linalg.cholesky(np.array([[1, truth], [truth, 1]]))
    labels = np.repeat(np.arange(12), [1, 2, 3, 4, 5, 6] * 2)
    hits = []
    for _ in range(250):
        shared, own = rng.normal(size=(12, 2)) @ root.T, rng.normal(size=(len(labels), 2)) @ root.T
        x, y = (shared[labels] + own).T
        found = correlation(x, y, kind="pearson", groups=labels)
        assert found.ci_low is not None
        assert found.ci_high is not None
        hits.append(found.ci_low <= truth <= found.ci_high)
    assert 0.92 <= np.mean(hits) <= 0.98


def test_labels_that_are_too_few_are_refused() -> None:
    with pytest.raises(ShapeError, match="Give one each"):
        correlation([1, 2, 3, 4], [1, 2, 3, 4], kind="pearson", groups=["a"])


def _width(found: MetricValue) -> float:
    assert found.ci_low is not None
    assert found.ci_high is not None
    return found.ci_high - found.ci_low
