"""A claim about stored models: their outcomes, and what these say, corrected for how many are asked at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.claim_language import Claim, ClaimError
from testbed.errors import DataError, UnknownNameError, suggestion
from testbed.metrics.claim_evidence import decide
from testbed.metrics.claims import Answer, Verdict
from testbed.results.numerics import network_key
from testbed.results.precision import Precision
from testbed.results.runs import by_fit, guessing_when_clean, outcomes_of, unknown_answers
from testbed.results.stored import Group, complete_evaluations, is_named, stored_groups
from testbed.store.evaluation import Evaluation
from testbed.store.reader import Reader

_POSITION = re.compile(r"[^/]+/\d+")


class NotStoredError(UnknownNameError):
    """Models that must be evaluated on a setting before the claim can be answered."""

    def __init__(self, message: str, *, models: Sequence[str], setting: str) -> None:
        super().__init__(message)
        self.models, self.setting = models, setting


@dataclass(frozen=True, kw_only=True)
class ClaimRow:
    """What the store says about a claim on one model.

    Args:
        runs: on each setting of the claim.
        answers: by class, or one under '' for all images. They hold together, and with those of the other rows.
    """

    runs: tuple[Group, ...]
    answers: Mapping[str, Answer]

    @property
    def verdict(self) -> Verdict:
        """Of the claim for all classes."""
        return common_verdict(answer.verdict for answer in self.answers.values())

    @property
    def evaluation(self) -> Evaluation:
        """The first run's on the first setting."""
        return self.runs[0][0].evaluation


