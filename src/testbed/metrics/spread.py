"""How much models differ from a line beyond what they are measured with, alone and together with their family."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_LEAST_SEEN = 0.1  # of models' variance is in the residuals, however few families there are


class Spread(NamedTuple):
    """Variances of models' departures from a line.

    Attributes:
        total: of a model's own departure, its family's part included.
        alike: correlation of the departures of two models of one family, 0 to 1.
        kept: the part of the measurement variances that is seen between models, up to 1. Models that are measured on
            the same images err together, which moves the line and not the models.
        degrees: degrees of freedom of the residuals' sum of squares (Satterthwaite): fewer than models less two where
            models of a family are alike.
    """

    total: float
    alike: float
    kept: float
    degrees: float

    def covariance_times(self, columns: Array, sampling: Array, families: NDArray[Any]) -> Array:
        """V columns, where V is the departures' covariance as `spread_of` has it.

        Args:
            columns: (models, any).
            sampling, families: (models,).
        """
        own = np.full_like(sampling, self.total) if self.total > 0 else self.kept * sampling
        return np.asarray(
            (self.kept * sampling + self.total)[:, None] * columns + self.alike * _relatives(columns, own, families)
        )


def spread_of(residuals: Array, basis: Array, sampling: Array, families: NDArray[Any]) -> Spread:
    """The variances that leave such residuals of a line of least squares.

    The departures have the covariance V = diag(sampling) + total (I + alike B), where B is 1 for two models of one
    family and 0 else. The residuals are M departures, M = I - basis basis'. Two sums of their products are set equal to
    what is expected of them: over the models, e'e with trace(M V), and over the pairs of a family, e'B e with
    trace(M B M V). No variance may be negative. Where the residuals are even smaller than measurement alone would leave
    them, what is unknown is not a total but how much of the measurement is seen: V = kept (S + alike R B R) with
    S = diag(sampling) = R R, and R B R is in the second sum, too.

    Args:
        residuals: (models,) of the fit, on its scale.
        basis: (models, 2) orthonormal, of the space that the line is fitted in.
        sampling: (models,) measurement variances.
        families: (models,) labels.
    Source: moments as DerSimonian & Laird, Controlled Clinical Trials 7, 1986, with a second, nested component as in
        Henderson, Biometrics 9, 1953; Satterthwaite, Biometrics Bulletin 2, 1946.
    """
    kept, (total, alike) = 1.0, _moments(residuals, basis, np.ones_like(sampling), sampling, families)
    if total == 0 and sampling.any():
        kept, alike = _moments(residuals, basis, sampling, np.zeros_like(sampling), families)
    found = Spread(total, alike, min(kept, 1.0), len(residuals) - basis.shape[1])
    return found._replace(degrees=_degrees(found, basis, sampling, families))


def _moments(residuals: Array, basis: Array, own: Array, known: Array, families: NDArray[Any]) -> tuple[float, float]:
    """The factor of variances `own`, beside others that are `known`, and the correlation within families."""
    relatives = _relatives(basis, own, families)
    inner = basis.T @ relatives
    by_models = 1 - np.square(basis).sum(1)  # the diagonal of M
    by_pairs = ((basis @ inner) * basis).sum(1) - 2 * (relatives * basis).sum(1)  # that of M B M
    alone, together = float(by_models @ own), -float(np.trace(inner))
    square = float(residuals @ residuals) - float(by_models @ known)
    if square <= 0 or alone <= 0:
        return 0.0, 0.0
    pairs = float(residuals @ _relatives(residuals[:, None], own, families)[:, 0]) - float(by_pairs @ known)
    weights = np.array(
        [[alone, together], [by_pairs @ own, _squared(_of_pairs(own, families), relatives, inner)]]
    ) / alone  # fmt: skip
    is_known = abs(np.linalg.det(weights)) > 1e-9  # not where all models are of one family, or each of another
    covariance = max(0.0, float(np.linalg.solve(weights, [square / alone, pairs / alone])[1])) if is_known else 0.0
    factor = (square - together * covariance) / alone
    if covariance <= factor:
        return factor, covariance / factor
    return square / max(alone + together, _LEAST_SEEN * alone), 1.0


def _degrees(spread: Spread, basis: Array, sampling: Array, families: NDArray[Any]) -> float:
    """trace(M V)^2 / trace(M V M V)."""
    own = spread.kept * sampling + spread.total
    shared = np.full_like(sampling, spread.total) if spread.total > 0 else own
    product = spread.covariance_times(basis, sampling, families)
    inner = basis.T @ product
    trace = float(np.square(own).sum()) + spread.alike**2 * _of_pairs(shared, families)
    squares = _squared(trace, product, inner)
    if squares <= 0:
        return spread.degrees
    return max(1.0, float(own.sum() - np.trace(inner)) ** 2 / squares)  # below 1 only by rounding


def _relatives(columns: Array, own: Array, families: NDArray[Any]) -> Array:
    """B columns, weighted: for each model the sum over the others of its family, times sqrt(own_i own_j)."""
    _, member = np.unique(families, return_inverse=True)
    weighted = np.sqrt(own)[:, None] * columns
    sums = np.zeros((int(member.max()) + 1, columns.shape[1]))
    np.add.at(sums, member, weighted)
    return np.asarray(np.sqrt(own)[:, None] * (sums[member] - weighted))


def _of_pairs(own: Array, families: NDArray[Any]) -> float:
    """trace(B B), weighted: the sum of own_i own_j over ordered pairs of two models of one family."""
    return float(own @ _relatives(own[:, None], np.ones_like(own), families)[:, 0])


def _squared(trace: float, product: Array, inner: Array) -> float:
    """trace(M X M X) of a symmetric X with trace(X X) = `trace`, X basis = `product` and basis' X basis = `inner`."""
    return trace - 2 * float(np.square(product).sum()) + float((inner * inner.T).sum())
