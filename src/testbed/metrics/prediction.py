"""Where a line lets a model lie: the prediction interval of one more standard model, with the errors of both axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import ShapeError
from testbed.metrics.effective import Line, fit_line
from testbed.metrics.intervals import tails
from testbed.metrics.scales import scale_named
from testbed.metrics.spread import Spread, spread_of

Array = NDArray[np.float64]


class Expected(NamedTuple):
    """What a standard model would have on y, percent: the line's value, and the bounds of the prediction interval."""

    beta: Array
    low: Array
    high: Array


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A line with what tells how far from it models lie. Variances and places are on the line's scale.

    Args:
        line: that was fitted.
        spread: how models differ from it.
        centre: mean place of the fitted models on x.
        covariance: (2, 2) of the line's height at the centre and its slope.
        x_n, y_n: the fitted models' median numbers of images; NaN where unknown.
    """

    line: Line
    spread: Spread
    centre: float
    covariance: Array
    x_n: float
    y_n: float

    def expected(self, x: ArrayLike, x_n: ArrayLike, y_n: ArrayLike, *, confidence: float = 0.95) -> Expected:
        """The line's value at accuracies on x, and where one more standard model's accuracy on y would lie.

        Args:
            x: (models,) accuracies in percent.
            x_n, y_n: (models,) numbers of images behind x, and behind a y that is measured; NaN, where unknown, is
                taken for those of the fitted models.
        """
        from scipy.special import stdtrit

        scale = scale_named(self.line.scale)
        accuracies = np.asarray(x, np.float64)
        away = scale.of_percent(accuracies) - self.centre
        variance = (
            self.spread.total
            + self._seen(self.line.at(x), y_n, self.y_n)
            + self.line.slope**2 * self._seen(accuracies, x_n, self.x_n)
            + self.covariance[0, 0] + 2 * away * self.covariance[0, 1] + away**2 * self.covariance[1, 1]
        )  # fmt: skip
        half = -float(stdtrit(self.spread.degrees, tails(confidence)[0])) * np.sqrt(np.maximum(variance, 0))  # rounding
        middle = self.line.intercept + self.line.slope * (self.centre + away)
        low, high = scale.to_percent(middle - half), scale.to_percent(middle + half)
        return Expected(scale.to_percent(middle), np.clip(low, 0, 100), np.clip(high, 0, 100))

    def _seen(self, percent: Array, n: ArrayLike, usual_n: float) -> Array:
        """Variance of an accuracy by measurement that tells models apart: what is kept of that of the fitted ones'
        numbers of images, and all that fewer images add to it."""
        scale, sizes = scale_named(self.line.scale), np.asarray(n, np.float64)
        own = scale.sampling_variance(percent, np.where(np.isnan(sizes), usual_n, sizes))
        shared = np.minimum(own, scale.sampling_variance(percent, usual_n)) if np.isfinite(usual_n) else own
        return np.asarray(own - (1 - self.spread.kept) * shared)


def fit(
    x: ArrayLike,
    y: ArrayLike,
    *,
    x_n: ArrayLike,
    y_n: ArrayLike,
    families: ArrayLike | None = None,
    scale: str = "logit",
) -> Fit:
    """The line through models, and the variances around it.

    What a model departs from the line by has three parts, on the scale: its own, of which some is its family's; the
    error of its accuracy on y; and the error of that on x, times the slope. The errors are binomial, by the numbers of
    images; the models' own spread is what the residuals leave beyond them (`spread_of`). A further model's interval is

        line(x) +- t sqrt(spread + error of y + slope^2 error of x + variance of the line at x)

    with the errors of its own numbers of images, not those of the fitted models, so that a model measured on few images
    gets a wide one. Where all models are measured on the same images and err together, only the part of their errors
    that is seen between models counts, up to these numbers of images. t is Student's, with the residuals' degrees of
    freedom.

    Args:
        x, y, scale: as `fit_line`.
        x_n, y_n: (models,) numbers of images; NaN where unknown, which leaves that error in the spread.
        families: (models,) names of what models belong to; each its own without any.
    Source: prediction intervals of regression (e.g. Draper & Smith, Applied Regression Analysis, section 3.1); errors
        in both axes as in meta-regression, Thompson & Sharp, Statistics in Medicine 18, 1999.
    """
    line = fit_line(x, y, scale=scale)
    places = scale_named(scale)
    u, v = places.of_percent(x), places.of_percent(y)
    labels: NDArray[Any] = np.arange(len(u)) if families is None else np.asarray(families)
    sizes = np.asarray(x_n, np.float64), np.asarray(y_n, np.float64)
    if not {labels.shape, sizes[0].shape, sizes[1].shape} == {u.shape}:
        raise ShapeError(f"There are {len(u)} models. Give as many numbers of images on x and on y, and families.")
    on_x, on_y = places.sampling_variance(x, sizes[0]), places.sampling_variance(line.at(x), sizes[1])
    sampling = on_y + line.slope**2 * on_x
    away = u - u.mean()
    to_line = np.stack([np.full(len(u), 1 / len(u)), away / np.square(away).sum()])
    basis = (to_line / np.linalg.norm(to_line, axis=1, keepdims=True)).T
    spread = spread_of(v - line.intercept - line.slope * u, basis, sampling, labels)
    return Fit(
        line=line,
        spread=spread,
        centre=float(u.mean()),
        covariance=to_line @ spread.covariance_times(to_line.T, sampling, labels),
        x_n=_median(sizes[0]),
        y_n=_median(sizes[1]),
    )


def _median(sizes: Array) -> float:
    known = sizes[np.isfinite(sizes)]
    return float(np.median(known)) if len(known) else float("nan")
