"""Accuracies from logits or target ranks: top-1, top-5, per class, and balanced over classes; with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import DataError, ShapeError
from testbed.metrics.intervals import Interval, Side, clustered_proportion, weighted_proportion
from testbed.records import IntArray, MetricValue

_BLOCK = 1 << 20  # logits compared at a time: a few MB of temporary memory, whatever the batch


def target_ranks(logits: NDArray[Any], targets: ArrayLike) -> NDArray[np.int32]:
    """Rank of each target among the classes, 0 for the best: classes above it, plus equal ones of lower index.

    Args:
        logits: (n, num_classes) float32, compared as such.
        targets: (n,) class indices; -1 for a class that has no column.
    Returns: (n,) int32; num_classes for a row with a non-finite logit, and for a target without a column.
    Raises: ShapeError: lengths differ. DataError: a target is no class.
    """
    logits, targets = np.asarray(logits, np.float32), np.asarray(targets)
    _check_targets(targets, logits)
    num_classes = logits.shape[1]
    ranks = np.empty(len(logits), np.int32)
    for rows in _blocks(logits):
        block, wanted = logits[rows], targets[rows, None]
        own = np.take_along_axis(block, wanted, axis=1)
        found = np.count_nonzero(block > own, axis=1)
        equal = block == own
        tied = np.flatnonzero(np.count_nonzero(equal, axis=1) > 1)
        found[tied] += np.count_nonzero(equal[tied] & (np.arange(num_classes) < wanted[tied]), axis=1)
        is_ranked = np.isfinite(block).all(axis=1) & (wanted[:, 0] >= 0)
        ranks[rows] = np.where(is_ranked, found, num_classes)
    return ranks


def best_ranks(logits: NDArray[Any], targets: ArrayLike, label_sets: IntArray | None) -> NDArray[np.int32]:
    """Rank of each image's best right class, as `target_ranks` ranks each among all classes.

    Args:
        logits, targets: as there.
        label_sets: (n, labels) all classes that are right, each row filled up with -1; None where only targets are.
    Returns: (n,) int32.
    Raises: as `target_ranks`.
    """
    if label_sets is None:
        return target_ranks(logits, targets)
    ranks = np.full(len(logits), np.shape(logits)[1], np.int32)
    for labels in label_sets.T:
        rows = np.flatnonzero(labels >= 0)
        ranks[rows] = np.minimum(ranks[rows], target_ranks(logits[rows], labels[rows]))
    return ranks


def predictions(logits: NDArray[Any]) -> NDArray[np.int32]:
    """Class with the largest logit, the first of equal ones; -1 for a row with a non-finite logit.

    Args: logits: (n, num_classes) float32, compared as such.
    Returns: (n,) int32.
    """
    logits = np.asarray(logits, np.float32)
    _check_logits(logits)
    found = np.empty(len(logits), np.int32)
    for rows in _blocks(logits):
        block = logits[rows]
        found[rows] = np.where(np.isfinite(block).all(axis=1), block.argmax(axis=1), -1)
    return found


def accuracy_topk(logits: Any, targets: Any, topk: Sequence[int] = (1, 5)) -> dict[str, float]:
    """Percent of images whose target is among the k largest logits, as {'top1': ..., 'top5': ...}.

    A k that is not below the number of classes is left out: the target cannot but be among them.

    Args:
        logits: (n, num_classes) array or tensor on any device, compared in float32.
        targets: (n,) class indices, array or tensor.
        topk: the k that are wanted.
    Raises: ShapeError: lengths differ. DataError: no image, or a target is no class.

    >>> accuracy_topk(np.array([[3, 2, 1], [3, 2, 1]]), np.array([0, 1]), topk=(1, 2))
    {'top1': 50.0, 'top2': 100.0}
    """
    scores = _to_numpy(logits, np.float32)
    ranks = target_ranks(scores, _to_numpy(targets, np.int64))
    if not len(ranks):
        raise DataError("Accuracy needs at least one image, but there is none.")
    return {f"top{k}": 100 * float(np.mean(ranks < k)) for k in topk if k < scores.shape[1]}


def top1(
    ranks: IntArray,
    targets: IntArray,
    *,
    num_classes: int,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    side: Side = "both",
) -> MetricValue:
    """Percent of images whose target has the largest logit; mean over images and draws.

    Args:
        ranks: (draws, n) of `target_ranks`; (n,) is one draw.
        targets: (n,) class indices; -1 for a class that is not among the setting's.
        num_classes: classes of the setting; a rank of `num_classes` marks a non-finite row, counted as wrong.
        clusters: (n,) labels of images that belong together, such as the frames of a video; the interval is over them.
        confidence, side: of the interval, see `testbed.metrics.intervals`.
    Returns: value in [0, 100], None without images; detail has the count of non-finite rows.
    """
    return _topk("top1", 1, ranks, targets, num_classes, clusters, confidence, side)


def top5(
    ranks: IntArray,
    targets: IntArray,
    *,
    num_classes: int,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    side: Side = "both",
) -> MetricValue:
    """Percent of images whose target is among the five largest logits; None with five classes or fewer. As `top1`."""
    if num_classes <= 5:
        reason = f"top-5 says nothing with {num_classes} classes"
        return MetricValue(name="top5", value=None, n=len(targets), reason=reason)
    return _topk("top5", 5, ranks, targets, num_classes, clusters, confidence, side)


def balanced_accuracy(
    ranks: IntArray, targets: IntArray, *, num_classes: int, confidence: float = 0.95, side: Side = "both"
) -> MetricValue:
    """Mean over the classes that have images of their top-1 accuracies, in percent. Arguments as `top1`."""
    correct = _correct(ranks, targets, 1)
    if not correct.size:
        return _empty("balanced_accuracy")
    values = correct.mean(axis=0)
    interval = balanced_interval(values, targets, num_draws=len(correct), confidence=confidence, side=side)
    classes, part, whole = _by_class(values, targets)
    value = (part.sum(-1) / whole.sum(-1)).mean()
    detail = {"num_classes_with_images": len(classes), "num_classes": num_classes}
    return percent("balanced_accuracy", value, interval, n=len(targets), detail=detail)


def per_class(
    ranks: IntArray, targets: IntArray, *, num_classes: int, confidence: float = 0.95, side: Side = "both"
) -> MetricValue:
    """Top-1 accuracy of the worst class, in percent; `detail['classes']` lists all that have images.

    The worst class's own interval holds for all classes at once (Bonferroni), because it was picked for being worst;
    the intervals of the list hold for one class each.

    Args: as `top1`.
    Returns: value of the worst class (the first of equals), n its images; the list has class_index, value, ci_low,
        ci_high and n.
    """
    correct = _correct(ranks, targets, 1)
    if not correct.size:
        return _empty("worst_class_accuracy")
    num_draws = len(correct)
    indices, counts, whole = _by_class(correct.sum(axis=0), targets)  # counts: equally bad classes are equal to the bit
    found = weighted_proportion(counts / num_draws, whole, num_draws=num_draws, confidence=confidence, side=side)
    sizes = whole.sum(-1).astype(int)
    means = counts.sum(-1) / (num_draws * sizes)
    classes = []
    for index, mean, low, high, n in zip(indices, means, found.low, found.high, sizes, strict=True):
        single = percent("", mean, Interval(low, high, ""), n=int(n))
        classes.append({"class_index": int(index), "value": single.value, "ci_low": single.ci_low,
                        "ci_high": single.ci_high, "n": single.n})  # fmt: skip
    worst = int(means.argmin())
    shared = 1 - (1 - confidence) / len(classes)
    own = correct[:, targets == indices[worst]].mean(axis=0)
    interval = weighted_proportion(
        own, np.ones_like(own), num_draws=num_draws, confidence=shared, side=side, is_exact=len(classes) > 1
    )
    interval = interval._replace(method=f"{interval.method}; Bonferroni over {len(classes)} classes")
    detail = {"class_index": int(indices[worst]), "num_classes": num_classes, "classes": classes}
    return percent("worst_class_accuracy", means[worst], interval, n=len(own), detail=detail)


def balanced_interval(
    values: ArrayLike,
    targets: ArrayLike,
    *,
    num_draws: float,
    confidence: float = 0.95,
    side: Side = "both",
    is_exact: bool = False,
) -> Interval:
    """Interval of the mean over classes of the class means of `values`, as a fraction.

    Images weigh as much as their class is small, and vary within their class. A class with few images may show no
    variation only because it is small: the interval reaches as far as the least known class's own, divided by the
    number of classes.

    Args:
        values: (..., n) in [0, 1], each image's mean over its draws.
        targets: (n,) class indices.
        num_draws, confidence, side, is_exact: as `testbed.metrics.intervals.weighted_proportion`.
    """
    values, targets = np.asarray(values, np.float64), np.asarray(targets)
    classes, inverse, counts = np.unique(targets, return_inverse=True, return_counts=True)
    weights = len(targets) / (len(classes) * counts[inverse])
    whole = weighted_proportion(weights * values, weights, num_draws=num_draws, strata=targets,
                                confidence=confidence, side=side, is_exact=is_exact)  # fmt: skip
    _, part, sizes = _by_class(values, targets)
    of_classes = weighted_proportion(
        part, sizes, num_draws=num_draws, confidence=confidence, side=side, is_exact=is_exact
    )
    means = part.sum(-1) / counts
    low = means.mean(-1) - (means - of_classes.low).max(-1) / len(classes)
    high = means.mean(-1) + (of_classes.high - means).max(-1) / len(classes)
    return Interval(np.minimum(whole.low, low), np.maximum(whole.high, high), whole.method)


def _by_class(values: NDArray[Any], targets: ArrayLike) -> tuple[NDArray[Any], ...]:
    """The classes that have images, their values in rows (..., classes, most images), and 1 where there is one."""
    classes, inverse, counts = np.unique(targets, return_inverse=True, return_counts=True)
    is_there = np.arange(counts.max()) < counts[:, None]
    rows = np.zeros((*values.shape[:-1], *is_there.shape))
    rows[..., is_there] = values[..., np.argsort(inverse, kind="stable")]
    return classes, rows, is_there.astype(np.float64)


def percent(
    name: str, value: float, interval: Interval, *, n: int, detail: dict[str, Any] | None = None
) -> MetricValue:
    """The metric's value and interval, given as fractions, in percent; a side without a bound has None."""
    low, high = (100 * float(bound) if np.isfinite(bound) else None for bound in (interval.low, interval.high))
    return MetricValue(name=name, value=100 * float(value), n=n, ci_low=low, ci_high=high, method=interval.method,
                       detail=detail or {})  # fmt: skip


