"""Effective robustness: the line along which the accuracies of standard models on two settings lie, and its band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import DataError, ShapeError
from testbed.metrics.scales import Scale, scale_named

Array = NDArray[np.float64]

FEWEST = 3  # models: through two any line is perfect, and nothing tells how far off a third would be
NUM_RESAMPLES = 1000
BOOTSTRAP_SEED = 720257663  # the ancestor's, so that its published intervals can be compared with


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line on a scale, fitted on models.

    Args:
        slope, intercept: on the scale.
        r: Pearson's correlation of the models on the scale.
        n: models that it was fitted on.
        scale: name of the scale.
        x_low, x_high: the least and largest accuracy of those models on x, percent.
    """

    slope: float
    intercept: float
    r: float
    n: int
    scale: str
    x_low: float
    x_high: float

    def at(self, x: ArrayLike) -> Array:
        """beta(x): the accuracy on y, in percent, that the line gives for accuracies on x in percent."""
        scale = scale_named(self.scale)
        return scale.to_percent(self.intercept + self.slope * scale.of_percent(x))


def fit_line(x: ArrayLike, y: ArrayLike, *, scale: str = "logit") -> Line:
    """The line of least squares through the models' accuracies on a scale, unweighted; nothing is clipped.

    Args:
        x, y: (models,) accuracies in percent, finite on the scale: see `is_on_scale`.
        scale: 'logit', 'probit' or 'linear'.
    Raises:
        ShapeError: x and y are not two lists of one length.
        DataError: fewer than three models, all of one accuracy on x, or one that is not finite on the scale.
    Source: Taori et al., NeurIPS 2020, section 3 and appendix; Recht et al., ICML 2019.
    """
    from scipy.stats import linregress

    horizontal, vertical = np.asarray(x, np.float64), np.asarray(y, np.float64)
    u, v = _placed(horizontal, vertical, scale_named(scale))
    found: Any = linregress(u, v)
    return Line(
        slope=float(found.slope),
        intercept=float(found.intercept),
        r=float(found.rvalue),
        n=len(u),
        scale=scale,
        x_low=float(horizontal.min()),
        x_high=float(horizontal.max()),
    )


def is_on_scale(x: ArrayLike, y: ArrayLike, *, scale: str) -> NDArray[np.bool_]:
    """Whether models have finite places on the scale on both axes: a logit has none for 0 and 100 %."""
    places = scale_named(scale)
    return np.asarray(np.isfinite(places.of_percent(x)) & np.isfinite(places.of_percent(y)))


def resampled_lines(
    x: ArrayLike, y: ArrayLike, *, scale: str = "logit", families: ArrayLike | None = None, num: int = NUM_RESAMPLES
) -> Array:
    """Intercept and slope of the lines through resampled models, (num, 2).

    The models are drawn with replacement, as the ancestor draws them; it depends on their order which are. A draw of
    models that all have one accuracy on x has no line, and is NaN.

    Args:
        x, y, scale: as `fit_line`.
        families: (models,) names of what models belong to; families are then drawn, each with all of its models.
    """
    u, v = _placed(np.asarray(x, np.float64), np.asarray(y, np.float64), scale_named(scale))
    rng = np.random.RandomState(BOOTSTRAP_SEED)
    weights = np.stack(list(_draws(rng, len(u), families, num)))
    total = weights.sum(1)
    mean_u, mean_v = weights @ u / total, weights @ v / total
    from_u, from_v = u - mean_u[:, None], v - mean_v[:, None]
    spread = (weights * from_u**2).sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(spread > 1e-12 * total, (weights * from_u * from_v).sum(1) / spread, np.nan)
    return np.stack([mean_v - slope * mean_u, slope], axis=1)


def _draws(rng: np.random.RandomState, n: int, families: ArrayLike | None, num: int) -> Any:
    """How often each model is drawn, (n,), for each resample."""
    if families is None:
        for _ in range(num):
            yield np.bincount(rng.choice(n, n), minlength=n).astype(np.float64)
        return
    names, member = np.unique(np.asarray(families, dtype=str), return_inverse=True)
    if len(member) != n:
        raise ShapeError(f"There are {n} models but {len(member)} names of families. Give one per model.")
    for _ in range(num):
        yield np.bincount(rng.choice(len(names), len(names)), minlength=len(names)).astype(np.float64)[member]


def percentile_bounds(values: ArrayLike, *, confidence: float = 0.95) -> tuple[Array, Array]:
    """Bounds of resampled values (num, ...) along their first axis, each one of the values: the next outward."""
    tail = 100 * (1 - confidence) / 2
    found = np.asarray(values, np.float64)
    found = found[np.isfinite(found).reshape(len(found), -1).all(1)]
    return (np.asarray(np.percentile(found, tail, axis=0, method="lower")),
            np.asarray(np.percentile(found, 100 - tail, axis=0, method="higher")))  # fmt: skip


def band(lines: ArrayLike, x: ArrayLike, *, scale: str = "logit", confidence: float = 0.95) -> tuple[Array, Array]:
    """Bounds in percent of what resampled lines give at accuracies on x in percent.

    Args: lines: (num, 2) as `resampled_lines` gives them.
    """
    places = scale_named(scale)
    pairs = np.asarray(lines, np.float64)
    at = pairs[:, :1] + pairs[:, 1:] * places.of_percent(x)[None, :]
    low, high = percentile_bounds(at, confidence=confidence)
    return places.to_percent(low), places.to_percent(high)


def _placed(x: Array, y: Array, scale: Scale) -> tuple[Array, Array]:
    if x.ndim != 1 or x.shape != y.shape:
        raise ShapeError(f"Accuracies of models have shapes {x.shape} and {y.shape}. Give (models,) twice.")
    if len(x) < FEWEST:
        raise DataError(f"A line needs at least {FEWEST} models, and there are {len(x)}.")
    u, v = scale.of_percent(x), scale.of_percent(y)
    if not np.isfinite([u, v]).all():
        raise DataError(f"An accuracy is not finite on the {scale.name} scale, as 0 and 100 % are not. Leave it out.")
    if np.ptp(u) == 0:
        raise DataError(f"All {len(x)} models have the accuracy {x[0]:.2f} % on x, so no line can be fitted.")
    return u, v
