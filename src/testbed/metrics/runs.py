"""Accuracies over runs: top-1, top-5, balanced over classes, and of the worst class; each with its interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from testbed.errors import ShapeError
from testbed.metrics.accuracy import balanced_interval, percent
from testbed.metrics.factors import Factors, bounded, proportion
from testbed.metrics.intervals import Array, Interval
from testbed.records import IntArray, MetricValue

NO_IMAGES = "there are no images"


def accuracies_of_runs(
    ranks: Sequence[IntArray], targets: IntArray, factors: Factors, *, num_classes: int
) -> dict[str, MetricValue]:
    """Top-1, top-5, balanced and worst-class accuracy over runs by name, each the mean over runs, images and draws.

    Args:
        ranks: per run (draws, n) of `testbed.metrics.accuracy.target_ranks`.
        targets: (runs, n) class indices; -1 for a class that is not among the setting's: wrong in the first two, and
            in no class.
        factors: what varies by chance; the draws are counted here.
        num_classes: classes of the setting.
    Returns: n is the number of distinct images; of the worst class, those of that class.
    """
    if targets.ndim != 2 or [rank.shape[-1] for rank in ranks] != [targets.shape[1]] * len(targets):
        shapes = ", ".join(str(rank.shape) for rank in ranks)
        raise ShapeError(f"Ranks have shapes {shapes}, targets {targets.shape}. Give (draws, n) per run and (runs, n).")
    factors = factors.of(num_draws=float(np.mean([len(rank) for rank in ranks])))
    first, fifth = (np.array([(rank < k).mean(axis=0) for rank in ranks]) for k in (1, 5))
    pairs = zip(ranks, targets >= 0, strict=True)  # a class that is not among the setting's has that rank as well
    nonfinite = sum(int(np.count_nonzero((rank >= num_classes) & is_among)) for rank, is_among in pairs)
    top5 = accuracy_of_runs("top5", fifth, factors)
    if num_classes <= 5:
        reason = f"top-5 says nothing with {num_classes} classes"
        top5 = MetricValue(name="top5", value=None, n=top5.n, reason=reason)
    found = [accuracy_of_runs("top1", first, factors, nonfinite=nonfinite), top5,
             balanced_of_runs(first, targets, factors, num_classes=num_classes),
             worst_class_of_runs(first, targets, factors, num_classes=num_classes)]  # fmt: skip
    return {value.name: value for value in found}


def accuracy_of_runs(name: str, correct: Array, factors: Factors, **detail: int) -> MetricValue:
    """Percent of images that are right, over runs.

    Args:
        name: of the metric.
        correct: (runs, n) in [0, 1], mean over draws.
        factors: what varies by chance.
        detail: of the metric.
    """
    if not correct.size:
        return MetricValue(name=name, value=None, n=0, reason=NO_IMAGES)
    value, interval = proportion(correct, np.ones_like(correct), factors)
    n = np.count_nonzero(factors.pool(np.ones_like(correct)))
    return percent(name, float(value), interval, n=int(n), detail=detail)


def balanced_of_runs(correct: Array, targets: IntArray, factors: Factors, *, num_classes: int) -> MetricValue:
    """Mean over runs of their balanced accuracies, in percent. Args: as `accuracy_of_runs` and `accuracies_of_runs`."""
    is_among = targets >= 0
    if not is_among.any():
        return MetricValue(name="balanced_accuracy", value=None, n=0, reason=NO_IMAGES)
    weights = np.array([_class_weights(row) for row in targets])
    value = (weights * correct).sum(-1).mean()
    times, own = factors.pool(is_among), _pooled_targets(targets, factors)
    images = times > 0
    means = factors.pool(correct * is_among)[images] / times[images]
    options = factors.pooled_options(correct)
    del options["clusters"]  # classes are the strata
    interval = balanced_interval(means, own[images], **options)
    centre = np.mean([means[own[images] == index].mean() for index in np.unique(own[images])])
    interval = Interval(interval.low + value - centre, interval.high + value - centre, interval.method)
    residuals = weights * correct - value * is_among / is_among.sum(-1, keepdims=True)
    interval = bounded(factors.over_runs(interval, value, residuals, is_share=True), 0, 1)
    detail = {"num_classes_with_images": len(np.unique(own[images])), "num_classes": num_classes}
    return percent("balanced_accuracy", value, interval, n=int(np.count_nonzero(images)), detail=detail)


def worst_class_of_runs(correct: Array, targets: IntArray, factors: Factors, *, num_classes: int) -> MetricValue:
    """Accuracy of the class that is worst over all runs, in percent; `detail['classes']` lists all that have images.

    The interval holds for all classes at once (Bonferroni), because the class was picked for being worst.

    Args: as `accuracy_of_runs` and `accuracies_of_runs`.
    """
    classes = np.unique(targets[targets >= 0])
    if not len(classes):
        return MetricValue(name="worst_class_accuracy", value=None, n=0, reason=NO_IMAGES)
    right, size = (np.bincount(targets[targets >= 0], values[targets >= 0])[classes]
                   for values in (correct, np.ones_like(correct)))  # fmt: skip
    means = right / size
    worst = int(classes[np.round(means, 12).argmin()])  # the first of those that are equally bad
    is_worst = (targets == worst).astype(np.float64)
    value, interval = proportion(correct * is_worst, is_worst, factors.for_all(len(classes)))
    interval = interval._replace(method=f"{interval.method}; Bonferroni over {len(classes)} classes")
    counts = np.bincount(_pooled_targets(targets, factors) + 1, minlength=classes.max() + 2)[1:]
    listed = [{"class_index": int(index), "value": 100 * float(mean), "n": int(counts[index])}
              for index, mean in zip(classes, means, strict=True)]  # fmt: skip
    detail = {"class_index": worst, "num_classes": num_classes, "classes": listed}
    return percent("worst_class_accuracy", float(value), interval, n=int(counts[worst]), detail=detail)


def _class_weights(targets: IntArray) -> Array:
    """(n,) what one image of a run adds to the run's balanced accuracy when it is right."""
    counts = np.bincount(targets[targets >= 0])
    weights = 1 / (np.count_nonzero(counts) * np.maximum(counts, 1))
    return np.where(targets >= 0, weights[targets], 0.0)


def _pooled_targets(targets: IntArray, factors: Factors) -> NDArray[np.int64]:
    """(num_samples,) the class of each distinct image; -1 for one that is in no run."""
    if factors.samples is None:
        return np.asarray(targets[0], np.int64)
    pooled = np.full(factors.num_samples, -1)
    pooled[factors.samples] = targets
    return pooled