def _topk(
    name: str,
    k: int,
    ranks: IntArray,
    targets: IntArray,
    num_classes: int,
    clusters: ArrayLike | None,
    confidence: float,
    side: Side,
) -> MetricValue:
    correct = _correct(ranks, targets, k)
    if not correct.size:
        return _empty(name)
    interval = clustered_proportion(
        correct.mean(axis=0), num_draws=len(correct), clusters=clusters, confidence=confidence, side=side
    )
    is_among = np.asarray(targets) >= 0  # the others have that rank as well
    detail = {"nonfinite": int(np.count_nonzero((np.asarray(ranks) >= num_classes) & is_among))}
    return percent(name, np.count_nonzero(correct) / correct.size, interval, n=len(targets), detail=detail)


def _correct(ranks: IntArray, targets: IntArray, k: int) -> NDArray[np.bool_]:
    """(draws, n): whether the target is among the k largest logits."""
    ranks = np.atleast_2d(ranks)
    if ranks.ndim != 2 or ranks.shape[1] != len(targets):
        raise ShapeError(f"Ranks have shape {ranks.shape}, but there are {len(targets)} targets. Give (draws, n).")
    return np.asarray(ranks < k)


def _empty(name: str) -> MetricValue:
    return MetricValue(name=name, value=None, n=0, reason="there are no images")


