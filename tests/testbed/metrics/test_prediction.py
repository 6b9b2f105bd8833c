"""Prediction intervals around a line: by hand, and how often they hold a further model in simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import t
from tests.testbed.metrics.simulations import benchmark

from testbed.errors import ShapeError
from testbed.metrics.prediction import fit
from testbed.metrics.spread import spread_of

COVERAGE = benchmark("prediction_coverage")

# On the linear scale, in percent: the line is y = x - 10, the residuals are -1, 1, 1, -1 twice.
X = np.array([30.0, 40, 50, 60, 30, 40, 50, 60])
Y = X - 10 + np.array([-1.0, 1, 1, -1, -1, 1, 1, -1])
UNKNOWN = np.full(8, np.nan)


def _fit(**changed: Any) -> Any:
    return fit(X, Y, **{"x_n": UNKNOWN, "y_n": UNKNOWN, "scale": "linear", **changed})


def test_interval_by_hand_is_that_of_simple_regression() -> None:
    found = _fit()
    assert found.spread.total == pytest.approx(8 / 6 / 1e4)  # residual variance, of fractions
    assert found.spread.degrees == pytest.approx(6)
    expected = found.expected([45.0, 65.0], [np.nan] * 2, [np.nan] * 2)
    assert expected.beta.tolist() == pytest.approx([35, 55])
    for place, high in zip((45, 65), expected.high, strict=True):
        error = np.sqrt(8 / 6 * (1 + 1 / 8 + (place - 45) ** 2 / 1000))
        assert high == pytest.approx(place - 10 + t(6).ppf(0.975) * error)
    assert (expected.high - expected.beta).tolist() == pytest.approx((expected.beta - expected.low).tolist())


def test_error_of_measurement_is_taken_from_the_spread_and_given_to_the_further_model() -> None:
    on_many = _fit(y_n=np.full(8, 1e9))
    on_few = _fit(y_n=np.full(8, 5000.0))
    assert on_few.spread.total < on_many.spread.total
    part = np.array([0.2, 0.3, 0.4, 0.5] * 2)
    leverage = 1 / 8 + (X - 45) ** 2 / 1000
    taken = ((1 - leverage) * part * (1 - part) / 5000).sum() / 6
    assert on_many.spread.total - on_few.spread.total == pytest.approx(taken, rel=1e-4)
    widths = [float(np.ptp(on_few.expected([45.0], [np.nan], [n])[1:])) for n in (1e9, 5000.0, np.nan, 200.0)]
    assert widths[0] < widths[1] == widths[2] < widths[3]  # an unknown number is taken to be the others'


def test_error_on_x_counts_times_the_slope() -> None:
    steep = fit(X, 2 * Y - 20, x_n=np.full(8, 5000.0), y_n=UNKNOWN, scale="linear")
    plain = _fit(x_n=np.full(8, 5000.0))
    change = [
        float(np.square((one.expected([45.0], [100.0], [np.nan]).high - one.line.at([45.0])) / 100).item())
        - float(np.square((one.expected([45.0], [1e9], [np.nan]).high - one.line.at([45.0])) / 100).item())
        for one in (steep, plain)
    ]
    assert change[0] == pytest.approx(4 * change[1])
    assert change[1] == pytest.approx(t(6).ppf(0.975) ** 2 * 0.45 * 0.55 / 100, rel=1e-3)


def test_models_of_a_family_that_are_alike_widen_intervals() -> None:
    rng = np.random.default_rng(3)
    families = np.repeat(np.arange(12), 6)
    x = rng.uniform(50, 80, 72)
    y = x - 20 + rng.normal(0, 2, 12)[families] + rng.normal(0, 0.2, 72)
    none = np.full(72, np.nan)
    known = fit(x, y, x_n=none, y_n=none, families=families, scale="linear")
    ignored = fit(x, y, x_n=none, y_n=none, scale="linear")
    assert known.spread.alike == pytest.approx(0.99, abs=0.02)
    assert known.spread.degrees < 15
    assert ignored.spread.degrees == pytest.approx(70)
    at = [65.0], [np.nan], [np.nan]
    assert np.ptp(known.expected(*at)[1:]) > 1.05 * np.ptp(ignored.expected(*at)[1:])


def test_residuals_smaller_than_the_error_of_measurement_leave_no_spread_but_part_of_the_error() -> None:
    found = _fit(y_n=np.full(8, 200.0))
    assert found.spread.total == 0
    assert 0 < found.spread.kept < 1
    same, fewer = (np.ptp(found.expected([45.0], [np.nan], [n])[1:]) for n in (200.0, 50.0))
    assert same == pytest.approx(np.ptp(_fit().expected([45.0], [np.nan], [np.nan])[1:]), rel=0.1)
    assert (fewer / 200) ** 2 > t(8).ppf(0.975) ** 2 * 0.35 * 0.65 * (1 / 50 - 1 / 200)  # all that fewer images add


def test_bounds_are_accuracies() -> None:
    found = fit(X, Y, x_n=UNKNOWN, y_n=UNKNOWN, scale="linear")
    expected = found.expected([10.0, 109.0], [5.0] * 2, [5.0] * 2)
    assert (expected.low[0], expected.high[1]) == (0, 100)


def test_one_family_alone_tells_nothing_of_families() -> None:
    basis = np.linalg.qr(np.stack([np.ones(8), X], axis=1))[0]
    found = spread_of(np.array([-1.0, 1, 1, -1] * 2), basis, np.zeros(8), np.zeros(8, int))
    assert found.alike == 0
    assert found.total == pytest.approx(8 / 6)


def test_numbers_of_images_must_be_one_per_model() -> None:
    with pytest.raises(ShapeError, match="There are 8 models"):
        _fit(x_n=UNKNOWN[:3])


@pytest.mark.parametrize("world", COVERAGE.WORLDS, ids=lambda world: world.name)
def test_a_further_model_lies_within_as_often_as_said(world: Any) -> None:
    assert 0.91 <= COVERAGE.covered(world, repeats=250, seed=1) <= 0.99  # 95 % and three standard errors
