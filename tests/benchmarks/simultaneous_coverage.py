"""Prints how often intervals that should hold together do not, by simulation, beside those without exact tails:
python tests/benchmarks/simultaneous_coverage.py

Two kinds of table: the class that is worst of many, whose interval holds for all classes at once, and the changes of
accuracy in the rows of `db.py --mscr`, which claim a loss or a gain where there is none. Rows are independent, which is
the worst case, so that the share of wrong tables follows from that of wrong rows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from interval_coverage import Rates, always, borderline, draws, mixed, rarely
from measuring import RESULTS, print_table, write_table

from testbed.metrics.comparison import Outcomes, change_interval
from testbed.metrics.factors import Factors, proportion

_BATCH = 200


class Table(NamedTuple):
    """A table of intervals, how many it has, and the share of so many experiments in which one of them is wrong.

    Args of `wrong`: generator, experiments, and whether tails are exact. Returns the share and the mean width, in
    percent.
    """

    name: str
    wrong: Callable[[np.random.Generator, int, bool], tuple[float, float]]


def _factors(count: int, num_draws: int, is_exact: bool) -> Factors:
    return Factors(num_draws=num_draws).for_all(count).of(is_exact=is_exact)


def worst_class(kind: Callable[[float], Rates], error: float, *, classes: int, size: int, k: int) -> Table:
    """Classes that are all alike: the worst of them is so by chance."""

    def wrong(rng: np.random.Generator, repeats: int, is_exact: bool) -> tuple[float, float]:
        part = np.empty((repeats, 1, size))
        for index in range(repeats):
            right = 1 - draws(rng, kind(error)(rng, (classes, size)), k)
            part[index, 0] = right[np.round(right.mean(-1), 12).argmin()]
        _, interval = proportion(part, np.ones_like(part), _factors(classes, k, is_exact))
        is_wrong = (interval.low > 1 - error) | (interval.high < 1 - error)
        return 100 * float(is_wrong.mean()), 100 * float((interval.high - interval.low).mean())

    name = f"worst of {classes} classes of {size}, error {error:.0%} ({kind.__name__}), k {k}"
    return Table(name, wrong)


def unchanged(kind: Callable[[float], Rates], loss: float, *, rows: int, clean: float, n: int, k: int) -> Table:
    """Models that gain as much as they lose: a row says loss or gain where there is none."""

    def wrong(rng: np.random.Generator, repeats: int, is_exact: bool) -> tuple[float, float]:
        is_wrong, widths = [], []
        for _ in range(0, repeats, _BATCH):
            right = (rng.random((_BATCH, 1, n)) < clean).astype(np.float64)
            losses, gains = (kind(rate)(rng, right.shape) for rate in (loss, loss * clean / (1 - clean)))
            shifted = draws(rng, np.where(right == 1, 1 - losses, gains), k)
            outcomes = Outcomes(clean=right, shifted=shifted, factors=_factors(rows, k, is_exact))
            _, interval = change_interval("accuracy_change", outcomes)
            is_wrong.append((interval.low > 0) | (interval.high < 0))
            widths.append(interval.high - interval.low)
        return 100 * (1 - (1 - float(np.mean(is_wrong))) ** rows), 100 * float(np.mean(widths))

    name = f"{rows} rows of no change, clean {clean:.0%}, lost and gained {loss:.0%} ({kind.__name__}), n {n}, k {k}"
    return Table(name, wrong)


def tables() -> Iterator[tuple[Table, int]]:
    """All tables, and how many experiments each is tried in for every one that was asked for."""
    for classes, size in ((10, 60), (100, 100), (100, 50), (1000, 50)):
        for kind, k in ((always, 1), (borderline, 10), (mixed, 10), (rarely, 10)):
            for error in (0.05, 0.2):
                yield worst_class(kind, error, classes=classes, size=size, k=k), 1
    for rows in (20, 100):
        for n in (360, 2000):
            for kind, k in ((always, 1), (always, 10), (borderline, 10), (mixed, 10)):
                yield unchanged(kind, 0.01, rows=rows, clean=0.9, n=n, k=k), 10


def quick_tables() -> Iterator[Table]:
    """Those that the tests repeat, in which intervals without exact tails are wrong too often."""
    yield worst_class(always, 0.05, classes=100, size=100, k=1)
    yield worst_class(borderline, 0.05, classes=100, size=100, k=10)


def main() -> None:
    """Prints the table in percent, and writes it where it is asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1000, help="experiments per worst class; ten times of rows")
    parser.add_argument("--output", type=Path, default=RESULTS / "simultaneous_coverage", help="without an ending")
    arguments = parser.parse_args()
    rows = []
    for table, times in tables():
        repeats = times * arguments.repeats
        single, exact = (table.wrong(np.random.default_rng(0), repeats, is_exact) for is_exact in (False, True))
        rows.append({"table": table.name, "wrong": exact[0], "width": exact[1],
                     "wrong without exact tails": single[0], "width without exact tails": single[1]})  # fmt: skip
    print_table(rows)
    write_table(rows, arguments.output, repeats=arguments.repeats)


if __name__ == "__main__":
    main()