def _blocks(logits: NDArray[np.float32]) -> Iterator[slice]:
    """Ranges of rows with about `_BLOCK` logits each."""
    rows = max(1, _BLOCK // logits.shape[1])
    return (slice(start, start + rows) for start in range(0, len(logits), rows))


def _check_logits(logits: NDArray[np.float32]) -> None:
    if logits.ndim != 2 or logits.shape[1] == 0:
        raise ShapeError(f"Logits have shape {logits.shape}. Give (images, classes) with at least one class.")


def _check_targets(targets: NDArray[Any], logits: NDArray[np.float32]) -> None:
    _check_logits(logits)
    if targets.shape != logits.shape[:1]:
        raise ShapeError(f"Logits are for {len(logits)} images, but targets have shape {targets.shape}.")
    if len(targets) and not -1 <= targets.min() <= targets.max() < logits.shape[1]:
        raise DataError(
            f"Targets go from {targets.min()} to {targets.max()}, but the logits have {logits.shape[1]} classes, "
            "counted from 0."
        )


def _to_numpy(values: Any, dtype: type[np.generic]) -> NDArray[Any]:
    """An array of the given type from an array or a tensor; tensors may track gradients and lie on a device."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if dtype is np.float32 else values
        values = values.numpy()
    return np.asarray(values, dtype)
