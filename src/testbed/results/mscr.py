"""Is the loss under noise real? Every model and setting from the store, with intervals that hold for all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sqlalchemy import select

from testbed.metrics.comparison import NETTED, Outcomes, change
from testbed.metrics.intervals import Side
from testbed.metrics.runs import accuracy_of_runs, worst_class_of_runs
from testbed.records import MetricValue
from testbed.results.own import undefined, with_class_names
from testbed.results.precision import Precision
from testbed.results.records import number
from testbed.results.runs import by_fit, guessing_when_clean, outcomes_of, published_intervals
from testbed.results.stored import Group
from testbed.store import digests
from testbed.store.evaluation import Evaluation
from testbed.store.reader import Reader
from testbed.store.schema import separations

Verdict = Literal["loss", "gain", "not shown", "undefined"]

# The bound that matters where one is asked for: accuracy at least, loss at most, and whether the change is below 0.
SIDES: dict[str, Side] = {
    "clean_accuracy": "lower", "robust_accuracy": "lower", "mscr": "lower", "loss": "upper", "recovery": "lower",
    "worst_class_accuracy": "lower", "accuracy_change": "upper",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class MscrRow:
    """A model under noise, over all its stored runs.

    Args:
        runs: the shifted evaluations with their clean ones.
        metrics: by name, those of SIDES but the last, and over runs MSCR with the published intervals.
        accuracy_change: accuracy under noise less clean accuracy, percentage points; its interval and those of all rows
            together hold with the confidence that was asked for.
        verdict: 'loss' or 'gain' where that interval excludes 0.
    """

    runs: Group
    metrics: Mapping[str, MetricValue]
    accuracy_change: MetricValue
    verdict: Verdict

    @property
    def evaluation(self) -> Evaluation:
        """The first run's, which stands for what all runs share."""
        return self.runs[0].evaluation

    @property
    def num_fits(self) -> int:
        """Runs that fit a model each; 1 for a model that is there."""
        return len(by_fit(self.runs))

    @property
    def warning(self) -> str:
        """That the model guesses on the clean images; empty where it does not."""
        return guessing_when_clean(self.runs)


def mscr_rows(groups: Sequence[Group], precision: Precision) -> list[MscrRow]:
    """The row of each group, corrected for their number (Bonferroni).

    Args:
        groups: of runs whose clean evaluations are all there.
        precision: of the intervals.
    Raises: DataError: a sample is in no cluster. StoreError: an evaluation is not stored as a whole.
    """
    return [_row(group, precision, len(groups)) for group in groups]


def undefined_levels(store: Reader) -> list[dict[str, str]]:
    """Data sets and norms for which no level follows from the separation, as it is 0: dataset, norm and reason."""
    wanted = (
        select(separations).where(separations.c.min_distance == 0).order_by(separations.c.dataset, separations.c.norm)
    )
    with store.reading() as connection:
        digests.check(connection, separations)
        rows = connection.execute(wanted).all()
    return [
        {
            "dataset": row.dataset,
            "norm": row.norm,
            "reason": f"the minimal class separation of {row.splits} is 0: {' and '.join(row.pair_ids)} are equal and "
            "of different class",
        }
        for row in rows
    ]


def mscr_record(row: MscrRow, separation: Mapping[str, Any] | None) -> dict[str, Any]:
    """A row as a JSON-able record.

    Args: separation: that the noise level is half of; None for a level that the user chose.
    """
    evaluation, shift = row.evaluation, row.evaluation.shift
    clean = row.runs[0].clean
    return {
        "model": evaluation.model,
        "dataset": evaluation.dataset,
        "eval_setting": evaluation.setting,
        "clean_eval_setting": clean.setting if clean else None,
        "norm": shift.norm if shift else None,
        "epsilon": shift.epsilon if shift else None,
        "separation": dict(separation) if separation else None,
        "numerics": dict(evaluation.numerics),
        "n": evaluation.n,
        "num_draws": evaluation.num_draws,
        "seeds": [run.seed for run in row.runs],
        "num_fitted_models": row.num_fits,
        "metrics": {name: number(value) for name, value in row.metrics.items()},
        "accuracy_change": number(row.accuracy_change),
        "verdict": row.verdict,
        "warning": row.warning or None,
    }


def _row(group: Group, precision: Precision, num_rows: int) -> MscrRow:
    outcomes = outcomes_of(by_fit(group), precision)
    changes = {name: change(name, _with_side(outcomes, name, precision)) for name in NETTED}
    shown = _with_side(outcomes, "accuracy_change", precision)
    accuracy_change = change("accuracy_change", replace(shown, factors=shown.factors.for_all(num_rows)))
    compared = [one for run in group for one in (run.evaluation, run.clean) if one]
    metrics = undefined(_accuracies(group, outcomes, precision) | changes | published_intervals(outcomes), *compared)
    accuracy_change = undefined({"": accuracy_change}, *compared)[""]
    return MscrRow(runs=group, metrics=metrics, accuracy_change=accuracy_change, verdict=_verdict(accuracy_change))


def _accuracies(group: Group, outcomes: Outcomes, precision: Precision) -> dict[str, MetricValue]:
    fits = [fit[0].evaluation for fit in by_fit(group)]
    targets, names = np.array([fit.targets() for fit in fits]), fits[0].class_names
    factors = {name: _with_side(outcomes, name, precision).factors for name in SIDES}
    found = [
        accuracy_of_runs("clean_accuracy", outcomes.clean, factors["clean_accuracy"].of(num_draws=1)),
        accuracy_of_runs("robust_accuracy", outcomes.shifted, factors["robust_accuracy"]),
        worst_class_of_runs(outcomes.shifted, targets, factors["worst_class_accuracy"], num_classes=len(names)),
    ]
    return with_class_names({value.name: value for value in found}, names)


def _with_side(outcomes: Outcomes, name: str, precision: Precision) -> Outcomes:
    factors = outcomes.factors.of(side=precision.side(SIDES[name]), confidence=precision.confidence)
    return replace(outcomes, factors=factors)


def _verdict(change: MetricValue) -> Verdict:
    if change.value is None:
        return "undefined"
    if change.ci_high is not None and change.ci_high < 0:
        return "loss"
    return "gain" if change.ci_low is not None and change.ci_low > 0 else "not shown"
