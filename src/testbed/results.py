"""Stored evaluations to numbers: metrics, comparisons with the clean parent, records and one long table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from registry import registry
from testbed.class_subset import columns_in_subset
from testbed.errors import TestbedError, UnknownNameError
from testbed.metrics.accuracy import balanced_accuracy, per_class, top1, top5
from testbed.metrics.comparison import compare
from testbed.metrics.runs import over_runs, top1_over_runs
from testbed.records import IntArray, MetricValue
from testbed.signatures import argument_names
from testbed.store.evaluation import Evaluation
from testbed.store.reader import Reader
from testbed.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

COMPARISONS = ("mscr", "loss", "recovery")


def correct(evaluation: Evaluation) -> NDArray[np.bool_]:
    """Whether each sample is classified right in each draw, [draws, n]."""
    is_first: NDArray[np.bool_] = evaluation.target_ranks() == 0
    return is_first


# Computing and storing


def store_metrics(store: Store, evaluation_id: int) -> None:
    """Computes an evaluation's own metrics from its stored shards and marks it complete."""
    evaluation = store.evaluation_by_id(evaluation_id)
    store.complete_evaluation(evaluation_id, own_metrics(evaluation))


def store_comparison(store: Store, shifted: Evaluation, clean: Evaluation) -> None:
    """Computes and stores how a shifted evaluation compares with its clean parent."""
    values = compare(correct(clean)[0], correct(shifted))
    store.put_metrics(shifted.id, values.values(), reference_evaluation_id=clean.id)


def recompute(store: Store) -> int:
    """Computes every metric of every complete evaluation again, from the store alone; returns how many evaluations."""
    evaluations = [found for found in store.list_evaluations() if found.status == "complete"]
    for evaluation in evaluations:
        references = list(evaluation.comparisons())
        store.put_metrics(evaluation.id, own_metrics(evaluation))
        for reference in references:
            store_comparison(store, evaluation, store.evaluation_by_id(reference))
    return len(evaluations)


def own_metrics(evaluation: Evaluation) -> list[MetricValue]:
    """All metrics of one evaluation by itself: accuracies, the setting's `metrics_fn`, and registered metrics.

    A stale evaluation keeps what its former definition computed and today's does not.
    """
    ranks, targets = evaluation.target_ranks(), evaluation.targets()
    found = accuracies(ranks, targets, num_classes=len(evaluation.class_names))
    found["worst_class_accuracy"] = _with_class_names(found["worst_class_accuracy"], evaluation.class_names)
    if evaluation.is_stale:
        kept = {value.name: value for value in evaluation.metrics() if value.name not in found}
        return [*found.values(), *kept.values()]
    found.update({value.name: value for value in (*_setting_metrics(evaluation), *_registered_metrics(evaluation))})
    return list(found.values())


def accuracies(ranks: IntArray, targets: IntArray, *, num_classes: int) -> dict[str, MetricValue]:
    """Top-1, top-5, balanced and worst-class accuracy by name.

    A sample whose class is not among the setting's (target -1) counts as wrong in the first two, and in no class.
    """
    is_among = targets >= 0
    classified = [metric(ranks, targets, num_classes=num_classes) for metric in (top1, top5)]
    of_classes = [
        metric(ranks[:, is_among], targets[is_among], num_classes=num_classes)
        for metric in (balanced_accuracy, per_class)
    ]
    return {value.name: value for value in (*classified, *of_classes)}


def _with_class_names(worst: MetricValue, names: Sequence[str]) -> MetricValue:
    if worst.value is None:
        return worst
    classes = [{"class": names[row["class_index"]], **row} for row in worst.detail["classes"]]
    return replace(worst, detail={**worst.detail, "class": names[worst.detail["class_index"]], "classes": classes})


