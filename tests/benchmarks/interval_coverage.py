"""Prints how often each 95 % interval covers the truth, by simulation: python tests/benchmarks/interval_coverage.py"""

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

from measuring import write_table

from testbed.metrics.changes import relative_change
from testbed.metrics.intervals import Interval, clustered_proportion, weighted_proportion

Array = NDArray[np.float64]
Rates = Callable[[np.random.Generator, tuple[int, int]], Array]


class Scenario(NamedTuple):
    """What is estimated, its true value, and a function that simulates the interval in so many experiments."""

    name: str
    truth: float
    simulate: Callable[[np.random.Generator, int], Interval]
    most: float = 0.97  # coverage expected at most; 1 where so few events are expected that it cannot be less


def always(rate: float) -> Rates:
    """A share `rate` of the images flips in every draw, the others never."""
    return lambda rng, shape: (rng.random(shape) < rate).astype(np.float64)


def rarely(rate: float) -> Rates:
    """Every image flips with probability `rate` in each draw."""
    return lambda rng, shape: np.full(shape, rate)


def borderline(rate: float) -> Rates:
    """A share 2 `rate` of the images lies near the decision boundary and flips with a probability uniform in [0, 1]."""
    return lambda rng, shape: rng.random(shape) * (rng.random(shape) < 2 * rate)


def mixed(rate: float) -> Rates:
    """Half of the flips come from images that always flip, half from images that flip in every tenth draw."""
    return lambda rng, shape: np.where(rng.random(shape) < rate / 2, 1.0, 0.1 * (rng.random(shape) < 5 * rate))


def draws(rng: np.random.Generator, probabilities: Array, num_draws: int) -> Array:
    """Mean over draws of events with the given probabilities."""
    return rng.binomial(num_draws, probabilities) / num_draws


def accuracy(name: str, rates: Rates, error: float, *, n: int, k: int) -> Scenario:
    """Top-1 accuracy with `rates` of being wrong."""

    def simulate(rng: np.random.Generator, repeats: int) -> Interval:
        return clustered_proportion(1 - draws(rng, rates(rng, (repeats, n)), k), num_draws=k)

    return Scenario(f"top1 {name}, n {n}, k {k}", 1 - error, simulate)


