"""Results as JSON-able records and as one long table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from testbed.records import MetricValue
from testbed.results.model_facts import with_model_facts
from testbed.results.runs import Result
from testbed.store.evaluation import Evaluation
from testbed.store.reader import Reader

if TYPE_CHECKING:
    import pandas as pd

BY_DESIGN = {  # in a model's definition, and what its results are said to be
    "stochastic": "draws random numbers by design: another seed gives other answers to the same images",
    "adapts": "changes with what it is shown: its answers are those in one fixed order, from a fresh start",
}
COMPARISONS = ("mscr", "loss", "recovery")


def evaluation_record(evaluation: Evaluation, *, seed: int | None = None) -> dict[str, Any]:
    """One evaluation as a JSON-able record; `seed` as it was asked for, else the evaluation's own."""
    return {
        "model": evaluation.model,
        "eval_setting": evaluation.setting,
        "seed": max(evaluation.fit_seed, evaluation.noise_seed) if seed is None else seed,
        "n": evaluation.n,
        "num_draws": evaluation.num_draws,
        "numerics": dict(evaluation.numerics),
        "status": evaluation.status,
        "reason": evaluation.reason or None,
        "metrics": {value.name: number(value) for value in evaluation.metrics()},
        **{name: value for name, value in evaluation.model_spec.items() if name in BY_DESIGN},
    }


def comparison_records(result: Result) -> list[dict[str, Any]]:
    """The comparisons of a shifted setting with its clean parent as JSON-able records."""
    evaluation, clean = result.evaluation, result.runs[0].clean
    if clean is None:
        return []
    shared = {
        "model": evaluation.model,
        "eval_setting": evaluation.setting,
        "clean_eval_setting": clean.setting,
        "epsilon": evaluation.shift.epsilon if evaluation.shift else None,
        "numerics": dict(evaluation.numerics),
    }
    return [{"metric": name, **shared, **number(value)} for name, value in result.comparisons.items()]


def results_object(results: Sequence[Result], where: str) -> dict[str, Any]:
    """All results of a command as one JSON-able object; `where` is the database's URL or the log directory."""
    return {
        "evaluations": [evaluation_record(run.evaluation, seed=run.seed) for r in results for run in r.runs],
        "comparisons": [record for result in results for record in comparison_records(result)],
        "store": where,
    }


def number(value: MetricValue) -> dict[str, Any]:
    """A metric as a JSON-able record: value, interval, method, n, reason and detail."""
    record = {"value": value.value, "ci_low": value.ci_low, "ci_high": value.ci_high, "method": value.method or None}
    record |= {"n": value.n, "reason": value.reason or None}
    return record | ({"detail": dict(value.detail)} if value.detail else {})


def table(store: Reader, *, published: Collection[str] = ()) -> pd.DataFrame:
    """All stored metrics as one long table, and below them the numbers that were imported from `published` sources.

    Returns: the columns of `Reader.results`, and at the end the `model_type` of each model and its `baseline`, see
    `testbed.results.model_facts`.
    """
    return with_model_facts(store, store.results(published=published))
