"""Confidence intervals of proportions, where images or clusters of images are the units and draws lie in them.

Ten draws of one image are not ten images. The variance is therefore taken between images, turned into an effective
sample size, and that into an interval. A handful of flips says little about how images flip, so every bound allows for
one more image, which without a flip seen so far flips in all its draws: the bound is then Clopper and Pearson's. All
functions take arrays with any leading dimensions, which simulations use.

Coverage of 95 % intervals is 93 to 97 % in simulation (`tests/benchmarks/interval_coverage.py`), and more where it
cannot be less. With fewer than about three flipped images expected, or few images in all, the likeliest outcome is no
flip; that can never exclude the truth, so only one side of the interval can miss.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import DataError, ShapeError

Side = Literal["both", "lower", "upper"]
Array = NDArray[np.float64]

_STEPS = 60  # of a search in a bracket; a handful is enough
FEW = 10  # below so many failures or successes the normal approximation is not used


class Interval(NamedTuple):
    """Bounds of a proportion in [0, 1] or of a relative change, floats or arrays, and the name of the method."""

    low: Any
    high: Any
    method: str


def tails(confidence: float, side: Side = "both") -> tuple[float, float]:
    """Probability left below the lower and above the upper bound; 0 on a side that has no bound."""
    if not 0 < confidence < 1:
        raise DataError(f"Confidence is {confidence}. It must lie between 0 and 1, for example 0.95.")
    if side not in ("both", "lower", "upper"):
        raise DataError(f"Side is '{side}'. Use 'both', 'lower' or 'upper'.")
    rest = 1 - confidence
    return {"both": (rest / 2, rest / 2), "lower": (rest, 0.0), "upper": (0.0, rest)}[side]


def wilson(successes: ArrayLike, n: ArrayLike, *, confidence: float = 0.95, side: Side = "both") -> Interval:
    """Score interval of a binomial proportion.

    Args:
        successes: 0 to n; need not be whole, so that an effective number can be given.
        n: number of trials, positive.
        confidence: of the interval, or of the one bound that `side` asks for.
        side: 'lower' or 'upper' gives that bound alone; the other is then 0 or 1.
    Source: Wilson, JASA 22, 1927.
    """
    successes, n = np.asarray(successes, np.float64), np.asarray(n, np.float64)
    _check_counts(successes, n)
    below, above = tails(confidence, side)
    return Interval(_score_bound(successes, n, below, -1)[()], _score_bound(successes, n, above, +1)[()], "wilson")


def clopper_pearson(successes: ArrayLike, n: ArrayLike, *, confidence: float = 0.95, side: Side = "both") -> Interval:
    """Exact interval of a binomial proportion: covers at least as often as it says, usually more often.

    Args: as `wilson`.
    Source: Clopper & Pearson, Biometrika 26, 1934.
    """
    successes, n = np.asarray(successes, np.float64), np.asarray(n, np.float64)
    _check_counts(successes, n)
    below, above = tails(confidence, side)
    low = _beta_quantile(successes, n - successes + 1, below)
    high = _beta_quantile(successes + 1, n - successes, 1 - above)
    return Interval(low[()], high[()], "clopper-pearson")


def clustered_proportion(
    values: ArrayLike,
    *,
    num_draws: int = 1,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    side: Side = "both",
) -> Interval:
    """Interval of the mean of `values`: images (or clusters of images) are the units, draws lie in them.

    Args:
        values: (..., n) in [0, 1], each image's mean over its draws.
        num_draws: how many draws each value is the mean of.
        clusters: (n,) labels of images that belong together: patients, scenes, videos.
        confidence, side: as `wilson`.
    Source: see `weighted_proportion`.
    """
    part = np.asarray(values, np.float64)
    if part.ndim == 0 or part.shape[-1] == 0:
        raise DataError("An interval needs at least one value.")
    return weighted_proportion(
        part, np.ones(part.shape[-1]), num_draws=num_draws, clusters=clusters, confidence=confidence, side=side
    )


def weighted_proportion(
    part: ArrayLike,
    whole: ArrayLike,
    *,
    num_draws: float = 1,
    strata: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    side: Side = "both",
    is_exact: bool = False,
) -> Interval:
    """Interval of sum(part) / sum(whole), over units that each contribute `part` out of `whole`.

    The variance between units gives an effective sample size, from `sum(whole)` (all draws of a unit agree) up to
    `num_draws` times that (they differ like draws of different units). At that size the interval is Wilson's if there
    are ten or more effective successes and failures. If there are fewer, the bound away from the near end of [0, 1]
    is a quantile of a beta distribution, and the other one mid-P. Each bound's size is that of the data and one more
    event, as large as the units in which events were seen and one whole unit (the largest; of clusters, the one that an
    image is in on average), so that seeing none is not taken for precision. With one draw, or no event, the beta bound
    is exactly Clopper and Pearson's.

    Args:
        part: (..., units) from 0 to `whole`.
        whole: (..., units) size of each unit; 0 leaves the unit out.
        num_draws: how many draws stand behind each unit.
        strata: (units,) labels of groups whose sizes are fixed, e.g. classes; the variance is then within them.
        clusters: (units,) labels of units that belong together and become one; not with strata.
        confidence, side: as `wilson`.
        is_exact: with tails that stay exact far out, see `Units.exact_interval`; for a level that is corrected.
    Source: Korn & Graubard, Survey Methodology 24, 1998 (effective counts); Fay & Feuer, Statistics in Medicine 16,
        1997 (one more event); Fay & Kim, Biometrical Journal 59, 2017 (mid-P mixture).
    """
    data = Units.of(part, whole, num_draws=num_draws, strata=strata, clusters=clusters)
    bounds = data.exact_interval if is_exact else data.interval
    return bounds(*tails(confidence, side))


def sum_clusters(values: ArrayLike, clusters: ArrayLike | None) -> Array:
    """Sums of `values` (..., n) over the images of each cluster, (..., clusters); the values where there are none.

    Raises: ShapeError: not one label per image.
    """
    values = np.asarray(values, np.float64)
    if clusters is None:
        return values
    labels = np.asarray(clusters)
    if labels.shape != values.shape[-1:]:
        raise ShapeError(f"There are {values.shape[-1]} values but cluster labels of shape {labels.shape}.")
    order = np.argsort(labels, kind="stable")
    _, starts = np.unique(labels[order], return_index=True)
    return np.asarray(np.add.reduceat(values[..., order], starts, axis=-1))


class Units:
    """Units that each contribute a part of a whole, as `weighted_proportion`; bounds follow at any level.

    Scales say how much one independent event weighs, 1 for a unit whose draws all agree.
    """

    @classmethod
    def of(
        cls,
        part: ArrayLike,
        whole: ArrayLike,
        *,
        num_draws: float = 1,
        strata: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Args: as `weighted_proportion`."""
        parts, wholes = np.broadcast_arrays(np.asarray(part, np.float64), np.asarray(whole, np.float64))
        if np.any(parts < 0) or np.any(parts > wholes * (1 + 1e-12)) or not np.all(wholes.sum(-1) > 0):
            raise DataError("Proportions need parts between 0 and their wholes, and wholes that are not all 0.")
        draws: Any = num_draws
        if clusters is not None:
            parts, wholes = sum_clusters(parts, clusters), sum_clusters(wholes, clusters)
            size = wholes.sum(-1) / np.count_nonzero(wholes, axis=-1)
            parts, wholes, draws = parts / size[..., None], wholes / size[..., None], num_draws * size
        one_unit = wholes.max(-1) if clusters is None else np.square(wholes).sum(-1) / wholes.sum(-1)
        return cls(parts, wholes, draws, None if strata is None else np.asarray(strata), one_unit)

    def __init__(self, part: Array, whole: Array, num_draws: Any, strata: NDArray[Any] | None, one_unit: Array) -> None:
        self.successes, self.size = part.sum(-1), whole.sum(-1)
        self.mean = self.successes / self.size
        rare = np.where(self.mean[..., None] <= 0.5, part, whole - part)
        self.one_more = ((rare**2).sum(-1) + one_unit**2) / (rare.sum(-1) + one_unit)
        self.least = 1 / num_draws if strata is None else 1e-9
        self.most = np.maximum((whole**2).sum(-1) / self.size, self.least)
        is_single = strata is None and bool(np.all(num_draws == 1))
        self.is_plain = is_single and bool(np.all((whole == 0) | (whole == 1)))
        self.squares, self.degrees = _squares(part, whole, self.mean, strata)
        self.scale = self._scale_after(0.0)
        self.scale_above = self._scale_after(1 - self.mean)
        self.scale_below = self._scale_after(self.mean)

    def _scale_after(self, departure: Array | float) -> Array:
        """Scale of the data and one more unit, whose share departs so much from the mean."""
        more = self.one_more * np.square(departure)
        independent = self.size * self.mean * (1 - self.mean) + more
        ratio = np.divide(self.squares + self.one_more * more, independent,
                          out=np.ones_like(independent), where=independent > 0)  # fmt: skip
        return np.asarray(np.clip(ratio, self.least, self.most))

    def effective(self, scale: Array, tail: float) -> tuple[Array, Array]:
        """Successes and trials that would vary as much; fewer where few units tell how much they vary."""
        size = self.size / scale * self.doubt(tail)
        return self.mean * size, size

    def doubt(self, tail: float) -> Any:
        """What the effective size is multiplied by because so few units tell how much they vary."""
        from scipy.special import ndtri, stdtrit

        z = float(ndtri(tail))  # 0 for one bound of 50 %, which no size widens
        return 1.0 if self.is_plain or abs(z) < 1e-6 else (z / stdtrit(np.maximum(self.degrees, 1), tail)) ** 2

    def interval(self, below: float, above: float) -> Interval:
        """The interval that aims at its level on average. Args: what is left out below and above it, see `tails`."""
        tail = max(below, above)
        successes, size = self.effective(self.scale, tail)
        few = np.minimum(successes, size - successes) < FEW
        low, high = _few_bounds(self, below, above) if np.any(few) else (np.empty_like(size), np.empty_like(size))
        if not np.all(few):
            many_low = _score_bound(*self.effective(self.scale_below, tail), below, -1)
            many_high = _score_bound(*self.effective(self.scale_above, tail), above, +1)
            low, high = np.where(few, low, many_low), np.where(few, high, many_high)
        method = "exact and mid-p" if np.any(few) else "wilson"
        return Interval(low[()], high[()], method if self.is_plain else f"{method}, effective n")

    def exact_interval(self, below: float, above: float) -> Interval:
        """The interval whose tails stay exact far out, so that it can be inverted and its level corrected.

        A normal approximation of twelve events is wrong a hundred times as often as it says at a level of 1e-6.

        Args: as `interval`.
        """
        doubt = self.doubt(max(below, above))
        (successes, rest), (more, failures) = self.beta_below(), self.beta_above()
        low = _beta_quantile(doubt * successes, doubt * rest, below) if below else np.zeros_like(self.mean)
        high = 1 - _beta_quantile(doubt * failures, doubt * more, above) if above else np.ones_like(self.mean)
        return Interval(low[()], high[()], "exact" if self.is_plain else "exact, effective n")

    def beta_above(self) -> tuple[Array, Array]:
        """Parameters of the beta distribution whose upper quantile bounds the proportion from above."""
        return (self.successes + self.one_more) / self.scale_above, (self.size - self.successes) / self.scale_above

    def beta_below(self) -> tuple[Array, Array]:
        """Parameters of the beta distribution whose lower quantile bounds the proportion from below."""
        failures = self.size - self.successes + self.one_more
        return self.successes / self.scale_below, failures / self.scale_below


