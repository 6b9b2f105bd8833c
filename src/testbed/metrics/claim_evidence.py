"""From the images that are right, clean and under a shift, to the evidence for a claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.claim_language import Claim, Metric
from testbed.metrics.claims import Answer, Evidence, answer
from testbed.metrics.comparison import Outcomes
from testbed.metrics.factors import Factors
from testbed.metrics.intervals import Array, sum_clusters
from testbed.metrics.sure_bounds import Rate

UNITS: dict[Metric, str] = {
    "top1": "images", "loss": "images right when clean", "recovery": "images wrong when clean", "mscr": "images",
}  # fmt: skip


class Term(NamedTuple):
    """A rate over runs and images: sum(part) / sum(whole), (runs, n) each."""

    part: Array
    whole: Array


def decide(
    claim: Claim, outcomes: Sequence[Outcomes], *, alpha: float, members: NDArray[np.bool_] | None = None
) -> Answer:
    """What a model's outcomes say about a claim.

    Args:
        claim: about one setting, or the difference of two.
        outcomes: on each of its settings, of the same runs and images.
        alpha: the probability of a wrong verdict that is put up with.
        members: (runs, n) the images that count; None for all.
    Returns: undecided, with the reason, where the number is undefined.
    """
    terms = _terms(claim, outcomes)
    factors = outcomes[0].factors.of(num_draws=max(one.factors.num_draws for one in outcomes))
    counted = np.ones_like(terms[0].whole) if members is None else members.astype(np.float64)
    terms = [Term(term.part * counted, term.whole * counted) for term in terms]
    if not all(term.whole.sum(-1).all() for term in terms):
        return Answer(verdict="undecided", unit=UNITS[claim.metric], reason=_undefined(claim.metric, len(counted)))
    return answer(claim, _evidence(claim, terms, counted, factors), alpha=alpha)


def _terms(claim: Claim, outcomes: Sequence[Outcomes]) -> list[Term]:
    """The rates that the number consists of: one, or what raises it and what lowers it."""
    first = _term(claim.metric, outcomes[0])
    if claim.subtracted is not None:
        change = first.part - _term(claim.metric, outcomes[1]).part
        return [Term(np.maximum(change, 0), first.whole), Term(np.maximum(-change, 0), first.whole)]
    if claim.metric == "mscr":  # loss lowers it, and the gain per image right when clean raises it: odds of this share
        gained = outcomes[0].gained
        return [Term(gained, outcomes[0].clean + gained), first]
    return [first]


def _term(metric: Metric, outcomes: Outcomes) -> Term:
    if metric == "top1":
        return Term(outcomes.shifted, np.ones_like(outcomes.shifted))
    return Term(*outcomes.parts("loss" if metric == "mscr" else metric))


def _evidence(claim: Claim, terms: Sequence[Term], counted: Array, factors: Factors) -> Evidence:
    num_runs = len(counted)
    is_odds = claim.metric == "mscr"
    rates = [_rate(term, counted, factors) for term in terms]
    values = _run_values(terms, is_odds=is_odds)
    n, unit = _size(claim, terms, counted, factors)
    return Evidence(
        up=rates[0],
        down=rates[1] if len(rates) > 1 else None,
        is_odds=is_odds,
        n=n if num_runs == 1 else num_runs,
        unit=unit if num_runs == 1 else "runs",
        run_spread=None if num_runs == 1 else float(values.std(ddof=1)),
        num_runs=num_runs,
        resplit=factors.resplit,
    )


def _rate(term: Term, counted: Array, factors: Factors) -> Rate:
    """Units are images or clusters. Images that are not in the whole say nothing and are left out."""
    part, whole, size = (sum_clusters(factors.pool(one), factors.clusters) for one in (*term, counted))
    is_plain = factors.clusters is None and factors.samples is None
    kept = whole > 0 if is_plain else size > 0
    is_single = is_plain and len(counted) == 1 and factors.num_draws == 1
    return Rate.of_units(part[kept], whole[kept], 1.0 if is_plain else size[kept], is_single=is_single)


def _run_values(terms: Sequence[Term], *, is_odds: bool) -> Array:
    """(runs,) the number in each run."""
    up, *down = (term.part.sum(-1) / term.whole.sum(-1) for term in terms)
    return np.asarray((up / (1 - up) if is_odds else up) - sum(down))


def _size(claim: Claim, terms: Sequence[Term], counted: Array, factors: Factors) -> tuple[int, str]:
    """How many units a single run has, in the words of the metric."""
    if factors.clusters is not None:
        return int(np.count_nonzero(sum_clusters(factors.pool(counted), factors.clusters))), "clusters"
    images = counted if claim.metric == "mscr" else terms[0].whole
    return int(np.count_nonzero(images)), UNITS[claim.metric]


def _undefined(metric: Metric, num_runs: int) -> str:
    reason = {"recovery": "no image is wrong when clean", "top1": "there are no images"}.get(
        metric, "no image is right when clean"
    )
    return reason if num_runs == 1 else f"{reason} in some run"
