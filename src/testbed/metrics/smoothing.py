"""What the votes of a smoothed classifier tell: its prediction or abstention, and the radius in which that holds.

A smoothed classifier answers with the class that its base classifier chooses most often under Gaussian noise. Votes are
a sample of these choices, so that statements about it hold with a probability of 1 - alpha for each image.

Source: Cohen, Rosenfeld & Kolter, ICML 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import DataError, ShapeError
from testbed.metrics.accuracy import percent
from testbed.metrics.intervals import clopper_pearson, clustered_proportion
from testbed.records import IntArray, MetricValue

ALPHA = 0.001  # that a statement about one image is wrong, at most
RADII = (0.0, 0.1, 0.25, 0.5, 1.0)  # in L2 and [0, 1] pixel units, at which certified accuracy is told
ABSTAINS = -1


def predict(votes: ArrayLike, *, alpha: float = ALPHA) -> NDArray[np.int64]:
    """The class that the smoothed classifier answers with, -1 where the votes are too even to tell.

    With the two largest counts a and b, it is told where an exact two-sided binomial test of a among a + b against 1/2
    has a p-value of alpha at most.

    Args:
        votes: (..., classes) counts; a row that is not finite has none.
        alpha: probability of another class than that of the smoothed classifier, at most.
    Returns: (...) class indices, the first of equal ones.
    Source: Cohen et al. 2019, PREDICT; Hung & Fithian 2019.
    """
    from scipy.special import bdtr

    counts = _counts(votes)
    largest = np.partition(counts, -2, axis=-1)[..., -2:]
    p_value = np.minimum(1, 2 * bdtr(largest[..., 0], largest.sum(axis=-1).astype(np.int64), 0.5))
    return np.where(p_value <= alpha, counts.argmax(axis=-1), ABSTAINS)


def lower_bound(successes: ArrayLike, num_samples: int, *, alpha: float = ALPHA) -> NDArray[np.float64]:
    """The probability of a class, at least: Clopper and Pearson's one-sided bound at confidence 1 - alpha."""
    return np.asarray(clopper_pearson(successes, num_samples, confidence=1 - alpha, side="lower").low)


def certified_radius(lower: ArrayLike, *, sigma: float, upper: ArrayLike | None = None) -> NDArray[np.float64]:
    """The L2 radius within which the smoothed classifier keeps its class, in the units of `sigma`; 0 where none.

    Args:
        lower: probability of that class, at least.
        sigma: standard deviation of the noise.
        upper: probability of any other class, at most; None for 1 - lower.
    Source: Cohen et al. 2019, theorem 1: sigma / 2 (q(lower) - q(upper)), q the normal distribution's quantile.
    """
    from scipy.special import ndtri

    lower = np.asarray(lower, np.float64)
    others = 1 - lower if upper is None else np.asarray(upper, np.float64)
    return np.asarray(np.maximum(sigma / 2 * (ndtri(lower) - ndtri(others)), 0))