def _score_bound(successes: Array, n: Array, tail: float, sign: int) -> Array:
    """Wilson's bound below (-1) or above (+1); 0 or 1 where nothing is left out there."""
    from scipy.special import ndtri

    if tail == 0:
        return np.full(np.broadcast(successes, n).shape, (1 + sign) / 2)
    z = -float(ndtri(tail))
    spread = z * np.sqrt(successes * (n - successes) / n + z * z / 4)
    bound = np.clip((successes + z * z / 2 + sign * spread) / (n + z * z), 0, 1)
    return np.where(successes == 0, 0.0, bound) if sign < 0 else np.where(successes == n, 1.0, bound)


def _few_bounds(data: Units, below: float, above: float) -> tuple[Array, Array]:
    """Bounds for few events: exact on the side away from the near end of [0, 1], mid-P on the other."""
    lower, upper = data.beta_below(), data.beta_above()
    low, high = _beta_quantile(*lower, below), _beta_quantile(*upper, 1 - above)
    near_zero, near_one = (data.mean < 0.5) & (low > 0), (data.mean > 0.5) & (high < 1)
    low[near_zero] = _mixture_quantile(lower, upper, below, near_zero)
    high[near_one] = _mixture_quantile(lower, upper, 1 - above, near_one)
    return low, high


