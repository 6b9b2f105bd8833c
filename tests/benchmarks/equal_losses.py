"""How often two models of one true loss are told apart, by simulation: python tests/benchmarks/equal_losses.py

They may lose images in different ways: an image in all draws of the noise or in none, in a few draws of many, or in any
draw at random. What is tested is that their losses are equal, not that one could stand for the other.
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

from interval_coverage import Array
from measuring import RESULTS, print_table, write_table

from testbed.metrics.best import marks
from testbed.metrics.comparison import Outcomes
from testbed.metrics.factors import Factors
from testbed.metrics.paired import contrast

LEVEL = 0.05
ROWS = 20  # of a table
Flips = Callable[[np.random.Generator, int, float, int], Array]


def whole(rng: np.random.Generator, n: int, loss: float, draws: int) -> Array:
    """An image flips in all draws or in none."""
    return (rng.random(n) < loss).astype(np.float64)


def thin(rng: np.random.Generator, n: int, loss: float, draws: int) -> Array:
    """An image flips in one draw, or in as many as leave half of the images alone."""
    flipped = int(np.ceil(2 * loss * draws))
    return (rng.random(n) < loss * draws / flipped) * flipped / draws


def scattered(rng: np.random.Generator, n: int, loss: float, draws: int) -> Array:
    """Every image flips in any draw with the same probability."""
    return rng.binomial(draws, loss, n) / draws


class Cell(NamedTuple):
    """Two models of one true loss on the same images, of which each is right on its own share `clean`."""

    loss: float
    n: int
    draws: int
    kinds: tuple[Flips, Flips]
    clean: float = 1.0

    @property
    def name(self) -> str:
        """In words."""
        kinds = " and ".join(kind.__name__ for kind in self.kinds)
        return f"clean {self.clean:.0%}, loss {self.loss:.1%}, n {self.n}, draws {self.draws}, {kinds}"

    def outcomes(self, rng: np.random.Generator) -> list[Outcomes]:
        """Of both models in one experiment."""
        return [self._model(rng, kind) for kind in self.kinds]

    def _model(self, rng: np.random.Generator, kind: Flips) -> Outcomes:
        right = (rng.random(self.n) < self.clean).astype(np.float64)
        shifted = right * (1 - kind(rng, self.n, self.loss, self.draws))
        return Outcomes(clean=right[None], shifted=shifted[None], factors=Factors(num_draws=self.draws))


PAIRS = ((whole, whole), (thin, thin), (scattered, scattered), (whole, thin), (whole, scattered))


def cells() -> Iterator[Cell]:
    """All that one row is simulated of. With one draw all kinds are the same."""
    for n in (200, 5000):
        for loss in (0.001, 0.01, 0.1):
            yield Cell(loss, n, 1, (whole, whole))
            for draws in (10, 25):
                for kinds in PAIRS:
                    yield Cell(loss, n, draws, kinds)
    for kinds in PAIRS:
        yield Cell(0.1, 100, 25, kinds, clean=0.5)


TABLES = (
    Cell(0.005, 400, 10, (whole, thin)),
    Cell(0.001, 5000, 25, (whole, thin)),
    Cell(0.1, 200, 25, (scattered, scattered)),
    Cell(0.1, 5000, 10, (whole, scattered)),
    Cell(0.1, 100, 50, (whole, scattered), clean=0.5),
)


def one_row(cell: Cell, *, repeats: int, seed: int = 0) -> dict[str, float]:
    """Shares of experiments with p below the level, with an interval that holds 0, and where these disagree."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(repeats):
        one = contrast("loss", *cell.outcomes(rng))
        is_apart = (one.p_value or 0) < LEVEL
        holds_zero = (one.difference.ci_low or 0) <= 0 <= (one.difference.ci_high or 0)
        found.append((is_apart, holds_zero, is_apart == holds_zero))
    return dict(zip(("told apart", "holds 0", "disagree"), np.mean(found, axis=0).tolist(), strict=True))


def one_table(cell: Cell, *, repeats: int, rows: int = ROWS, seed: int = 0) -> float:
    """The share of tables, of as many rows, in which one of the two is left unmarked somewhere."""
    rng = np.random.default_rng(seed)
    tables = ([cell.outcomes(rng) for _ in range(rows)] for _ in range(repeats))
    return float(np.mean([any("" in row for row in marks(table)) for table in tables]))


def main() -> None:
    """Prints both tables in percent, and writes them where it is asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2000, help="experiments per cell; a quarter of it of tables")
    parser.add_argument("--output", type=Path, default=RESULTS / "equal_losses", help="tables, without an ending")
    arguments = parser.parse_args()
    rows = [
        {"cell": cell.name, "rows": 1}
        | {name: 100 * share for name, share in one_row(cell, repeats=arguments.repeats).items()}
        for cell in cells()
    ]
    rows += [
        {"cell": cell.name, "rows": ROWS, "told apart": 100 * one_table(cell, repeats=arguments.repeats // 4)}
        for cell in TABLES
    ]
    print_table(rows)
    write_table(rows, arguments.output, repeats=arguments.repeats)


if __name__ == "__main__":
    main()
