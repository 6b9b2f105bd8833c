"""How far two answers to the same images differ, against what rounding can do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed.metrics.accuracy import predictions


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """What another batch and another place in it may change in a logit.

    Args:
        of_spread: in units of the standard deviation of logits over images.
        of_size: in units of the largest logit: networks that answer all images nearly the same have no spread.
    """

    of_spread: float
    of_size: float


EXACT = Tolerance(of_spread=1e-3, of_size=1e-5)  # float32
COARSE = Tolerance(of_spread=5e-2, of_size=1e-2)  # 16 bits, and products that are rounded to TF32


@dataclass(frozen=True, kw_only=True)
class Steadiness:
    """How far answers to the same images differ.

    Args:
        change: largest difference of a logit, in units of the standard deviation of logits over images.
        num_changed: predictions that differ.
        n: images.
        is_steady: whether rounding can explain it.
    """

    change: float
    num_changed: int
    n: int
    is_steady: bool


def steadiness(
    first: NDArray[np.float32],
    second: NDArray[np.float32],
    tolerance: Tolerance,
    *,
    spread_of: NDArray[np.float32] | None = None,
) -> Steadiness:
    """How far two answers (n, classes) to the same images differ.

    Answers that are not finite are left out of the change; one that is finite only once is no steady one.

    Args: spread_of: (m, classes) answers that tell how far logits differ from image to image; `first` if None.
    """
    finite = [np.isfinite(answers).all(axis=1) for answers in (first, second)]
    is_finite = finite[0] & finite[1]
    one, other = first[is_finite].astype(np.float64), second[is_finite].astype(np.float64)
    whole = first if spread_of is None else spread_of
    whole = whole[np.isfinite(whole).all(axis=1)].astype(np.float64)
    spread = float(whole.std(axis=0).mean()) if len(whole) else 0.0
    change = float(np.abs(one - other).max()) if len(one) else 0.0
    allowed = tolerance.of_spread * spread + tolerance.of_size * float(np.abs(whole).max(initial=0.0))
    return Steadiness(
        change=change / spread if spread else (float("inf") if change else 0.0),
        num_changed=int(np.count_nonzero(predictions(first) != predictions(second))),
        n=len(first),
        is_steady=change <= allowed and bool((finite[0] == finite[1]).all()),
    )