def _setting_metrics(evaluation: Evaluation) -> list[MetricValue]:
    """What the setting's own `metrics_fn` returns; the names it shares with built-in metrics are then its own."""
    try:
        setting = registry.eval_setting(evaluation.setting)
    except UnknownNameError:
        return []
    if setting.metrics_fn is None:
        return []
    given: dict[str, Callable[[], Any]] = {
        "image_paths": evaluation.sample_ids,
        "py_model": lambda: registry.model(evaluation.model, evaluation.label_space),
    }
    wanted = {name: given[name] for name in argument_names(setting.metrics_fn) if name in given}
    return _mean_over_draws("metrics_fn", evaluation, lambda draw: _call_metrics_fn(setting, evaluation, draw, wanted))


def _call_metrics_fn(
    setting: Any, evaluation: Evaluation, draw: int, wanted: Mapping[str, Callable[[], Any]]
) -> Mapping[str, float]:
    import torch  # the ancestor's metric functions take tensors

    extras = {name: get() for name, get in wanted.items()}  # a model from elsewhere cannot be had
    logits = torch.from_numpy(_logits(evaluation, draw))
    targets = torch.from_numpy(evaluation.dataset_targets().astype(np.int64))
    values: Mapping[str, float] = setting.metrics_fn(logits=logits, targets=targets, **extras)
    return values


def _registered_metrics(evaluation: Evaluation) -> list[MetricValue]:
    found = []
    for name, function in registry.metrics.items():
        found += _mean_over_draws(name, evaluation, partial(_named_call, name, function, evaluation))
    return found


def _named_call(name: str, function: Callable[..., Any], evaluation: Evaluation, draw: int) -> Mapping[str, float]:
    return {name: _call(function, evaluation, draw)}


def _logits(evaluation: Evaluation, draw: int) -> NDArray[np.float32]:
    """Logits of the setting's classes, [n, classes]."""
    return columns_in_subset(evaluation.logits(draw), evaluation.class_sublist, is_cut=evaluation.is_cut_by_model)


def _call(function: Callable[..., Any], evaluation: Evaluation, draw: int) -> float:
    available: dict[str, Callable[[], Any]] = {
        "logits": lambda: _logits(evaluation, draw),
        "targets": evaluation.targets,
        "predictions": lambda: evaluation.predictions()[draw],
        "target_ranks": lambda: evaluation.target_ranks()[draw],
        "class_names": lambda: evaluation.class_names,
        "sample_ids": evaluation.sample_ids,
    }
    wanted = [name for name in argument_names(function) if name in available]
    return float(function(**{name: available[name]() for name in wanted}))


def _mean_over_draws(
    source: str, evaluation: Evaluation, call: Callable[[int], Mapping[str, float]]
) -> list[MetricValue]:
    """The mean of each number over the draws. A function that raises costs its own numbers only."""
    try:
        draws = [call(draw) for draw in range(evaluation.num_draws)]
        means = {name: float(np.mean([float(values[name]) for values in draws])) for name in draws[0]}
    except Exception as error:
        text = " ".join(str(error).split())
        reason = text if isinstance(error, TestbedError) else f"{type(error).__name__}: {text}"
        return [MetricValue(name=source, value=None, n=evaluation.n, reason=reason)]
    return [
        MetricValue(name=name, value=value if np.isfinite(value) else None, n=evaluation.n,
                    reason="" if np.isfinite(value) else f"the function returned {value}", detail={"source": source})
        for name, value in means.items()
    ]  # fmt: skip


# Runs


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a model on a setting: the seed as it was asked for, and the clean evaluation it is compared with."""

    seed: int
    evaluation: Evaluation
    clean: Evaluation | None


@dataclass(frozen=True, kw_only=True)
class Result:
    """A model on a setting, over all its runs.

    Args:
        runs: one or more, in the order of their seeds.
        accuracies: over all runs, by name; empty where a run is not complete.
        comparisons: MSCR, loss and recovery by name; empty for a clean setting or where a run is not complete.
    """

    runs: tuple[Run, ...]
    accuracies: Mapping[str, MetricValue]
    comparisons: Mapping[str, MetricValue]

    @property
    def evaluation(self) -> Evaluation:
        """The first run's evaluation, which stands for what all runs share."""
        return self.runs[0].evaluation


