"""Verdicts on claims: what decides them, how much more would, and how often they are wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.testbed.metrics.simulations import benchmark

from testbed.claim_language import Claim, parse_claim
from testbed.metrics.claims import Evidence, answer, needed, verdict
from testbed.metrics.sure_bounds import Rate, lower_bound, upper_bound

ROOT = Path(__file__).resolve().parents[3]


def rate(values: list[float], *, single: bool = False) -> Rate:
    return Rate.of_units(values, 1.0, 1.0, is_single=single)


def flips(count: int, n: int, *, single: bool = False) -> list[float]:
    return [1.0] * count + [0.0] * (n - count)


def sample(values: list[float], *, single: bool = False, **options: Any) -> Evidence:
    return Evidence(up=rate(values, single=single), n=len(values), unit="images", **options)


def claim(operator: str, threshold: float) -> Claim:
    return Claim(metric="loss", setting="s", operator=operator, threshold=threshold)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("operator", "below", "at_high", "around", "at_low", "above"),
    [
        ("<=", "supported", "supported", "undecided", "undecided", "refuted"),
        ("<", "supported", "undecided", "undecided", "refuted", "refuted"),
        (">=", "refuted", "undecided", "undecided", "supported", "supported"),
        (">", "refuted", "refuted", "undecided", "undecided", "supported"),
    ],
)
def test_bounds_decide_a_claim_when_both_lie_on_one_side(
    operator: str, below: str, at_high: str, around: str, at_low: str, above: str
) -> None:
    found = [
        verdict(claim(operator, 0.5), *bounds)
        for bounds in ((0.1, 0.4), (0.1, 0.5), (0.4, 0.6), (0.5, 0.9), (0.6, 0.9))
    ]
    assert found == [below, at_high, around, at_low, above]


@pytest.mark.parametrize("single", [True, False])
def test_without_a_flip_299_images_support_one_percent_and_298_do_not(single: bool) -> None:
    """The rule of three: 0.99^299 < 0.05 < 0.99^298."""
    one_percent = parse_claim("loss(s) <= 1%")
    found = answer(one_percent, sample(flips(0, 298), single=single), alpha=0.05)
    assert (found.verdict, found.needed) == ("undecided", 299)
    assert answer(one_percent, sample(flips(0, 40), single=single), alpha=0.05).needed == 299
    found = answer(one_percent, sample(flips(0, 299), single=single), alpha=0.05)
    assert (found.verdict, found.needed, found.value) == ("supported", None, 0.0)
    assert found.high == pytest.approx(1 - 0.05 ** (1 / 299))


@pytest.mark.parametrize(
    ("values", "single", "text"),
    [
        (flips(1, 50), True, "loss(s) <= 5%"),
        (flips(1, 50), True, "loss(s) <= 1%"),
        (flips(1, 50), False, "loss(s) < 5%"),
        ([0.1] * 4 + [0.6] + [0.0] * 35, False, "loss(s) <= 4%"),
        ([0.1] * 4 + [0.6] + [0.0] * 35, False, "loss(s) >= 1%"),
        (flips(22, 30), False, "loss(s) >= 70%"),
    ],
)
def test_the_sample_so_many_times_over_decides_and_less_does_not(values: list[float], single: bool, text: str) -> None:
    wanted = parse_claim(text)
    assert answer(wanted, sample(values, single=single), alpha=0.05).verdict == "undecided"
    images = answer(wanted, sample(values, single=single), alpha=0.05).needed
    assert images is not None
    enough = math.ceil(images / len(values))
    assert answer(wanted, sample(values * enough, single=single), alpha=0.05).verdict != "undecided"
    assert answer(wanted, sample(values * (enough - 1), single=single), alpha=0.05).verdict == "undecided"


def test_the_number_that_would_decide_is_the_least_one() -> None:
    evidence, wanted = sample([0.1] * 4 + [0.6] + [0.0] * 35), parse_claim("loss(s) <= 4%")
    images = needed(wanted, evidence, alpha=0.05)
    assert images is not None
    decided = [
        verdict(wanted, *(float(bound) for bound in evidence.scaled(n).bounds(0.05))) for n in (images - 1, images)
    ]
    assert decided == ["undecided", "supported"]


@pytest.mark.parametrize(
    ("values", "text"),
    [(flips(1, 100), "loss(s) <= 1%"), (flips(0, 100), "loss(s) <= 0%"), (flips(50, 100), "loss(s) > 50%")],
)
def test_no_number_decides_what_is_observed_exactly_at_the_threshold(values: list[float], text: str) -> None:
    found = answer(parse_claim(text), sample(values, single=True), alpha=0.05)
    assert (found.verdict, found.needed) == ("undecided", None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loss(s) <= 1%", "supported"),
        ("loss(s) >= 1%", "refuted"),
        ("loss(s) > 0.3%", "supported"),
        ("loss(s) < 0.3%", "refuted"),
    ],
)
@pytest.mark.parametrize("single", [True, False])
def test_much_data_decides(text: str, expected: str, single: bool) -> None:
    evidence = sample(flips(50, 10_000), single=single)
    assert answer(parse_claim(text), evidence, alpha=0.05).verdict == expected


def test_two_rates_share_the_error() -> None:
    """MSCR is the odds of the gained share less the loss: (6 gained - 9 lost) / 90 right."""
    up, down = rate(flips(6, 96), single=True), rate(flips(9, 90), single=True)
    evidence = Evidence(up=up, down=down, is_odds=True, n=100, unit="images")
    assert evidence.value == pytest.approx((6 - 9) / 90)
    low, high = evidence.bounds(0.05)
    gained = [bound(up, 0.025) for bound in (lower_bound, upper_bound)]
    assert low == pytest.approx(gained[0] / (1 - gained[0]) - upper_bound(down, 0.025))
    assert high == pytest.approx(gained[1] / (1 - gained[1]) - lower_bound(down, 0.025))
    assert evidence.method == "Clopper-Pearson, Bonferroni over gains and losses"


def test_runs_that_fit_a_model_each_add_students_t_over_runs() -> None:
    """t of 2 degrees of freedom leaves 2.5 % above 4.302652729911275; the samples get the other 2.5 %."""
    values = flips(50, 100)
    low, high = sample(values, run_spread=0.02, num_runs=3).bounds(0.05)
    error = 4.302652729911275 * 0.02 / math.sqrt(3)
    assert low == pytest.approx(lower_bound(rate(values), 0.025) - error)
    assert high == pytest.approx(upper_bound(rate(values), 0.025) + error)


def test_the_spread_of_runs_takes_a_rate_no_further_than_it_can_go() -> None:
    assert sample(flips(50, 100), run_spread=0.9, num_runs=3).bounds(0.05) == (0.0, 1.0)


def test_resplits_reach_as_far_as_their_corrected_spread_or_the_samples() -> None:
    """t of 2 degrees of freedom leaves 5 % above 2.919985580355516; with 20 % tested, 1/3 becomes 1/3 + 1/4."""
    values = flips(50, 100)
    wide = sample(values, run_spread=0.2, num_runs=3, resplit=0.25)
    error = 2.919985580355516 * 0.2 * math.sqrt(1 / 3 + 0.25)
    assert wide.bounds(0.05) == pytest.approx((0.5 - error, 0.5 + error))
    narrow = replace(wide, run_spread=0.0).bounds(0.05)
    assert narrow == pytest.approx((lower_bound(rate(values), 0.05), upper_bound(rate(values), 0.05)))


def test_more_runs_decide_what_is_open_because_of_the_runs_alone() -> None:
    wanted = parse_claim("loss(s) <= 20%")
    evidence = replace(sample(flips(50, 1000), run_spread=0.06, num_runs=3), n=3, unit="runs")
    runs = needed(wanted, evidence, alpha=0.05)
    assert runs is not None
    assert verdict(wanted, *evidence.scaled(runs).bounds(0.05)) == "supported"
    assert verdict(wanted, *evidence.scaled(runs - 1).bounds(0.05)) == "undecided"
    few_images = replace(evidence, up=rate(flips(1, 20)))
    assert needed(wanted, few_images, alpha=0.05) is None


SIMULATION = benchmark("claims")
REPEATS = 1000
MOST = 0.05 + 3 * math.sqrt(0.05 * 0.95 / REPEATS)


@pytest.mark.parametrize("scenario", [pytest.param(s, id=s.name) for s in SIMULATION.quick_scenarios()])
def test_at_most_one_verdict_in_twenty_is_wrong_at_the_edge(scenario: Any) -> None:
    """With the margin of 1,000 repeats; the benchmark repeats each scenario 10,000 times."""
    found = SIMULATION.errors(scenario, repeats=REPEATS)
    assert found["supported"] <= MOST
    assert found["refuted"] <= MOST


def test_the_simulation_notices_draws_that_are_taken_for_images() -> None:
    scenario = SIMULATION.loss("always", SIMULATION.always, 0.1, n=30, k=10)

    def pooled(rng: np.random.Generator, repeats: int) -> list[Evidence]:
        (one,) = scenario.simulate(rng, repeats)
        return [replace(one, up=one.up._replace(counts=10 * one.up.counts, is_single=True))]

    found = SIMULATION.errors(scenario._replace(simulate=pooled), repeats=REPEATS)
    assert min(found.values()) > 0.2
