"""Votes of smoothed classifiers: predictions, radii and accuracies, worked by hand or from the published code."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import binomtest

from testbed.errors import DataError, ShapeError
from testbed.metrics.smoothing import certified_radius, certify, lower_bound, predict, smoothing_metrics

QUANTILE = NormalDist().inv_cdf


def test_a_class_is_told_where_the_two_largest_counts_differ_beyond_chance() -> None:
    # 10 against 0: p = 2 / 1024; 9 against 1: 2 (1 + 10) / 1024; 8 against 2: 2 (1 + 10 + 45) / 1024 = 0.109
    votes = np.array([[10, 0, 0], [0, 9, 1], [2, 0, 8], [5, 5, 0]])
    assert predict(votes, alpha=0.05).tolist() == [0, 1, -1, -1]
    assert predict(votes, alpha=22 / 1024).tolist() == [0, 1, -1, -1]
    assert predict(votes, alpha=21 / 1024).tolist() == [0, -1, -1, -1]
    assert predict(votes, alpha=1).tolist() == [0, 1, 2, 0]  # the ImageNet Testbed's, which never abstains


def test_a_prediction_agrees_with_scipys_exact_test() -> None:
    for first, second in ((50, 50), (60, 40), (66, 34), (67, 33), (90, 5), (100, 0)):
        p_value = binomtest(first, first + second, 0.5).pvalue
        assert (predict([first, second], alpha=p_value * 1.0001) == 0) == (p_value <= 1)
        assert predict([first, second], alpha=p_value * 0.9999) == -1


def test_a_unanimous_vote_bounds_the_probability_by_the_root_of_alpha() -> None:
    assert lower_bound(100, 100, alpha=0.001) == pytest.approx(0.001 ** (1 / 100))
    assert lower_bound(0, 100) == 0
    # Cohen et al. 2019, section 4: n = 100,000 votes, all of one class, certify 3.8 sigma at alpha = 0.001
    assert float(certified_radius(lower_bound(100_000, 100_000), sigma=1)) == pytest.approx(3.81, abs=0.005)


def test_a_radius_is_sigma_times_the_quantile() -> None:
    assert certified_radius(0.9, sigma=0.25) == pytest.approx(0.25 * QUANTILE(0.9))
    assert certified_radius(0.9, sigma=0.5, upper=0.05) == pytest.approx(0.25 * (QUANTILE(0.9) - QUANTILE(0.05)))
    assert certified_radius([0.5, 0.3], sigma=1).tolist() == [0, 0]


def test_a_certificate_is_of_the_class_that_other_votes_chose() -> None:
    selection = [[6, 4], [6, 4], [1, 9]]
    votes = [[95, 5], [10, 90], [40, 60]]
    classes, radii = certify(selection, votes, sigma=0.5)
    assert classes.tolist() == [0, -1, -1]  # 60 of 100 is no majority beyond chance
    lower = float(lower_bound(95, 100))
    assert radii[0] == pytest.approx(0.5 * QUANTILE(lower))
    assert radii[1:].tolist() == [0, 0]
    # the published code's bound: statsmodels' proportion_confint(95, 100, alpha=0.002, method="beta")[0]
    assert lower == pytest.approx(binomtest(95, 100).proportion_ci(confidence_level=0.998, method="exact").low)


def test_accuracies_count_abstentions_as_wrong_and_an_images_own_class() -> None:
    votes = np.array([[[100, 0], [52, 48], [2, 98], [0, 100], [70, 30]]])
    targets = np.array([0, 0, 1, 0, 0])
    found = {value.name: value for value in smoothing_metrics(votes, targets, sigma=0.25, num_samples=100)}
    assert found["abstention"].value == 20  # 52 against 48; 70 against 30 is told: p < 0.0001
    assert found["smoothed_accuracy"].value == 60
    lower = float(lower_bound(70, 100))
    assert lower == pytest.approx(binomtest(70, 100).proportion_ci(confidence_level=0.998, method="exact").low)
    assert found["certified_accuracy_at_0"].value == 60
    assert 0.25 * QUANTILE(lower) < 0.1 < 0.25 * QUANTILE(float(lower_bound(98, 100)))
    assert found["certified_accuracy_at_0.1"].value == 40
    assert found["certified_accuracy_at_0.5"].value is None
    assert "100 votes certify no radius beyond 0.3751" in found["certified_accuracy_at_0.5"].reason
    assert found["smoothed_accuracy"].n == 5
    assert found["smoothed_accuracy"].detail == {"alpha": 0.001, "sigma": 0.25, "num_samples": 100}
    low, high = found["smoothed_accuracy"].ci_low, found["smoothed_accuracy"].ci_high
    assert low is not None
    assert high is not None
    assert low < 60 < high


def test_any_of_an_images_classes_is_right() -> None:
    """66 of 100 votes show a class that was named before, and none that they themselves chose of two."""
    votes = np.array([[[70, 20, 10], [2, 98, 0], [66, 26, 8], [66, 26, 8], [0, 0, 100]]])
    label_sets = np.array([[1, 0], [1, -1], [0, 1], [0, -1], [-1, -1]])
    lower = {alpha: float(lower_bound(66, 100, alpha=alpha)) for alpha in (0.001, 0.0005)}
    assert lower[0.0005] < 0.5 < lower[0.001]
    found = smoothing_metrics(votes, label_sets[:, 0], sigma=0.25, num_samples=100, label_sets=label_sets)
    values = {value.name: value.value for value in found}
    assert values["smoothed_accuracy"] == 80
    assert values["certified_accuracy_at_0"] == 60, "of the two with 66 votes the one without a choice"
    alone = smoothing_metrics(votes, label_sets[:, 0], sigma=0.25, num_samples=100, label_sets=label_sets[:, :1])
    plain = smoothing_metrics(votes, label_sets[:, 0], sigma=0.25, num_samples=100)
    assert [value.value for value in alone] == [value.value for value in plain]


def test_draws_are_averaged_and_their_images_counted_once() -> None:
    votes = np.array([[[100, 0], [100, 0]], [[100, 0], [50, 50]]])
    found = {v.name: v for v in smoothing_metrics(votes, np.array([0, 0]), sigma=0.5, num_samples=100)}
    assert (found["smoothed_accuracy"].value, found["abstention"].value, found["abstention"].n) == (75, 25, 2)


def test_votes_that_are_not_finite_and_targets_without_a_column_are_wrong() -> None:
    votes = np.array([[[math.nan, 0], [0, 100]]])
    found = {v.name: v for v in smoothing_metrics(votes, np.array([0, -1]), sigma=0.5, num_samples=100)}
    assert found["abstention"].value == 50
    assert found["smoothed_accuracy"].value == 0
    assert found["certified_accuracy_at_0"].value == 0


def test_the_bound_is_that_of_all_votes_cast() -> None:
    """Votes for classes that a setting does not look at count against the others."""
    votes, targets = np.array([[[60, 0]]]), np.array([0])
    found = {v.name: v for v in smoothing_metrics(votes, targets, sigma=0.5, num_samples=100)}
    assert found["certified_accuracy_at_0"].value == 0
    found = {v.name: v for v in smoothing_metrics(votes, targets, sigma=0.5, num_samples=60)}
    assert found["certified_accuracy_at_0"].value == 100


def test_what_cannot_be_votes_is_refused() -> None:
    with pytest.raises(DataError, match="An image has 101 votes, but 100 were cast"):
        smoothing_metrics([[[101, 0]]], np.array([0]), sigma=0.5, num_samples=100)
    with pytest.raises(ShapeError, match="there are 2 targets"):
        smoothing_metrics([[[1, 0]]], np.array([0, 1]), sigma=0.5, num_samples=100)
    with pytest.raises(ShapeError, match="at least two classes"):
        predict([[3]])
    with pytest.raises(ShapeError, match="They must be equal"):
        certify([[1, 2]], [[1, 2, 3]], sigma=1)
