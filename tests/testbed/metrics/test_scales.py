"""Scales of accuracies: known values, their inverses, and what the binomial error is on each."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.errors import DataError
from testbed.metrics.scales import SCALES, scale_named

# ln 3 and the 75 % quantile of the normal distribution.
KNOWN = {"logit": 1.0986122886681098, "probit": 0.6744897501960817, "linear": 0.75}


@pytest.mark.parametrize("name", SCALES)
def test_places_of_known_accuracies(name: str) -> None:
    places = SCALES[name].of_percent([50, 75])
    assert places.tolist() == pytest.approx([0.5 if name == "linear" else 0.0, KNOWN[name]])
    assert SCALES[name].to_percent(places).tolist() == pytest.approx([50, 75])


@pytest.mark.parametrize("name", ["logit", "probit"])
def test_no_accuracy_is_clipped(name: str) -> None:
    assert SCALES[name].of_percent([0, 100]).tolist() == [-np.inf, np.inf]
    assert np.isfinite(SCALES[name].of_percent(1e-4))


@pytest.mark.parametrize("name", SCALES)
def test_sampling_variance_is_that_of_simulated_accuracies(name: str) -> None:
    measured = np.random.default_rng(0).binomial(4000, 0.8, 20_000) / 40
    seen = SCALES[name].of_percent(measured).var()
    assert SCALES[name].sampling_variance(80, 4000) == pytest.approx(seen, rel=0.03)


def test_sampling_variance_on_the_logit_scale_is_one_over_n_p_q() -> None:
    assert SCALES["logit"].sampling_variance([20, 50], [100, np.nan]).tolist() == pytest.approx([1 / 16, 0])


@pytest.mark.parametrize("name", SCALES)
def test_expected_accuracies_at_the_ends_have_the_variance_of_half_an_image(name: str) -> None:
    variance = SCALES[name].sampling_variance
    assert variance([-3, 0, 1e-30, 100, 104], 100).tolist() == pytest.approx([float(variance(0.5, 100))] * 5)


def test_an_unknown_scale_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(DataError, match=r"no scale 'log'. Use logit, probit, linear"):
        scale_named("log")