def _squares(part: Array, whole: Array, mean: Array, strata: NDArray[Any] | None) -> tuple[Array, NDArray[Any]]:
    """Unbiased sum of squared departures of the units from their share, and its degrees of freedom."""
    units = np.count_nonzero(whole, axis=-1)
    if strata is None:
        departures = (part - mean[..., None] * whole) ** 2
        return departures.sum(-1) * units / np.maximum(units - 1, 1), units - 1
    total = np.zeros_like(mean)
    names, inverse, counts = np.unique(strata, return_inverse=True, return_counts=True)
    for stratum, count in enumerate(counts):
        inside = inverse == stratum
        parts, wholes = part[..., inside], whole[..., inside]
        share = parts.sum(-1, keepdims=True) / wholes.sum(-1, keepdims=True)
        total += ((parts - share * wholes) ** 2).sum(-1) * count / max(count - 1, 1)
    return total, units - len(names)


def _beta_quantile(a: Array, b: Array, probability: float) -> Array:
    """Quantile of Beta(a, b), which is 0 for a = 0 and 1 for b = 0."""
    from scipy.special import betaincinv, betaln

    a_inner, b_inner = np.maximum(a, 1e-300), np.maximum(b, 1e-300)
    inner = betaincinv(a_inner, b_inner, probability)
    if np.any(np.isnan(inner)):  # far in the tail, where it finds nothing, the first term of the series is all there is
        with np.errstate(divide="ignore"):
            first = np.exp((np.log(probability * a_inner) + betaln(a_inner, b_inner)) / a_inner)
        inner = np.where(np.isnan(inner), first, inner)
    return np.asarray(np.where(a <= 0, 0.0, np.where(b <= 0, 1.0, inner)))