def common_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Of a claim that all have to keep: one that breaks it refutes it."""
    found = set(verdicts)
    return "refuted" if "refuted" in found else "undecided" if "undecided" in found else "supported"


def claim_rows(
    store: Reader, claim: Claim, models: Sequence[str], precision: Precision, *, per_class: bool
) -> list[ClaimRow]:
    """The row of each model, corrected for the number of models and classes (Bonferroni).

    Args:
        models: names and globs; all that were evaluated on the claim's settings without any.
        precision: confidence of all verdicts together, and clusters.
        per_class: ask of every class that has images.
    Raises:
        NotStoredError: a setting or a model has no complete evaluation.
        ClaimError: nothing is lost or recovered on a clean setting.
        DataError: the two settings of a difference are not of the same samples; a sample is in no cluster.
    """
    groups = _groups(store, complete_evaluations(store), claim, models)
    classes = [_classes(pair[0]) if per_class else {} for pair in groups]
    alpha = (1 - precision.confidence) / sum(max(1, len(own)) for own in classes)
    return [_row(claim, pair, own, precision, alpha) for pair, own in zip(groups, classes, strict=True)]


def claim_record(row: ClaimRow, name: str) -> dict[str, Any]:
    """A row as a JSON-able record, numbers in percent. Args: name: of the model."""
    answers = [{"class": of, **_answer_record(answer)} for of, answer in row.answers.items()]
    shared = {"model": name, "verdict": row.verdict, "num_draws": row.evaluation.num_draws}
    shared |= {"seeds": [run.seed for run in row.runs[0]], "numerics": dict(row.evaluation.numerics)}
    shared["is_current"] = all(run.evaluation.is_current for group in row.runs for run in group)
    return shared | ({"classes": answers} if "" not in row.answers else _answer_record(row.answers[""]))


def _row(
    claim: Claim, pair: tuple[Group, ...], classes: Mapping[str, int], precision: Precision, alpha: float
) -> ClaimRow:
    fits = [by_fit(group) for group in pair]
    outcomes = [outcomes_of(fit, precision) for fit in fits]
    if unknown := unknown_answers(run for group in pair for run in group):
        return ClaimRow(runs=pair, answers={"": Answer(verdict="undecided", reason=unknown)})
    guesses = "" if claim.metric == "top1" else guessing_when_clean(pair[0])

    def answer_of(members: NDArray[np.bool_] | None) -> Answer:
        found = decide(claim, outcomes, alpha=alpha, members=members)
        return replace(found, verdict="undecided", needed=None, reason=guesses) if guesses else found

    if not classes:
        return ClaimRow(runs=pair, answers={"": answer_of(None)})
    targets = np.array([fit[0].evaluation.targets() for fit in fits[0]])
    return ClaimRow(runs=pair, answers={name: answer_of(targets == index) for name, index in classes.items()})


def _answer_record(answer: Answer) -> dict[str, Any]:
    numbers = {"value": answer.value, "at_least": answer.low, "at_most": answer.high}
    percent = {
        name: None if value is None or not np.isfinite(value) else 100 * value for name, value in numbers.items()
    }
    return {
        "verdict": answer.verdict,
        **percent,
        "n": answer.n,
        "unit": answer.unit,
        "needed": answer.needed,
        "method": answer.method or None,
        "reason": answer.reason or None,
    }


def _groups(
    store: Reader, evaluations: Sequence[Evaluation], claim: Claim, models: Sequence[str]
) -> list[tuple[Group, ...]]:
    """The runs of each model on each setting of the claim."""
    by_setting = [_on_setting(store, evaluations, setting, claim, models) for setting in claim.settings]
    if not models and (common := [key for key in by_setting[0] if all(key in own for own in by_setting)]):
        by_setting = [{key: own[key] for key in common} for own in by_setting]  # nobody asked for the others by name
    for setting, own in zip(claim.settings, by_setting, strict=True):
        lacking = {key: group for other in by_setting for key, group in other.items() if key not in own}
        if lacking:
            names = sorted({group[0].evaluation.model for group in lacking.values()})
            raise NotStoredError(
                f"A difference needs both of its settings, but {', '.join(names)} was not evaluated on '{setting}' in "
                "the same way.", models=names, setting=setting,
            )  # fmt: skip
    pairs = [tuple(own[key] for own in by_setting) for key in by_setting[0]]
    if claim.subtracted is not None:
        for pair in pairs:
            _check_same(pair, claim)
    return pairs


def _on_setting(
    store: Reader, evaluations: Sequence[Evaluation], setting: str, claim: Claim, models: Sequence[str]
) -> dict[tuple[str, str], Group]:
    """The runs of each model on one setting, by the model's fingerprint and the numerics of the network.

    Raises: DataError: there are two of these, with the perturbation computed on different devices.
    """
    there = [one for one in evaluations if one.setting == setting]
    if not there:
        hint = suggestion(setting, sorted({one.setting for one in evaluations}))
        text = f"No model has a complete evaluation on '{setting}' in {store.url}. {hint}".rstrip()
        raise NotStoredError(text, models=models or ("MODEL",), setting=setting)
    for pattern in models:
        if not any(is_named(one.model, [pattern]) for one in there):
            hint = suggestion(pattern, sorted({one.model for one in there}))
            text = f"Model '{pattern}' has no complete evaluation on '{setting}' in {store.url}. {hint}".rstrip()
            raise NotStoredError(text, models=[pattern], setting=setting)
    found = stored_groups(store, evaluations, lambda one: one.setting == setting and is_named(one.model, models))
    if claim.metric != "top1":
        for group in found:
            _check_parents(group, claim, evaluations)
    by_model = {(group[0].evaluation.model_fingerprint, network_key(group[0].evaluation)): group for group in found}
    if len(by_model) < len(found):
        raise DataError(
            f"A model was evaluated on '{setting}' with its perturbation computed on the device and on the CPU. Put "
            "what the claim is about into a database of its own: eval.py --db-url."
        )
    return by_model


def _check_parents(group: Group, claim: Claim, evaluations: Sequence[Evaluation]) -> None:
    """Refuses a setting that is not shifted, and a run without its clean evaluation."""
    evaluation = group[0].evaluation
    if evaluation.shift is None:
        shifted = sorted({one.setting for one in evaluations if one.dataset == evaluation.dataset and one.shift})
        raise ClaimError(
            f"Setting '{evaluation.setting}' has no clean parent, so it has no {claim.metric}. Ask for "
            f"top1({evaluation.setting}), or for {claim.metric} on {', '.join(shifted) or 'a shifted setting'}."
        )
    if not all(run.clean for run in group):
        text = f"'{evaluation.model}' on '{evaluation.setting}' has no complete clean evaluation to be compared with."
        raise NotStoredError(text, models=[evaluation.model], setting=evaluation.setting)


def _check_same(pair: tuple[Group, ...], claim: Claim) -> None:
    """Refuses two settings that are not of the same samples, fitted models and clean evaluations."""
    first, second = ([fit[0] for fit in by_fit(group)] for group in pair)
    seeds = [[run.evaluation.fit_seed for run in runs] for runs in (first, second)]
    if seeds[0] != seeds[1] or not all(
        _are_same_samples(one.evaluation, other.evaluation) for one, other in zip(first, second, strict=True)
    ):
        raise DataError(f"{' and '.join(claim.settings)} are not of the same samples and runs, which a difference is.")
    parents = [[run.clean.id if run.clean else None for run in runs] for runs in (first, second)]
    if claim.metric != "top1" and parents[0] != parents[1]:
        raise DataError(f"{' and '.join(claim.settings)} have other clean parents: their {claim.metric} is of others.")


def _are_same_samples(one: Evaluation, other: Evaluation) -> bool:
    """Whether two evaluations are of the same samples; ids such as `test/17` are positions, which every set has."""
    ids = one.sample_ids()
    is_known = one.dataset == other.dataset or not all(_POSITION.fullmatch(name) for name in ids)
    return is_known and ids == other.sample_ids()


def _classes(group: Group) -> dict[str, int]:
    """By name the indices of the classes that have images; equal names have their index behind them."""
    fits = [fit[0].evaluation for fit in by_fit(group)]
    names, targets = fits[0].class_names, np.unique([fit.targets() for fit in fits])
    return {
        names[index] if names.count(names[index]) == 1 else f"{names[index]} ({index})": int(index)
        for index in targets[targets >= 0]
    }
