"""Whether a simulator of corruptions is well-posed on a data set: what it should do, asked of what models answer.

A corruption takes information away. So images that are wrong when clean should not come back right more often than by
guessing, accuracy should not rise above clean accuracy, outputs should not be those of the clean images to the bit, and
a higher severity should not be easier. None of this can hold exactly, as mild corruptions tip borderline images either
way: each is asked beyond chance, corrected for the number of questions to a model (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from testbed.metrics.accuracy import percent
from testbed.metrics.comparison import change
from testbed.metrics.corruption import Cell, Grid, in_order, listed, severities_of
from testbed.metrics.paired import contrast_interval
from testbed.records import MetricValue

Kind = Literal["recovers", "above clean", "identical", "order"]
Identical = Literal["logits", "predictions"]

# Milder at a higher severity also in the published data: see AlexNet's errors, and accuracies of many models.
NOT_ORDERED = ("snow", "elastic_transform", "saturate")


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """What a model puts out in a cell, beside being right or wrong.

    Args:
        guessing: see `guessing_rate`; None where no image is wrong when clean.
        identical: 'logits' where all are those of the clean images, 'predictions' where all of these are and the logits
            differ or are not known; else None.
    """

    guessing: float | None
    identical: Identical | None = None


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that a well-posed simulator would not do, at some severities of a corruption.

    Args:
        values: at each severity the number behind it; the interval's lower bound holds for all questions together.
        sentence: that says so.
    """

    kind: Kind
    corruption: str
    severities: tuple[int | None, ...]
    sentence: str
    values: tuple[MetricValue, ...] = field(default=())


def guessing_rate(predictions: ArrayLike, targets: ArrayLike, is_wrong: ArrayLike) -> float | None:
    """The null of recovery: how often images wrong when clean would be right if predictions told nothing of the image.

    The sum over classes of the share of predictions that are the class, times the share of the images wrong when clean
    that are of it. For images that a corruption destroys the predictions have no part in the image, and this is their
    chance of being right: 1 / classes where the classes are balanced, whatever the model answers. A constant 1 /
    classes would be wrong for other data, where a destroyed image is mostly taken for one and the same class.

    Args:
        predictions: (draws, n) or (n,) under the corruption; -1 for none.
        targets: (n,) class indices.
        is_wrong: (n,) bool, of the clean images.
    Returns: a fraction; None where no image is wrong when clean.

    >>> guessing_rate([0, 0, 0, 1], [0, 1, 2, 3], [False, True, False, False])
    0.25
    """
    found, wanted, wrong = np.atleast_2d(predictions), np.asarray(targets), np.asarray(is_wrong, bool)
    if not wrong.any():
        return None
    share = np.bincount(wanted[wrong & (wanted >= 0)], minlength=1) / np.count_nonzero(wrong)
    named = found[(found >= 0) & (found < len(share))]
    return float(np.bincount(named, minlength=len(share)) @ share / found.size)


def recoveries(grid: Grid, outputs: Mapping[Cell, Outputs]) -> dict[Cell, MetricValue]:
    """Recovery q by cell, in percent, with its interval; detail['guessing'] is its null in percent."""
    found = {}
    for cell in grid.cells:
        value, null = change("recovery", grid.outcomes([cell])), outputs[cell].guessing
        detail = {**value.detail, "guessing": None if null is None else 100 * null}
        found[cell] = replace(value, detail=detail)
    return found


def findings(grid: Grid, outputs: Mapping[Cell, Outputs]) -> list[Finding]:
    """What a well-posed simulator would not do, by corruption.

    Args:
        grid: the model's outcomes; the confidence of its factors is that of all findings together.
        outputs: of every cell.
    """
    steps = {
        name: list(pairwise(severities_of(grid.cells, name))) for name in in_order({name for name, _ in grid.cells})
    }
    questions = 2 * len(grid.cells) + sum(map(len, steps.values()))
    sure = replace(grid, factors=grid.factors.of(side="lower").for_all(questions))
    found: list[Finding] = []
    for name, pairs in steps.items():
        cells = [(name, severity) for severity in severities_of(grid.cells, name)]
        found += _identical(cells, outputs) + _recovers(sure, cells, outputs)
        found += _above_clean(sure, cells) + _order(sure, name, pairs)
    return found


