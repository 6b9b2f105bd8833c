"""The metrics of single evaluations, computed from what is stored and stored beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from registry import registry
from testbed.class_subset import columns_in_subset
from testbed.errors import DataError, TestbedError, UnknownNameError
from testbed.metrics.accuracy import balanced_accuracy, per_class, top1, top5
from testbed.metrics.comparison import NETTED, compare
from testbed.records import IntArray, MetricValue
from testbed.signatures import argument_names
from testbed.store.evaluation import Evaluation
from testbed.store.store import Store


def correct(evaluation: Evaluation) -> NDArray[np.bool_]:
    """Whether each sample is classified right in each draw, [draws, n]."""
    is_first: NDArray[np.bool_] = evaluation.target_ranks() == 0
    return is_first


def clean_correct(shifted: Evaluation, clean: Evaluation) -> NDArray[np.bool_]:
    """Whether each sample of a shifted evaluation is classified right when clean, [n]: joined by sample id.

    Raises: DataError: the clean evaluation lacks a sample.
    """
    right: NDArray[np.bool_] = correct(clean)[0]
    if shifted.has_samples_of(clean):
        return right
    wanted, known = shifted.sample_ids(), clean.sample_ids()
    positions = {name: position for position, name in enumerate(known)}
    if (missing := next((name for name in wanted if name not in positions), None)) is not None:
        raise DataError(
            f"'{shifted.setting}' has the sample {missing}, which its clean setting '{clean.setting}' does not have. "
            "Name a clean setting of the same samples."
        )
    return np.asarray(right[[positions[name] for name in wanted]])


def undefined_comparisons(n: int, reason: str) -> list[MetricValue]:
    """MSCR, loss and recovery where they cannot be had."""
    return [MetricValue(name=name, value=None, n=n, reason=reason) for name in NETTED]


def store_metrics(store: Store, evaluation_id: int) -> None:
    """Computes an evaluation's own metrics from its stored shards and marks it complete."""
    evaluation = store.evaluation_by_id(evaluation_id)
    store.complete_evaluation(evaluation_id, own_metrics(evaluation))


def store_comparison(store: Store, shifted: Evaluation, clean: Evaluation) -> None:
    """Computes and stores how a shifted evaluation compares with its clean parent, or why it does not."""
    try:
        values = list(compare(clean_correct(shifted, clean), correct(shifted)).values())
    except DataError as error:
        values = undefined_comparisons(shifted.n, str(error))
    store.put_metrics(shifted.id, values, reference_evaluation_id=clean.id)


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
    found = with_class_names(found, evaluation.class_names)
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


def with_class_names(found: dict[str, MetricValue], names: Sequence[str]) -> dict[str, MetricValue]:
    """The accuracies with the name of the worst class, and of every class that is listed."""
    worst = found["worst_class_accuracy"]
    if worst.value is None:
        return found
    classes = [{"class": names[row["class_index"]], **row} for row in worst.detail["classes"]]
    detail = {**worst.detail, "class": names[worst.detail["class_index"]], "classes": classes}
    return found | {worst.name: replace(worst, detail=detail)}


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
