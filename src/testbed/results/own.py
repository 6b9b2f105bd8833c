"""The metrics of single evaluations, computed from what is stored and stored beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isclose

import numpy as np
from numpy.typing import NDArray

from testbed.errors import DataError
from testbed.metrics.accuracy import balanced_accuracy, per_class, top1, top5
from testbed.metrics.chance import suspicion
from testbed.metrics.comparison import NETTED, compare
from testbed.records import IntArray, MetricValue
from testbed.results.users_metrics import metrics_fn_of, registered_metrics, setting_metrics
from testbed.results.vote_metrics import vote_metrics
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
    store.put_metrics(shifted.id, compared(shifted, clean), reference_evaluation_id=clean.id)


def compared(shifted: Evaluation, clean: Evaluation) -> list[MetricValue]:
    """MSCR, loss and recovery of one evaluation, joined with a clean one by sample; undefined where that lacks one."""
    try:
        return list(undefined(compare(clean_correct(shifted, clean), correct(shifted)), shifted, clean).values())
    except DataError as error:
        return undefined_comparisons(shifted.n, str(error))


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
    """All metrics of one evaluation by itself: accuracies, votes, the setting's `metrics_fn`, and registered metrics.

    A user's metric of the name of a built-in one takes its place, unless it is the same number without an interval.
    An evaluation of a former definition keeps what that computed and today's does not.
    """
    found = with_class_names(accuracies_of(evaluation), evaluation.class_names)
    if not evaluation.is_current:
        kept = {value.name: value for value in evaluation.metrics() if value.name not in found}
        return [*found.values(), *kept.values()]
    votes = {value.name: value for value in vote_metrics(evaluation)}
    found.update(votes | undefined({name: votes[name] for name in votes if name != "abstention"}, evaluation))
    users = (*setting_metrics(evaluation), *registered_metrics(evaluation))
    built_in = dict(found)
    found.update({value.name: value for value in users if not _restates(value, built_in.get(value.name))})
    return list(found.values())


def _restates(value: MetricValue, built_in: MetricValue | None) -> bool:
    """Whether a user's metric is the bare number of a built-in one, which has an interval and details beside it."""
    if built_in is None or built_in.value is None or value.value is None:
        return False
    is_bare = value.ci_low is None and not value.method and value.detail.keys() <= {"source"}
    return is_bare and isclose(value.value, built_in.value, rel_tol=1e-6)


def without_labels(evaluation: Evaluation) -> str:
    """Why it is not known which answers are right, so that accuracies are undefined; empty where it is.

    The samples have no labels; or the setting has a `metrics_fn`, which then knows what the targets stand for, unless
    it relies on `target_ranks` as well. Of a function that is not registered here, what was computed with it tells.
    """
    fault = evaluation.label_fault()
    if not fault or (evaluation.dataset_targets() < 0).all():
        return fault
    if (function := metrics_fn_of(evaluation)) is not None:
        return "" if "target_ranks" in argument_names(function) else fault
    return fault if any(value.reason == fault for value in evaluation.metrics()) else ""


def guessing(evaluation: Evaluation) -> str | None:
    """Why the answers of a model to clean images are taken for guesses, as the end of a sentence; None where not."""
    if reason := without_labels(evaluation):
        return f"accuracy is undefined, because {reason}"
    return suspicion(
        evaluation.target_ranks()[0] == 0,
        evaluation.predictions()[0],
        evaluation.targets(),
        num_classes=len(evaluation.class_names),
    )


def accuracies_of(evaluation: Evaluation) -> dict[str, MetricValue]:
    """The accuracies of one evaluation by name; where samples are frames, with intervals over their sequences."""
    found = accuracies(
        evaluation.target_ranks(),
        evaluation.targets(),
        num_classes=len(evaluation.class_names),
        sequences=evaluation.sequences(),
    )
    return undefined(found, evaluation)


def undefined(found: Mapping[str, MetricValue], *evaluations: Evaluation) -> dict[str, MetricValue]:
    """The metrics; undefined, with the reason, where it is not known of an evaluation which answers are right."""
    reason = next(filter(None, map(without_labels, evaluations)), "")
    if not reason:
        return dict(found)
    return {name: MetricValue(name=name, value=None, n=value.n, reason=reason) for name, value in found.items()}


def accuracies(
    ranks: IntArray, targets: IntArray, *, num_classes: int, sequences: IntArray | None = None
) -> dict[str, MetricValue]:
    """Top-1, top-5, balanced and worst-class accuracy by name.

    A sample without a class among the setting's counts as wrong in the first two; the others are over the samples
    whose target is among them (not -1).

    Args:
        ranks: [draws, n] of the targets, or of the best right class.
        targets: [n]; -1 for a class that is not among the setting's.
        num_classes: of the setting.
        sequences: [n] that samples are frames of. Frames are no independent samples: the first two then have their
            intervals over sequences, and the others have none.
    """
    is_among = targets >= 0
    classified = [metric(ranks, targets, num_classes=num_classes, clusters=sequences) for metric in (top1, top5)]
    of_classes = [
        metric(ranks[:, is_among], targets[is_among], num_classes=num_classes)
        for metric in (balanced_accuracy, per_class)
    ]
    if sequences is not None:
        of_classes = [_without_interval(value) for value in of_classes]
    return {value.name: value for value in (*classified, *of_classes)}


def _without_interval(value: MetricValue) -> MetricValue:
    if "classes" not in value.detail:
        return replace(value, ci_low=None, ci_high=None, method="")
    classes = [{**row, "ci_low": None, "ci_high": None} for row in value.detail["classes"]]
    return replace(value, ci_low=None, ci_high=None, method="", detail={**value.detail, "classes": classes})


def with_class_names(found: dict[str, MetricValue], names: Sequence[str]) -> dict[str, MetricValue]:
    """The accuracies with the name of the worst class, and of every class that is listed."""
    worst = found["worst_class_accuracy"]
    if worst.value is None:
        return found
    classes = [{"class": names[row["class_index"]], **row} for row in worst.detail["classes"]]
    detail = {**worst.detail, "class": names[worst.detail["class_index"]], "classes": classes}
    return found | {worst.name: replace(worst, detail=detail)}