def result_of(runs: Sequence[Run]) -> Result:
    """The runs of one model on one setting, compared with their clean parents where all are complete."""
    if any(run.evaluation.status != "complete" for run in runs):
        return Result(runs=tuple(runs), accuracies={}, comparisons={})
    pairs = [(run.evaluation, run.clean) for run in runs if run.clean and run.clean.status == "complete"]
    return Result(
        runs=tuple(runs),
        accuracies=accuracies_over_runs([run.evaluation for run in runs]),
        comparisons=compare_runs(pairs) if len(pairs) == len(runs) else {},
    )


def accuracies_over_runs(evaluations: Sequence[Evaluation]) -> dict[str, MetricValue]:
    """The accuracies of a model on a setting over its runs; those of a single one as they are stored.

    Draws of all runs are pooled. Where each run fits a model of its own, the interval of top-1 is widened by the spread
    of the runs.
    """
    distinct = list({evaluation.id: evaluation for evaluation in evaluations}.values())
    first = distinct[0]
    if len(distinct) == 1:
        return {value.name: value for value in first.metrics()}
    targets, num_classes = first.targets(), len(first.class_names)
    ranks = [evaluation.target_ranks() for evaluation in distinct]
    found = accuracies(np.concatenate(ranks), targets, num_classes=num_classes)
    found["worst_class_accuracy"] = _with_class_names(found["worst_class_accuracy"], first.class_names)
    if len({evaluation.fit_seed for evaluation in distinct}) > 1:
        singles = [top1(rank, targets, num_classes=num_classes) for rank in ranks]
        found["top1"] = top1_over_runs(singles)
    return found


def compare_runs(runs: Sequence[tuple[Evaluation, Evaluation]]) -> dict[str, MetricValue]:
    """MSCR, loss and recovery of a model on a shifted setting over its runs, each (shifted, clean).

    Runs of one fitted model differ in their noise alone: their draws are pooled. Runs that fit a model each are
    compared run by run, and the interval is over runs.
    """
    distinct = list({shifted.id: (shifted, clean) for shifted, clean in runs}.values())
    if len({clean.id for _, clean in distinct}) == 1:
        return compare(correct(distinct[0][1])[0], np.concatenate([correct(shifted) for shifted, _ in distinct]))
    return over_runs([(correct(clean)[0], correct(shifted)) for shifted, clean in distinct])


# Records


def evaluation_record(evaluation: Evaluation, *, seed: int | None = None) -> dict[str, Any]:
    """One evaluation as a JSON-able record; `seed` as it was asked for, else the evaluation's own."""
    return {
        "model": evaluation.model,
        "eval_setting": evaluation.setting,
        "seed": max(evaluation.fit_seed, evaluation.noise_seed) if seed is None else seed,
        "n": evaluation.n,
        "num_draws": evaluation.num_draws,
        "status": evaluation.status,
        "reason": evaluation.reason or None,
        "metrics": {value.name: _number(value) for value in evaluation.metrics()},
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
    }
    return [{"metric": name, **shared, **_number(value)} for name, value in result.comparisons.items()]


def results_object(results: Sequence[Result], where: str) -> dict[str, Any]:
    """All results of a command as one JSON-able object; `where` is the database's URL or the log directory."""
    return {
        "evaluations": [evaluation_record(run.evaluation, seed=run.seed) for r in results for run in r.runs],
        "comparisons": [record for result in results for record in comparison_records(result)],
        "store": where,
    }


def _number(value: MetricValue) -> dict[str, Any]:
    record = {"value": value.value, "ci_low": value.ci_low, "ci_high": value.ci_high, "method": value.method or None}
    record |= {"n": value.n, "reason": value.reason or None}
    return record | ({"detail": dict(value.detail)} if value.detail else {})


def table(store: Reader, *, published: Collection[str] = ()) -> pd.DataFrame:
    """All stored metrics as one long table, and below them the numbers that were imported from `published` sources."""
    return store.results(published=published)
