"""Prints how often claims are decided wrongly, by simulation: python tests/benchmarks/claims.py

Every claim is at the edge, where a verdict is wrong most often: "at most t" for a true value just above t, which must
not be supported, and for one of t, which must not be refuted. Claims of "at least" have the two shares in exchange.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from interval_coverage import Rates, always, borderline, rarely

from testbed.claim_language import Claim
from testbed.metrics.claims import Evidence, decided
from testbed.metrics.sure_bounds import Rate

ALPHA = 0.05
LEAST = 1e-9  # how little a threshold lies below the truth


class Scenario(NamedTuple):
    """What is claimed about, its true value, and what so many experiments see: one Evidence for each claim at once."""

    name: str
    truth: float
    simulate: Callable[[np.random.Generator, int], list[Evidence]]


def counted(events: NDArray[np.int64], num_draws: int, *, among: NDArray[np.bool_] | None = None) -> Rate:
    """The rate of `events` (repeats, n), 0 to `num_draws` each, over the images that are `among` the whole."""
    repeats, values = len(events), num_draws + 1
    places = events + values * np.arange(repeats)[:, None]
    chosen = places.ravel() if among is None else places[among]
    counts = np.bincount(chosen, minlength=repeats * values).reshape(repeats, values).astype(np.float64)
    ones = np.ones(values)
    return Rate(np.arange(values) / num_draws, ones, ones, counts, is_single=num_draws == 1)


def evidence(up: Rate, **options: object) -> Evidence:
    return Evidence(up=up, n=1, unit="images", **options)  # type: ignore[arg-type]


def loss(name: str, rates: Callable[[float], Rates], rate: float, *, n: int, k: int) -> Scenario:
    """One rate over n images with k draws each."""

    def simulate(rng: np.random.Generator, repeats: int) -> list[Evidence]:
        return [evidence(counted(rng.binomial(k, rates(rate)(rng, (repeats, n))), k))]

    return Scenario(f"loss {rate:.1%} ({name}), n {n}, k {k}", rate, simulate)


def by_class(rates: Callable[[float], Rates], rate: float, counts: list[int], *, k: int) -> Scenario:
    """A claim about every class, each of which is at the edge: wrong if any is decided wrongly."""

    def simulate(rng: np.random.Generator, repeats: int) -> list[Evidence]:
        return [evidence(counted(rng.binomial(k, rates(rate)(rng, (repeats, n))), k)) for n in counts]

    return Scenario(f"loss {rate:.0%} in each of {len(counts)} classes of {min(counts)} to {max(counts)}, k {k}",
                    rate, simulate)  # fmt: skip


def clustered(rate: float, sizes: NDArray[np.int64], *, k: int, sameness: float, trend: float = 0.0) -> Scenario:
    """Images in clusters that share their difficulty, and are harder in large clusters where there is a trend."""
    largest, tilt = sizes.max(), 1 + trend * (sizes / (sizes**2).sum() * sizes.sum() - 1)
    rates = rate * tilt * sizes.sum() / (sizes * tilt).sum()
    concentration = 1 / sameness - 1

    def simulate(rng: np.random.Generator, repeats: int) -> list[Evidence]:
        shared = rng.beta(rates * concentration, (1 - rates) * concentration, (repeats, len(sizes)))
        part = rng.binomial(k * sizes, shared) / (k * largest)
        weight = sizes / largest
        return [evidence(Rate(part, weight, weight, np.ones(len(sizes)), is_single=False))]

    return Scenario(f"loss {rate:.0%}, {len(sizes)} clusters of {sizes.min()} to {largest}, k {k}, sameness {sameness},"
                    f" trend {trend}", rate, simulate)  # fmt: skip


def mscr(rates: Callable[[float], Rates], rate: float, recovery: float, *, clean: float, n: int, k: int) -> Scenario:
    """MSCR where images right when clean flip at `rates`, and wrong ones recover like borderline ones."""

    def simulate(rng: np.random.Generator, repeats: int) -> list[Evidence]:
        right = rng.random((repeats, n)) < clean
        right[:, 0] |= ~right.any(axis=1)  # MSCR is undefined without any
        losses, gains = rates(rate)(rng, right.shape), borderline(recovery)(rng, right.shape)
        events = rng.binomial(k, np.where(right, losses, gains))
        down = counted(events, k, among=right)
        part = np.arange(k + 1) / k
        gained = counted(events, k, among=~right).counts
        gained[:, 0] = 0  # what is not gained is in no whole
        up = Rate(np.append(part, 0.0), np.append(part, 1.0), np.ones(k + 2),
                  np.append(gained, right.sum(1, keepdims=True), axis=1), is_single=k == 1)  # fmt: skip
        return [evidence(up, down=down, is_odds=True)]

    truth = -rate + recovery * (1 - clean) / clean
    return Scenario(f"mscr {truth:.2%}: loss {rate:.1%}, recovery {recovery:.0%}, clean {clean:.0%}, n {n}, k {k}",
                    truth, simulate)  # fmt: skip


def difference(rate: float, *, more: float, n: int, k: int) -> Scenario:
    """The loss under two shifts of the same images, of which the first costs `more`."""

    def simulate(rng: np.random.Generator, repeats: int) -> list[Evidence]:
        shared = borderline(rate)(rng, (repeats, n))
        extra = (rng.random((repeats, n)) < more / (1 - rate)) * (1 - shared)
        change = rng.binomial(k, shared + extra) - rng.binomial(k, shared)
        up, down = (counted(np.maximum(sign * change, 0), k) for sign in (1, -1))
        return [evidence(up, down=down)]

    return Scenario(f"difference {more:.1%} of losses about {rate:.0%}, n {n}, k {k}", more, simulate)


def runs(rate: float, *, spread: float, num_runs: int, n: int, k: int) -> Scenario:
    """A model that is fitted in every run and differs by `spread`, each tested under k draws on the same images."""

    def simulate(rng: np.random.Generator, repeats: int) -> list[Evidence]:
        means = rate + spread * np.clip(rng.standard_normal((repeats, num_runs, 1)), -2, 2)
        hard = rng.random((repeats, 1, n)) * 2  # images that are hard are so for every model
        events = rng.binomial(k, np.clip(means * hard, 0, 1))
        values = events.mean(axis=-1) / k
        return [evidence(counted(events.sum(axis=1), num_runs * k), run_spread=values.std(axis=1, ddof=1),
                         num_runs=num_runs)]  # fmt: skip

    return Scenario(f"loss {rate:.0%} of {num_runs} models x {k} corruption runs, models differ by {spread:.0%}, n {n}",
                    rate, simulate)  # fmt: skip


def scenarios() -> Iterator[Scenario]:
    """All scenarios of the table."""
    for n in (10, 30, 60, 299, 1000):
        for rate in (0.01, 0.1, 0.5):
            yield loss("one draw", always, rate, n=n, k=1)
    for kind in (always, borderline, rarely):
        for n, rate in ((10, 0.1), (10, 0.3), (30, 0.1), (60, 0.05), (299, 0.01), (360, 0.002), (1000, 0.05)):
            yield loss(kind.__name__, kind, rate, n=n, k=10)
    for k in (1, 10):
        yield by_class(always, 0.1, [60] * 9 + [5], k=k)
        yield by_class(borderline, 0.1, [200, 20, 10], k=k)
    few, unequal, heavy = np.full(20, 20), np.arange(60) % 15 + 1, np.array([1] * 40 + [10] * 10 + [60])
    for sizes in (few, unequal, heavy):
        for sameness in (0.05, 0.3, 0.9):
            yield clustered(0.1, sizes, k=10, sameness=sameness)
        yield clustered(0.1, sizes, k=1, sameness=0.3, trend=0.8)
    for k in (1, 10):
        for n in (20, 60, 360):
            yield mscr(borderline, 0.05, 0.2, clean=0.6, n=n, k=k)
            yield mscr(always, 0.02, 0.1, clean=0.98, n=n, k=k)
            yield difference(0.05, more=0.05, n=n, k=k)
    yield runs(0.1, spread=0.03, num_runs=3, n=300, k=3)
    yield runs(0.1, spread=0.0, num_runs=3, n=30, k=3)
    yield runs(0.1, spread=0.03, num_runs=10, n=1000, k=1)


def quick_scenarios() -> Iterator[Scenario]:
    """The scenarios that the tests repeat, with fewer experiments."""
    yield loss("one draw", always, 0.01, n=299, k=1)
    yield loss("one draw", always, 0.3, n=10, k=1)
    for kind in (always, borderline, rarely):
        yield loss(kind.__name__, kind, 0.1, n=30, k=10)
        yield loss(kind.__name__, kind, 0.01, n=360, k=10)
    yield by_class(always, 0.1, [60] * 9 + [5], k=10)
    yield clustered(0.1, np.arange(60) % 15 + 1, k=10, sameness=0.9)
    yield clustered(0.1, np.array([1] * 40 + [10] * 10 + [60]), k=1, sameness=0.3, trend=0.8)
    yield mscr(borderline, 0.05, 0.2, clean=0.6, n=60, k=1)
    yield mscr(always, 0.02, 0.1, clean=0.98, n=360, k=10)
    yield difference(0.05, more=0.05, n=60, k=1)
    yield runs(0.1, spread=0.03, num_runs=3, n=300, k=3)


def errors(scenario: Scenario, *, repeats: int, seed: int = 0) -> dict[str, float]:
    """Shares of experiments in which a false claim is supported and a true one refuted, at 95 % confidence."""
    found = scenario.simulate(np.random.default_rng(seed), repeats)
    bounds = [one.bounds(ALPHA / len(found)) for one in found]
    true, false = (
        Claim(metric="loss", setting="s", operator="<=", threshold=threshold)
        for threshold in (scenario.truth, scenario.truth - LEAST)
    )
    supported = np.any([decided(false, *one)[0] for one in bounds], axis=0)
    refuted = np.any([decided(true, *one)[1] for one in bounds], axis=0)
    return {"supported": float(supported.mean()), "refuted": float(refuted.mean())}


def main() -> None:
    """Prints the table in percent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10_000, help="experiments per scenario")
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    arguments = parser.parse_args()
    print(f"{'wrong verdicts, %':76} supported  refuted")
    for scenario in scenarios():
        if arguments.only in scenario.name:
            shown = [f"{100 * share:8.2f}" for share in errors(scenario, repeats=arguments.repeats).values()]
            print(f"{scenario.name:76}  {' '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