def clustered(error: float, *, clusters: int, size: int, k: int) -> Scenario:
    """Top-1 accuracy of images in clusters (patients) that share their difficulty; clusters differ in size."""
    sizes = np.maximum(1, size + (np.arange(clusters) % 5 - 2) * size // 4)
    labels = np.repeat(np.arange(clusters), sizes)

    def simulate(rng: np.random.Generator, repeats: int) -> Interval:
        rates = rng.beta(error * 4, (1 - error) * 4, (repeats, clusters))
        values = 1 - draws(rng, rates[:, labels], k)
        return clustered_proportion(values, num_draws=k, clusters=labels)

    return Scenario(f"top1 {100 - 100 * error:g} %, {clusters} clusters of about {size}, k {k}", 1 - error, simulate)


def balanced(errors: list[float], counts: list[int], *, k: int) -> Scenario:
    """Balanced accuracy over classes of the given sizes."""
    from testbed.metrics.accuracy import balanced_interval

    classes = np.repeat(np.arange(len(counts)), counts)
    rates = np.repeat(errors, counts)

    def simulate(rng: np.random.Generator, repeats: int) -> Interval:
        values = 1 - draws(rng, np.broadcast_to(rates, (repeats, len(rates))), k)
        return balanced_interval(values, classes, num_draws=k)

    shape = f"{len(counts)} classes of {min(counts)} to {max(counts)}"
    return Scenario(f"balanced accuracy, {shape}, errors {min(errors):g} to {max(errors):g}, k {k}",
                    1 - float(np.mean(errors)), simulate)  # fmt: skip


def shift(
    quantity: str, name: str, losses: Rates, loss: float, *, recovery: float, clean: float = 0.98, n: int = 360, k: int
) -> Scenario:
    """Loss, recovery or MSCR where images right when clean flip at `losses`, and wrong ones recover like borderline."""
    recoveries = borderline(recovery)
    truth = {"loss": loss, "recovery": recovery, "mscr": -loss + recovery * (1 - clean) / clean}[quantity]

    def simulate(rng: np.random.Generator, repeats: int) -> Interval:
        right = (rng.random((repeats, n)) < clean).astype(np.float64)
        chance = np.where(right == 1, 1 - losses(rng, (repeats, n)), recoveries(rng, (repeats, n)))
        shifted = draws(rng, chance, k)
        if quantity == "mscr":
            return relative_change(right, shifted, num_draws=k)
        whole = right if quantity == "loss" else 1 - right
        whole, shifted = whole[whole.sum(-1) > 0], shifted[whole.sum(-1) > 0]
        part = whole * (1 - shifted) if quantity == "loss" else whole * shifted
        return weighted_proportion(part, whole, num_draws=k)

    return Scenario(f"{quantity}, clean {clean:.0%}, loss {loss:.1%} ({name}), recovery {recovery:.0%}, n {n}, k {k}",
                    truth, simulate)  # fmt: skip


def scenarios() -> Iterator[Scenario]:
    """All scenarios of the table."""
    for n in (360, 1000, 10000):
        for error in (0.5, 0.02, 0.001):
            yield accuracy(f"{100 - 100 * error:g} %", always(error), error, n=n, k=1)
    for kind in (always, rarely, borderline, mixed):
        for error in (0.4, 0.02, 0.001):
            if not (error == 0.4 and kind is mixed):
                rates = kind(error)
                yield accuracy(f"{100 - 100 * error:g} % ({kind.__name__})", rates, error, n=360, k=10)
    for error in (0.3, 0.03):
        yield clustered(error, clusters=20, size=20, k=1)
        yield clustered(error, clusters=60, size=8, k=10)
    yield balanced([0.02] * 10, [60] * 10, k=1)
    yield balanced([0.02] * 10, [60] * 10, k=10)
    yield balanced([0.05] * 9 + [0.2], [100] * 9 + [5], k=1)
    yield balanced([0.01, 0.02, 0.3], [1000, 100, 20], k=1)
    yield balanced([0.01] * 9 + [0.7], [100] * 10, k=1)
    yield balanced([0.2] * 200, [10] * 200, k=1)
    for quantity in ("loss", "recovery", "mscr"):
        for kind in (always, rarely, borderline, mixed):
            yield shift(quantity, kind.__name__, kind(0.002), 0.002, recovery=0.1, k=10)
            yield shift(quantity, kind.__name__, kind(0.05), 0.05, recovery=0.1, k=10)
        yield shift(quantity, "always", always(0.002), 0.002, recovery=0.1, k=1)
        yield shift(quantity, "borderline", borderline(0.3), 0.3, recovery=0.2, clean=0.6, k=10)
        yield shift(quantity, "always", always(0.3), 0.3, recovery=0.2, clean=0.6, k=1)


def quick_scenarios() -> Iterator[Scenario]:
    """The scenarios that the tests repeat, with fewer experiments."""
    for k in (1, 10):
        yield accuracy("50 %", rarely(0.5), 0.5, n=360, k=k)
        yield accuracy("98 %", borderline(0.02), 0.02, n=360, k=k)
        yield accuracy("99.9 %", always(0.001), 0.001, n=360, k=k)._replace(most=1)
    for kind in (always, rarely):  # few images that flip in all draws, many that flip in a few
        yield shift("loss", kind.__name__, kind(0.002), 0.002, recovery=0.1, k=10)
        yield shift("mscr", kind.__name__, kind(0.002), 0.002, recovery=0.1, k=10)._replace(most=1)
    for quantity in ("loss", "mscr"):
        yield shift(quantity, "borderline", borderline(0.05), 0.05, recovery=0.1, k=10)
    yield shift("recovery", "borderline", borderline(0.3), 0.3, recovery=0.2, clean=0.6, k=10)
    yield clustered(0.3, clusters=60, size=8, k=10)
    yield balanced([0.01, 0.02, 0.3], [1000, 100, 20], k=1)


def coverage(scenario: Scenario, *, repeats: int, seed: int = 0, batch: int = 500) -> dict[str, float]:
    """Shares of experiments whose interval covers, misses below, misses above; mean and least width."""
    rng = np.random.default_rng(seed)
    lows, highs = [], []
    for _ in range(0, repeats, batch):
        interval = scenario.simulate(rng, batch)
        lows.append(interval.low)
        highs.append(interval.high)
    low, high = np.concatenate(lows), np.concatenate(highs)
    above, below = float(np.mean(low > scenario.truth)), float(np.mean(high < scenario.truth))
    return {"covered": 1 - above - below, "too high": above, "too low": below,
            "width": float(np.mean(high - low)), "least width": float(np.min(high - low))}  # fmt: skip


def print_table(found: Iterator[Scenario], description: str | None) -> None:
    """Prints the coverage of scenarios in percent, and writes it as a table, as the command line asks."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--repeats", type=int, default=10_000, help="experiments per scenario")
    parser.add_argument("--only", nargs="+", default=[""], help="scenarios whose name contains one of these")
    parser.add_argument("--output", type=Path, help="a file for the table, without an ending")
    arguments = parser.parse_args()
    rows: list[dict[str, object]] = []
    print(f"{'scenario':115} covered too high  too low    width least")
    for scenario in found:
        if any(part in scenario.name for part in arguments.only):
            shares = {name: 100 * value for name, value in coverage(scenario, repeats=arguments.repeats).items()}
            print(f"{scenario.name:115}{' '.join(f'{value:8.2f}' for value in shares.values())}", flush=True)
            rows.append({"scenario": scenario.name, **{name: round(value, 2) for name, value in shares.items()}})
    if arguments.output is not None:
        write_table(rows, arguments.output, repeats=arguments.repeats)


if __name__ == "__main__":
    print_table(scenarios(), __doc__)