def _identical(cells: Sequence[Cell], outputs: Mapping[Cell, Outputs]) -> list[Finding]:
    found = []
    for what in ("logits", "predictions"):
        same = [cell for cell in cells if outputs[cell].identical == what]
        if same:
            rest = "no image is changed, or not as the model sees it" if what == "logits" else "it changes no answer"
            sentence = f"{_where(same)}: all {what} are those of the clean images; {rest}."
            found.append(_finding("identical", same, sentence))
    return found


def _recovers(grid: Grid, cells: Sequence[Cell], outputs: Mapping[Cell, Outputs]) -> list[Finding]:
    values = {cell: change("recovery", grid.outcomes([cell])) for cell in cells}
    nulls = {cell: 100 * (outputs[cell].guessing or 0.0) for cell in cells}
    above = [cell for cell in cells if (low := values[cell].ci_low) is not None and low > nulls[cell]]
    if not above:
        return []
    rates = listed([f"{values[cell].value:.1f} % (guessing: {nulls[cell]:.1f} %)" for cell in above])
    sentence = (
        f"{_where(above)}: of the images wrong when clean {rates} are right, more than by guessing, so that A_c / A_cl "
        "is above A_rel_c."
    )
    return [_finding("recovers", above, sentence, [values[cell] for cell in above])]


def _above_clean(grid: Grid, cells: Sequence[Cell]) -> list[Finding]:
    values = {cell: change("accuracy_change", grid.outcomes([cell])) for cell in cells}
    above = [cell for cell in cells if (low := values[cell].ci_low) is not None and low > 0]
    if not above:
        return []
    gains = listed([f"{values[cell].value:.2f}" for cell in above])
    sentence = f"{_where(above)}: accuracy is above clean accuracy beyond chance, by {gains} percentage points."
    return [_finding("above clean", above, sentence, [values[cell] for cell in above])]


def _order(grid: Grid, name: str, steps: Sequence[tuple[Any, Any]]) -> list[Finding]:
    values = {step: _rise(grid, name, *step) for step in steps}
    rising = {step: value for step, value in values.items() if value.ci_low is not None and value.ci_low > 0}
    if not rising:
        return []
    rises = listed([f"from {low} to {high} by {value.value:.2f}" for (low, high), value in rising.items()])
    known = "; its severities are known not to be ordered in the published data either" if name in NOT_ORDERED else ""
    sentence = f"{name}: accuracy rises with severity beyond chance, {rises} percentage points{known}."
    return [_finding("order", [(name, high) for _, high in rising], sentence, list(rising.values()))]


def _rise(grid: Grid, name: str, lower: int, higher: int) -> MetricValue:
    """Accuracy at a severity less that at the one before, in percentage points."""
    before, after = (grid.outcomes([(name, severity)]) for severity in (lower, higher))
    ones = np.ones_like(before.clean)
    num_draws = min(before.factors.num_draws, after.factors.num_draws)  # the wider interval, where they differ
    factors = after.factors.of(num_draws=num_draws)
    value, interval = contrast_interval((after.shifted, ones), (before.shifted, ones), factors)
    return percent("accuracy_rise", float(value), interval, n=grid.n)


def _finding(kind: Kind, cells: Sequence[Cell], sentence: str, values: Sequence[MetricValue] = ()) -> Finding:
    severities = tuple(severity for _, severity in cells)
    return Finding(kind=kind, corruption=cells[0][0], severities=severities, sentence=sentence, values=tuple(values))


def _where(cells: Sequence[Cell]) -> str:
    severities = [str(severity) for _, severity in cells if severity is not None]
    return f"{cells[0][0]} at severity {listed(severities)}" if severities else cells[0][0]
