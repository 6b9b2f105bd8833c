"""What common corruptions cost on the same images: accuracies over cells, which are corruptions at severities.

With N images, M of them right when clean: A_cl = M / N; A_c is the accuracy under a corruption; relative corruption
accuracy A_rel_c = (right on both) / M; recovery q = (wrong when clean, right under it) / (N - M). One identity ties
them: A_c = A_cl A_rel_c + (1 - A_cl) q. Over several cells numerators and denominators are summed and no ratio is
averaged; over several draws of a cell numerators are averaged. Images (or clusters of them) are the units: the cells
and draws of one image lie in it and are never taken for independent, and runs that fit a model each are random models.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.errors import ShapeError
from testbed.metrics.accuracy import percent
from testbed.metrics.changes import OTHER
from testbed.metrics.comparison import Outcomes, change
from testbed.metrics.factors import Factors, proportion
from testbed.metrics.intervals import Array, Side
from testbed.metrics.runs import accuracy_of_runs
from testbed.records import MetricValue

Cell = tuple[str, int | None]  # a corruption and its severity, None for one that has none
NUM_SEVERITIES = 5

# Of Hendrycks and Dietterich, in their order: mCE is a mean over the first 15.
COMMON = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "snow",
    "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression",
)  # fmt: skip
EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")

RELATIVE = "relative_corruption_accuracy"

# The bound that matters where one is asked for.
SIDES: dict[str, Side] = {
    "clean_accuracy": "lower", "corruption_accuracy": "lower", RELATIVE: "lower", "recovery": "lower",
    "raw_rce": "upper",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """Which images a model has right, clean and in each cell.

    Args:
        clean: (runs, n) 0 or 1.
        cells: (runs, n) each, the same images under the corruption: bool, or in [0, 1] the mean over draws.
        num_draws: by cell.
        factors: what varies by chance; the draws are counted by cell.
    """

    clean: Array
    cells: Mapping[Cell, NDArray[Any]]
    num_draws: Mapping[Cell, float]
    factors: Factors

    def __post_init__(self) -> None:
        for (name, severity), right in self.cells.items():
            if right.shape != self.clean.shape:
                raise ShapeError(
                    f"{name} at severity {severity} has outcomes of shape {right.shape}, the clean images "
                    f"{self.clean.shape}. Give (runs, n) of the same images."
                )

    @property
    def n(self) -> int:
        """Distinct images over all runs."""
        return int(np.count_nonzero(self.factors.pool(np.ones_like(self.clean))))

    def outcomes(self, cells: Iterable[Cell], *, side: Side | None = None) -> Outcomes:
        """Clean, and the mean over cells, each of the same weight. Args: side: of the intervals; None for its own."""
        return self.weighted(dict.fromkeys(cells, 1.0), side=side)

    def weighted(self, weights: Mapping[Cell, float], *, side: Side | None = None) -> Outcomes:
        """Clean, and the weighted mean over cells. Args: weights: positive, by cell."""
        total = sum(weights.values())
        shifted = sum(weight * np.asarray(self.cells[cell], np.float64) for cell, weight in weights.items()) / total
        draws = total**2 / sum(weight**2 / self.num_draws[cell] for cell, weight in weights.items())
        factors = self.factors.of(num_draws=draws, side=side or self.factors.side)
        return Outcomes(clean=self.clean, shifted=np.clip(shifted, 0, 1), factors=factors)

    def error(self, cell: Cell) -> float:
        """Share of the images that are wrong in a cell, over runs."""
        return 1 - float(np.mean(self.cells[cell]))


def accuracies(outcomes: Outcomes) -> dict[str, MetricValue]:
    """Clean, corruption and relative corruption accuracy, recovery and raw rCE by name, in percent, with intervals.

    Args: outcomes: of a cell or over several (`Grid.outcomes`), the side of its factors for all of them.
    Returns: raw_rce, the corruption error less the clean error, is in percentage points; over several runs the last
        three have the value of each in detail['runs']. None where it is undefined, with the reason.
    """
    factors = outcomes.factors
    found = [
        accuracy_of_runs("clean_accuracy", outcomes.clean, factors.of(num_draws=1)),
        accuracy_of_runs("corruption_accuracy", outcomes.shifted, factors),
        relative_corruption_accuracy(outcomes),
        change("recovery", outcomes),
        raw_rce(outcomes),
    ]
    return {value.name: value for value in found}


def relative_corruption_accuracy(outcomes: Outcomes) -> MetricValue:
    """Percent of the images right when clean that are right under the corruption, A_rel_c; None where none is (M = 0).

    Args: outcomes: as `accuracies`. Another set of images than the model's own is `among`.
    Returns: n is the number of images right when clean.
    Source: arXiv 2206.08237, 2022; the relative accuracy of Yan et al., ICLR 2020, for common corruptions.

    >>> relative_corruption_accuracy(Outcomes.of_runs([([1, 1, 1, 1, 0], [1, 1, 1, 0, 1])], Factors())).value
    75.0
    """
    name, right = RELATIVE, outcomes.clean
    n = int(np.count_nonzero(outcomes.factors.pool(right)))
    if not right.any():
        return MetricValue(name=name, value=None, n=n, reason="no image is right when clean")
    part = right * outcomes.shifted
    value, interval = proportion(part, right, outcomes.factors)
    detail: dict[str, Any] = {}
    if len(right) > 1:
        runs = zip(part.sum(-1), right.sum(-1), strict=True)
        detail["runs"] = [100 * float(both / clean) if clean else None for both, clean in runs]
    return percent(name, float(value), interval, n=n, detail=detail)


def raw_rce(outcomes: Outcomes) -> MetricValue:
    """Corruption error less clean error, A_cl - A_c, in percentage points; below 0 where the corruption helps.

    Args: outcomes: as `accuracies`.
    """
    factors = outcomes.factors
    found = change("accuracy_change", replace(outcomes, factors=factors.of(side=OTHER[factors.side])))
    detail = {"runs": [_minus(value) for value in found.detail["runs"]]} if "runs" in found.detail else {}
    return replace(found, name="raw_rce", value=_minus(found.value), ci_low=_minus(found.ci_high),
                   ci_high=_minus(found.ci_low), detail=detail)  # fmt: skip


def among(outcomes: Outcomes, images: Array) -> Outcomes:
    """The same, with other images in the place of those right when clean: for a set that several models share.

    Args: images: (runs, n) 0 or 1, each right when clean; a single run of the outcomes stands beside each.
    """
    clean, shifted = np.broadcast_arrays(images, outcomes.shifted)
    return replace(outcomes, clean=clean, shifted=shifted)


def common_correct(grids: Sequence[Grid]) -> Array:
    """(runs, n) 1 for the images that every model has right when clean, run by run; a single run stands beside each.

    Raises: ShapeError: the models are not of the same images, or have several runs, but not as many.
    """
    if reason := incomparable(grids):
        raise ShapeError(f"The models have no images in common, because {reason}.")
    return np.asarray(np.prod(np.broadcast_arrays(*(grid.clean for grid in grids)), axis=0))


def incomparable(grids: Sequence[Grid]) -> str:
    """Why models cannot be compared image by image; empty where they can."""
    if len({grid.clean.shape[1] for grid in grids}) > 1:
        return "they have other numbers of images"
    runs = {len(grid.clean) for grid in grids}
    if len(runs - {1}) > 1:
        return f"they have {', '.join(map(str, sorted(runs)))} runs that fit a model each"
    first = grids[0].factors.samples
    others = [grid.factors.samples for grid in grids]
    is_same = [one is first or (one is not None and first is not None and np.array_equal(one, first)) for one in others]
    return "" if all(is_same) else "their runs are of other images"


def in_order(names: Collection[str]) -> list[str]:
    """Names of corruptions in the order of Hendrycks and Dietterich, others behind them by name."""
    known = (*COMMON, *EXTRA)
    return [name for name in known if name in names] + sorted(set(names) - set(known))


def severities_of(cells: Iterable[Cell], corruption: str) -> list[int | None]:
    """The severities of a corruption that are among cells, in order."""
    return sorted((severity for name, severity in cells if name == corruption), key=lambda severity: severity or 0)


def missing_words(there: Collection[Cell], wanted: Iterable[Cell]) -> str:
    """Which of the wanted cells are not there, as 'severity 3 of fog and all of snow, frost'; empty where all are."""
    wanted = list(wanted)
    gone = [cell for cell in wanted if cell not in there]
    words, whole = [], []
    for name in dict.fromkeys(name for name, _ in gone):
        lost = [str(severity) for severity in severities_of(gone, name)]
        if len(lost) == len(severities_of(wanted, name)):
            whole.append(name)
        else:
            words.append(f"severity {', '.join(lost)} of {name}")
    words += [f"all of {', '.join(whole)}"] if whole else []
    return listed(words)


def listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence: 'a, b and c'."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _minus(value: float | None) -> float | None:
    return None if value is None else 0.0 - value
