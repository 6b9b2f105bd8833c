"""Which model is best in each row of a table, and which are not distinguishable from it: paired over the images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from testbed.errors import ShapeError
from testbed.metrics.comparison import Outcomes
from testbed.metrics.paired import PairedDifference, Ratio
from testbed.metrics.significance import holm

Mark = Literal["best", "alike", ""]
_EQUAL = 1e-12  # of two shares that are the same but for rounding


def marks(rows: Sequence[Sequence[Outcomes | None]], *, key: int = 0, confidence: float = 0.95) -> list[list[Mark]]:
    """By row the mark of each model: 'best' (all that are equally so), 'alike' for one not distinguishable from it.

    The number that is compared is relative corruption accuracy, by the p-value of `testbed.metrics.paired`: the level
    at which the interval of the difference excludes 0. All pairs of models in all rows are corrected for, as the same
    images say which model is best: those tests that are not needed count as if they had shown nothing.

    Args:
        rows: the outcomes of each model in each row, on the same images; None where it has none. Runs are as many in
            all models, or one.
        key: as `testbed.metrics.paired.contrast`.
        confidence: that all that is left unmarked is worse than the best of its row.
    Source: Holm 1979.
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
                asked.append((index, model, _p(leader, outcomes, confidence)))
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


def _p(first: Outcomes, second: Outcomes, confidence: float) -> float:
    """p-value of the hypothesis that two models do not differ."""
    if first.clean.shape[1] != second.clean.shape[1]:
        raise ShapeError("The models are not of the same images. Compare them on those that they share.")
    num_draws = min(first.factors.num_draws, second.factors.num_draws)  # the wider interval, where they differ
    factors = first.factors.of(num_draws=num_draws)
    return PairedDifference.of(_ratio(first), _ratio(second), factors).p_value(confidence=confidence)