def certify(
    selection: ArrayLike, votes: ArrayLike, *, sigma: float, alpha: float = ALPHA
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Classes that the smoothed classifier answers with, -1 where none can be told, and their certified radii.

    Args:
        selection: (..., classes) votes that choose the class.
        votes: (..., classes) other votes, all that were cast, that tell its probability.
        sigma, alpha: see `certified_radius` and `lower_bound`.
    Raises: ShapeError: the two are not alike.
    Source: Cohen et al. 2019, CERTIFY.
    """
    chosen, counts = _counts(selection), _counts(votes)
    if chosen.shape != counts.shape:
        raise ShapeError(f"Selection has shape {chosen.shape} and votes {counts.shape}. They must be equal.")
    classes = chosen.argmax(axis=-1)
    successes = np.take_along_axis(counts, classes[..., None], axis=-1)[..., 0]
    lower = np.asarray(
        clopper_pearson(successes, np.maximum(counts.sum(axis=-1), 1), confidence=1 - alpha, side="lower").low
    )
    is_told = lower > 0.5
    return np.where(is_told, classes, ABSTAINS), np.where(is_told, certified_radius(lower, sigma=sigma), 0.0)


def smoothing_metrics(
    votes: ArrayLike,
    targets: IntArray,
    *,
    sigma: float,
    num_samples: int,
    label_sets: IntArray | None = None,
    alpha: float = ALPHA,
) -> list[MetricValue]:
    """`abstention`, `smoothed_accuracy` and `certified_accuracy_at_R`, in percent of the images.

    An abstention counts as wrong. An image counts as certified at a radius where its own class has been shown, at
    confidence 1 - alpha, to be what the smoothed classifier answers with in all of that ball. The class is the image's,
    which no vote has chosen, so that the votes that show it need no others that select it. Of several right classes the
    votes do choose: the largest is then shown at confidence 1 - alpha / 2, for as their probabilities add up to 1 at
    most, that any of them is shown wrongly is twice as likely at most as it is for one.

    Args:
        votes: (draws, n, classes).
        targets: (n,) class indices; -1 for a class without a column.
        sigma: of the noise, in [0, 1] pixel units.
        num_samples: votes that were cast for each image.
        label_sets: (n, labels) all classes that are right, rows filled up with -1; None where only targets are.
        alpha: see `predict`.
    Raises: ShapeError: lengths differ. DataError: there are more votes than were cast.
    """
    counts, targets = _counts(votes), np.asarray(targets)
    if counts.ndim != 3 or counts.shape[1] != len(targets):
        raise ShapeError(f"Votes have shape {counts.shape}, but there are {len(targets)} targets.")
    if counts.size and counts.sum(axis=-1).max() > num_samples:
        raise DataError(f"An image has {counts.sum(axis=-1).max():g} votes, but {num_samples} were cast.")
    told = predict(counts, alpha=alpha)
    labels = targets[:, None] if label_sets is None else label_sets
    lower = _lower_of_right(counts, labels, num_samples, alpha=alpha)
    radii = np.where(lower > 0.5, certified_radius(lower, sigma=sigma), -1)
    largest = float(certified_radius(lower_bound(num_samples, num_samples, alpha=alpha), sigma=sigma))
    facts = {"alpha": alpha, "sigma": sigma, "num_samples": num_samples}
    return [
        _share("abstention", told == ABSTAINS, facts),
        _share("smoothed_accuracy", ((told[..., None] == labels) & (labels >= 0)).any(axis=-1), facts),
        *(_certified(radius, radii, largest, facts) for radius in RADII),
    ]


def _lower_of_right(
    counts: NDArray[np.float64], labels: IntArray, num_samples: int, *, alpha: float
) -> NDArray[np.float64]:
    """The probability (draws, n) of the right class that has most votes, at least."""
    of_each = np.take_along_axis(counts, np.broadcast_to(labels, (*counts.shape[:2], labels.shape[1])), axis=-1)
    most = np.where(labels >= 0, of_each, 0).max(axis=-1)
    is_chosen = np.count_nonzero(labels >= 0, axis=1) > 1
    bounds = (lower_bound(most, num_samples, alpha=share) for share in (alpha / 2, alpha))
    return np.where(is_chosen, *bounds)


def _certified(radius: float, radii: NDArray[np.float64], largest: float, facts: dict[str, Any]) -> MetricValue:
    name = f"certified_accuracy_at_{radius:g}"
    if radius <= largest:
        return _share(name, radii >= radius, {**facts, "radius": radius})
    reason = f"{facts['num_samples']} votes certify no radius beyond {largest:.4g}"
    return MetricValue(name=name, value=None, n=radii.shape[1], reason=reason)


def _share(name: str, is_one: NDArray[np.bool_], facts: dict[str, Any]) -> MetricValue:
    """Percent of the images (draws, n) that are one, with the interval over images."""
    if not is_one.size:
        return MetricValue(name=name, value=None, n=0, reason="there are no images")
    interval = clustered_proportion(is_one.mean(axis=0), num_draws=len(is_one))
    return percent(name, float(is_one.mean()), interval, n=is_one.shape[1], detail=facts)


def _counts(votes: ArrayLike) -> NDArray[np.float64]:
    counts = np.asarray(votes, np.float64)
    if counts.ndim == 0 or counts.shape[-1] < 2:
        raise ShapeError(f"Votes have shape {counts.shape}. Give (..., classes) with at least two classes.")
    is_finite = np.isfinite(counts).all(axis=-1, keepdims=True)
    return np.where(is_finite, counts, 0.0)
