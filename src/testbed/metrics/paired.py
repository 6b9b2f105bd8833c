"""Two models on the same images and the same noise: by how much their MSCR, loss or accuracy differs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from testbed.errors import ShapeError
from testbed.metrics.accuracy import percent
from testbed.metrics.changes import linearised, ratio_difference
from testbed.metrics.comparison import Outcomes
from testbed.metrics.factors import Factors
from testbed.metrics.intervals import Array, Interval, Side, sum_clusters
from testbed.metrics.permutation import Alternative, mcnemar_p, sign_flip_p
from testbed.records import MetricValue

Ratio = tuple[Array, Array]  # part and whole, (..., runs, n) each: the number is the ratio of their sums
ALTERNATIVES: dict[Side, Alternative] = {"both": "two-sided", "lower": "greater", "upper": "less"}


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A number of two models and how it differs.

    Args:
        difference: first less second, in percentage points, with its interval; None where either is undefined.
        values: of the two models, in percent.
        p_value: of the hypothesis that they do not differ; None where there is no test, and `test` says why.
        test: its name.
        num_differing: images (or clusters) on which the two models do not do the same.
    """

    difference: MetricValue
    values: tuple[float | None, float | None]
    p_value: float | None
    test: str
    num_differing: int


def contrast(name: str, first: Outcomes, second: Outcomes, *, key: int) -> Contrast:
    """How two models differ in MSCR or in loss on the same images under the same draws of the noise.

    Args:
        name: 'mscr' or 'loss'.
        first, second: with the same runs, images and factors.
        key: of the random sign patterns, see `testbed.metrics.permutation`.
    Raises: ShapeError: the two are not of the same images.
    """
    return _contrast(name, first.parts(name), second.parts(name), first.factors, key=key)


def accuracy_contrast(first: Array, second: Array, factors: Factors, *, key: int) -> Contrast:
    """How two models differ in accuracy; with one answer per image by McNemar's test.

    Args:
        first, second: (runs, n) in [0, 1], whether each image is right, mean over draws.
        factors: what varies by chance, for both.
        key: as `contrast`.
    """
    found = _contrast("accuracy", (first, np.ones_like(first)), (second, np.ones_like(second)), factors, key=key)
    is_single = len(first) == 1 and factors.num_draws == 1 and factors.clusters is None
    if not is_single:
        return found
    p_value = mcnemar_p(first[0] > 0, second[0] > 0, alternative=ALTERNATIVES[factors.side])
    return replace(found, p_value=p_value, test="McNemar, exact")


def contrast_interval(first: Ratio, second: Ratio, factors: Factors) -> tuple[Array, Interval]:
    """The difference of two ratios, as a fraction, and its interval. Args: (..., runs, n) each, as `Outcomes.parts`."""
    parts, wholes = (np.broadcast_arrays(*pair) for pair in zip(first, second, strict=True))
    value, options = _value(first) - _value(second), factors.pooled_options(parts[0])
    pooled = [[factors.pool(one) for one in pair] for pair in (parts, wholes)]
    images = ratio_difference((pooled[0][0], pooled[0][1]), (pooled[1][0], pooled[1][1]), **options)
    flat = [[one.reshape(*one.shape[:-2], -1) for one in pair] for pair in (parts, wholes)]
    unit, _, residuals = linearised(*flat)
    residuals = residuals.reshape(parts[0].shape) * unit[..., None, None] * parts[0].shape[-2]
    return value, factors.over_runs(images, value, residuals)


def _contrast(name: str, first: Ratio, second: Ratio, factors: Factors, *, key: int) -> Contrast:
    if first[0].shape != second[0].shape:
        raise ShapeError(
            f"The models have outcomes of shape {first[0].shape} and {second[0].shape}. Give the same images."
        )
    n = int(np.count_nonzero(factors.pool(np.ones_like(first[0]))))
    values = (_percent(first), _percent(second))
    if None in values:
        nothing = MetricValue(name=name, value=None, n=n, reason="a model is right on no image when clean")
        return Contrast(difference=nothing, values=values, p_value=None, test="none", num_differing=0)
    value, interval = contrast_interval(first, second, factors)
    units = [[sum_clusters(factors.pool(one), factors.clusters) for one in pair] for pair in (first, second)]
    differing = np.any([np.abs(one - other) > 1e-12 for one, other in zip(*units, strict=True)], axis=0)
    p_value, test = None, "none: the runs' spread is in the interval"
    if len(first[0]) == 1:
        p_value = sign_flip_p(_exchangeable(units), key=key, alternative=ALTERNATIVES[factors.side])
        test = f"sign flip of {'images' if factors.clusters is None else 'clusters'}"
    return Contrast(
        difference=percent(name, float(value), interval, n=n),
        values=values,
        p_value=p_value,
        test=test,
        num_differing=int(np.count_nonzero(differing)),
    )


def _exchangeable(units: list[list[Array]]) -> Array:
    """(n,) what each unit adds to the difference, beyond what its wholes explain if both models have the same ratio.

    It is 0 for a unit on which the models do the same, and changes its sign if they change places there; the ratio of
    both together does not depend on that, so the test is exact.
    """
    (part, whole), (other_part, other_whole) = units
    ratio = (part.sum() + other_part.sum()) / (whole.sum() + other_whole.sum())
    return np.asarray((part - ratio * whole) - (other_part - ratio * other_whole))


def _value(ratio: Ratio) -> Array:
    part, whole = ratio
    return np.asarray(part.sum((-2, -1)) / whole.sum((-2, -1)))


def _percent(ratio: Ratio) -> float | None:
    return 100 * float(_value(ratio)) if ratio[1].any() else None