def _mixture_quantile(
    lower: tuple[Array, Array], upper: tuple[Array, Array], probability: float, chosen: NDArray[np.bool_]
) -> Array:
    """Quantiles of the even mixtures of two beta distributions where they are `chosen`; mid-P for whole counts.

    They lie between the quantiles of the two. Newton's method, and bisection wherever that leaves the bracket.
    """
    from scipy.special import betainc, betaln, xlog1py, xlogy

    a, b = np.array([[lower[0][chosen], upper[0][chosen]], [lower[1][chosen], upper[1][chosen]]])
    low, high = np.sort(_beta_quantile(a, b, probability), axis=0)
    found, log_scale = (low + high) / 2, betaln(a, b)
    for _ in range(_STEPS):
        excess = betainc(a, b, found).mean(axis=0) - probability
        low, high = np.where(excess < 0, found, low), np.where(excess < 0, high, found)
        density = np.exp(xlogy(a - 1, found) + xlog1py(b - 1, -found) - log_scale).mean(axis=0)
        previous, found = found, found - excess / density
        found = np.where((low < found) & (found < high), found, (low + high) / 2)
        if np.all(np.abs(found - previous) <= 1e-14 * found):
            break
    return np.asarray(found)


def _check_counts(successes: Array, n: Array) -> None:
    """Refuses counts that no sample can have."""
    if np.any(n <= 0) or np.any(successes < 0) or np.any(successes > n * (1 + 1e-12)):
        raise DataError(f"An interval needs 0 <= successes <= n and n > 0, but got successes {successes} and n {n}.")
