"""Claims about a number: what a sample decides, and how large it would have to be to decide.

A claim is supported when a one-sided bound lies on its side, refuted when the opposite bound lies on the other, and
undecided otherwise. Either is wrong with probability `alpha` at most (`tests/benchmarks/claims.py` tries it), and only
one of the two can be wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from testbed.claim_language import Claim, Operator
from testbed.metrics.sure_bounds import Rate, lower_bound, upper_bound

Verdict = Literal["supported", "refuted", "undecided"]
MOST_UNITS = 10**9  # a sample that nobody has
COMPARISONS: dict[Operator, Callable[[Any, Any], Any]] = {
    "<=": np.less_equal, "<": np.less, ">=": np.greater_equal, ">": np.greater,
}  # fmt: skip
_TRIES = 32  # sizes of a sample that are tried at once


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a sample says about a rate, or about one rate less another; over several fitted models about their mean.

    Args:
        up: the rate, or what raises the number; as odds, up / (1 - up), where `is_odds`.
        down: what lowers it; None for a single rate.
        n, unit: how many of what the sample consists of, in words; several n for samples one could have.
        run_spread: standard deviation of the number between runs that fit a model each; None for one model.
        num_runs: how many those are.
        resplit: samples tested over samples fitted on where every run splits the data anew; None where all runs see
            the same samples.
    """

    up: Rate
    down: Rate | None = None
    is_odds: bool = False
    n: Any
    unit: str
    run_spread: Any = None
    num_runs: Any = 1
    resplit: float | None = None

    @property
    def value(self) -> Any:
        """The number in the sample, as a fraction."""
        return self._raised(self.up.value) - (self.down.value if self.down else 0.0)

    @property
    def method(self) -> str:
        """How its bounds are made."""
        name = "Clopper-Pearson" if self.up.is_single else "betting (Waudby-Smith & Ramdas)"
        name += "" if self.down is None else ", Bonferroni over gains and losses"
        if self.run_spread is None:
            return name
        kind = "runs" if self.resplit is None else "re-splits (Nadeau-Bengio)"
        return f"{name}, and Student's t over {self.num_runs} {kind}"

    def bounds(self, alpha: float) -> tuple[Any, Any]:
        """What the number is at least, and at most: each wrong with probability `alpha` at most.

        Two rates get half of `alpha` each, so do runs and the samples that all of them see; re-splits reach as far as
        the spread of the runs or the samples themselves, whichever is further. The part of the runs takes their numbers
        for about normal, which a few runs cannot show.

        Source: Bonferroni; Student's t; Nadeau & Bengio, Machine Learning 52, 2003.
        """
        if self.run_spread is None:
            return self._sample_bounds(alpha)
        lowest = -1.0 if self.down else 0.0
        highest = np.inf if self.is_odds else 1.0
        low, high = self._run_bounds(alpha)
        return np.maximum(low, lowest), np.minimum(high, highest)

    def scaled(self, n: Any) -> Self:
        """The same numbers in samples of `n`: units, or runs where there are several."""
        if self.run_spread is not None:
            return replace(self, n=n, num_runs=n)
        down = None if self.down is None else self.down.scaled(n / self.n)
        return replace(self, n=n, up=self.up.scaled(n / self.n), down=down)

    def _run_bounds(self, alpha: float) -> tuple[Any, Any]:
        from scipy.special import stdtrit

        if self.resplit is None:
            low, high = self._sample_bounds(alpha / 2)
            error = stdtrit(self.num_runs - 1, 1 - alpha / 2) * self.run_spread / np.sqrt(self.num_runs)
            return low - error, high + error
        low, high = self._sample_bounds(alpha)
        error = stdtrit(self.num_runs - 1, 1 - alpha) * self.run_spread * np.sqrt(1 / self.num_runs + self.resplit)
        return np.minimum(low, self.value - error), np.maximum(high, self.value + error)

    def _sample_bounds(self, alpha: float) -> tuple[Any, Any]:
        if self.down is None:
            return lower_bound(self.up, alpha), upper_bound(self.up, alpha)
        half = alpha / 2
        low = self._raised(lower_bound(self.up, half)) - upper_bound(self.down, half)
        return low, self._raised(upper_bound(self.up, half)) - lower_bound(self.down, half)

    def _raised(self, rate: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.divide(rate, np.subtract(1, rate)) if self.is_odds else rate


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a sample says about a claim; numbers are fractions.

    Args:
        verdict: of the claim.
        value: in the sample; None where it is undefined.
        reason: why it is, or why the verdict is undecided whatever the bounds are.
        low, high: what the number is at least and at most, each with the confidence of the claim.
        n, unit: size of the sample, in words.
        needed: how many of these would decide the claim if the rest looked like the sample; None where it is decided,
            and where no number would.
        method: of the bounds.
    """

    verdict: Verdict
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    unit: str = ""
    needed: int | None = None
    method: str = ""
    reason: str = ""


def answer(claim: Claim, evidence: Evidence, *, alpha: float) -> Answer:
    """What the evidence says about the claim. Args: alpha: the probability of a wrong verdict that is put up with."""
    low, high = (float(bound) for bound in evidence.bounds(alpha))
    found = verdict(claim, low, high)
    return Answer(
        verdict=found,
        value=float(evidence.value),
        low=low,
        high=high,
        n=evidence.n,
        unit=evidence.unit,
        needed=needed(claim, evidence, alpha=alpha) if found == "undecided" else None,
        method=evidence.method,
    )


def verdict(claim: Claim, low: float, high: float) -> Verdict:
    """What bounds of the number decide.

    >>> verdict(Claim(metric="loss", setting="s", operator="<=", threshold=0.01), 0.001, 0.009)
    'supported'
    """
    holds, fails = decided(claim, low, high)
    return "supported" if holds else "refuted" if fails else "undecided"


def decided(claim: Claim, low: ArrayLike, high: ArrayLike) -> tuple[Any, Any]:
    """Whether bounds support the claim, and whether they refute it, (...) each."""
    holds = COMPARISONS[claim.operator]
    near, far = (high, low) if claim.operator.startswith("<") else (low, high)
    return holds(near, claim.threshold), np.logical_not(holds(far, claim.threshold))


def needed(claim: Claim, evidence: Evidence, *, alpha: float) -> int | None:
    """How many units (or runs) would decide the claim if they looked as those in the sample; None for no number.

    With fractions of units where the sample does not divide: the same sample so many times over decides it.
    """
    few = evidence.n
    larger = few * 2 ** np.arange(1, 1 + int(np.log2(MOST_UNITS / few)))
    while True:
        is_enough = np.logical_or(*decided(claim, *evidence.scaled(larger).bounds(alpha)))
        if not is_enough.any():
            return None
        first = int(is_enough.argmax())
        few, enough = int(larger[first - 1]) if first else few, int(larger[first])
        if enough == few + 1:
            return enough
        larger = np.append(np.unique(np.linspace(few + 1, enough - 1, _TRIES, dtype=np.int64)), enough)
