"""Which model is best in each row of a table, and which are not distinguishable from it: paired over the images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from testbed.errors import ShapeError
from testbed.metrics.comparison import Outcomes
from testbed.metrics.factors import Factors
from testbed.metrics.intervals import sum_clusters
from testbed.metrics.paired import Ratio, contrast_interval
from testbed.metrics.permutation import NUM_FLIPS, holm, sign_flip_p

Mark = Literal["best", "alike", ""]
LEAST_WITHIN_ONE_SD = 3 / 16  # p-value of a sum that is no larger than its standard deviation under sign flips
_EQUAL = 1e-12  # of two shares that are the same but for rounding


def marks(rows: Sequence[Sequence[Outcomes | None]], *, key: int, confidence: float = 0.95) -> list[list[Mark]]:
    """By row the mark of each model: 'best' (all that are equally so), 'alike' for one not distinguishable from it.

    The number that is compared is relative corruption accuracy. The test of one run each flips signs of images (or
    clusters); of several runs that fit a model each it is whether the interval of the difference excludes 0. All pairs
    of models in all rows are corrected for, as the same images say which model is best: those tests that are not needed
    count as if they had shown nothing.

    Args:
        rows: the outcomes of each model in each row, on the same images; None where it has none. Runs are as many in
            all models, or one.
        key: of random sign patterns, see `testbed.metrics.permutation`.
        confidence: that all that is left unmarked is worse than the best of its row.
    Source: Holm 1979; of runs Bonferroni.
    """
    defined = [_defined(row) for row in rows]
    pairs, level = sum(len(there) * (len(there) - 1) // 2 for there in defined), 1 - confidence
    found: list[list[Mark]] = [["" for _ in row] for row in rows]
    asked: list[tuple[int, int, float]] = []
    for index, there in enumerate(defined):
        if len(there) < 2:
            continue
        values = {model: _value(outcomes) for model, outcomes in there.items()}
        leader = there[max(values, key=values.__getitem__)]
        for model, outcomes in there.items():
            if values[model] >= _value(leader) - _EQUAL:
                found[index][model] = "best"
            else:
                asked.append((index, model, _p(leader, outcomes, key=key, level=level, pairs=pairs)))
    corrected = holm([p for *_, p in asked] + [1.0] * (pairs - len(asked)))
    for (index, model, _), p in zip(asked, corrected, strict=False):
        if p > level * (1 + 1e-9):
            found[index][model] = "alike"
    return found


def _defined(row: Sequence[Outcomes | None]) -> dict[int, Outcomes]:
    """By their position the models that have a number in a row."""
    return {index: one for index, one in enumerate(row) if one is not None and one.clean.any()}


def _ratio(outcomes: Outcomes) -> Ratio:
    return outcomes.clean * outcomes.shifted, outcomes.clean


def _value(outcomes: Outcomes) -> float:
    part, whole = _ratio(outcomes)
    return float(part.sum() / whole.sum())


def _p(first: Outcomes, second: Outcomes, *, key: int, level: float, pairs: int) -> float:
    """p-value of the hypothesis that two models do not differ, one of `pairs`; of several runs level / pairs or 1."""
    ratios = [_ratio(first), _ratio(second)]
    if first.clean.shape[1] != second.clean.shape[1]:
        raise ShapeError("The models are not of the same images. Compare them on those that they share.")
    if len(first.clean) == len(second.clean) == 1:
        return _sign_flip(ratios, first.factors, key=key, level=level)
    (part, other_part), (whole, other_whole) = (np.broadcast_arrays(*pair) for pair in zip(*ratios, strict=True))
    num_draws = min(first.factors.num_draws, second.factors.num_draws)  # the wider interval, where they differ
    factors = first.factors.of(confidence=1 - level / pairs, side="both", num_draws=num_draws)
    _, interval = contrast_interval((part, whole), (other_part, other_whole), factors)
    return level / pairs if interval.low > 0 or interval.high < 0 else 1.0


def _sign_flip(ratios: Sequence[Ratio], factors: Factors, *, key: int, level: float) -> float:
    """p-value of the sign flips, from above where it is too large to matter or too small for random patterns to show.

    Args: level: at which all pairs together are tested; none is rejected above it.

    Source: Hoeffding, JASA 58, 1963; Holzman & Kleitman, Combinatorica 12, 1992.
    """
    (part, whole), (other_part, other_whole) = (
        [sum_clusters(factors.pool(one), factors.clusters) for one in ratio] for ratio in ratios
    )
    both = (part.sum() + other_part.sum()) / (whole.sum() + other_whole.sum())
    differences = (part - both * whole) - (other_part - both * other_whole)
    total, squares = float(differences.sum()), float(np.square(differences).sum())
    if total**2 <= squares and level < LEAST_WITHIN_ONE_SD:
        return 1.0
    bound = 2 * float(np.exp(-(total**2) / (2 * squares)))
    return bound if bound <= 1 / (1 + NUM_FLIPS) else sign_flip_p(differences, key=key)
