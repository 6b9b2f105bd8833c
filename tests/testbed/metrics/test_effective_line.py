"""The line of standard models: by hand, as published, and its resampled bounds."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.errors import DataError, ShapeError
from testbed.metrics.effective import band, fit_line, is_on_scale, percentile_bounds, resampled_lines

# Odds of 1, 3, 9 on x and 1, 1, 9 on y: in units of ln 3 the places are 0, 1, 2 and 0, 0, 2.
X, Y = [50.0, 75.0, 90.0], [50.0, 50.0, 90.0]
LN3 = np.log(3)


def test_line_by_hand() -> None:
    line = fit_line(X, Y)
    assert line.slope == pytest.approx(1)  # the sum of (u - 1) v is 2, that of (u - 1)^2, too
    assert line.intercept == pytest.approx(-LN3 / 3)  # 2/3 - 1
    assert (line.n, line.x_low, line.x_high, line.scale) == (3, 50, 90, "logit")
    assert line.r == pytest.approx(np.sqrt(3) / 2)  # 2 / sqrt(2 * 8/3)
    odds = 3 / 3 ** (1 / 3)
    assert line.at([75.0]).tolist() == pytest.approx([100 * odds / (1 + odds)])


def test_line_in_percent_and_on_the_probit_scale() -> None:
    assert fit_line([10, 20, 30], [5, 15, 25], scale="linear").at([40]).tolist() == pytest.approx([35])
    probit = fit_line([15.865525, 50, 84.134475], [50, 84.134475, 97.724987], scale="probit")
    assert (probit.slope, probit.intercept) == pytest.approx((1, 1), abs=1e-6)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([50, 60], [40, 50], "at least 3 models, and there are 2"),
        ([50, 50, 50], [40, 50, 60], "All 3 models have the accuracy 50.00 % on x"),
        ([50, 60, 70], [0, 50, 60], "not finite on the logit scale"),
    ],
)
def test_models_without_a_line_are_refused(x: list[float], y: list[float], words: str) -> None:
    with pytest.raises(DataError, match=words):
        fit_line(x, y)


def test_lists_of_two_lengths_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"\(3,\) and \(2,\)"):
        fit_line(X, Y[:2])


def test_what_has_no_place_on_a_scale() -> None:
    assert is_on_scale([0, 50, 50], [50, 100, 50], scale="logit").tolist() == [False, False, True]
    assert is_on_scale([0, 50, 50], [50, 100, 50], scale="linear").all()


def _cloud(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    u = rng.normal(1, 1, n)
    return 100 / (1 + np.exp(-u)), 100 / (1 + np.exp(-0.8 * u + 0.5 - rng.normal(0, 0.2, n)))


def test_resampled_lines_are_those_of_lstsq_on_the_ancestors_draws() -> None:
    x, y = _cloud()
    u, v = np.log(x / (100 - x)), np.log(y / (100 - y))
    rng = np.random.RandomState(720257663)
    lines = resampled_lines(x, y)
    assert lines.shape == (1000, 2)
    for line in lines[:5]:
        drawn = rng.choice(len(u), len(u))
        design = np.stack([np.ones(len(u)), u[drawn]], axis=1)
        assert line == pytest.approx(np.linalg.lstsq(design, v[drawn], rcond=None)[0])


def test_families_are_drawn_whole() -> None:
    x, y = _cloud()
    alone = np.array([f"model {number}" for number in range(40)])
    twins = np.tile(alone[:20], 2)
    x, y = np.tile(x[:20], 2), np.tile(y[:20], 2)  # every model is there twice: no more is known than from half of them
    spread = {name: resampled_lines(x, y, families=labels)[:, 1].std() for name, labels in (("a", alone), ("t", twins))}
    assert spread["t"] == pytest.approx(spread["a"] * np.sqrt(2), rel=0.15)
    with pytest.raises(ShapeError, match="40 models but 20 names"):
        resampled_lines(x, y, families=alone[:20])


def test_a_draw_of_one_model_has_no_line_and_no_say() -> None:
    lines = resampled_lines(X, Y)
    assert np.isnan(lines).any()
    assert np.isfinite(percentile_bounds(lines)).all()


def test_bounds_are_resampled_values_the_next_outward() -> None:
    assert [float(bound) for bound in percentile_bounds(np.arange(1000.0))] == [24, 975]
    assert [float(bound) for bound in percentile_bounds(np.arange(1000.0), confidence=0.5)] == [249, 750]


def test_band_holds_the_line_and_is_narrowest_within_the_models() -> None:
    x, y = _cloud()
    at = np.array([5.0, 70.0, 99.5])
    low, high = band(resampled_lines(x, y), at)
    middle = fit_line(x, y).at(at)
    assert ((low < middle) & (middle < high)).all()
    width = np.log(high / (100 - high)) - np.log(low / (100 - low))
    assert width.argmin() == 1
