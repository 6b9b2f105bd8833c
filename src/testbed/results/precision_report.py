"""How many predictions of stored models change with the arithmetic of their networks, against fp32."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.errors import UnknownNameError, suggestion
from testbed.metrics.accuracy import percent
from testbed.metrics.intervals import clustered_proportion
from testbed.records import MetricValue
from testbed.results.numerics import ARITHMETIC, arithmetic_words, numerics_key, other_facts
from testbed.results.own import correct, without_labels
from testbed.results.records import number
from testbed.results.stored import complete_evaluations, is_named
from testbed.store.evaluation import Evaluation
from testbed.store.reader import Reader

Runs = dict[tuple[int, int], Evaluation]  # by the seeds of the fit and of the noise


@dataclass(frozen=True, kw_only=True)
class PrecisionRow:
    """A model on a setting in two kinds of numerics, over the runs that both have.

    Args:
        runs: the evaluations of each run: (in the arithmetic that is looked at, in fp32).
        changed: percent of the predictions that are not those in fp32; detail has their number and that of all.
        accuracies: top-1 in percent, (in the arithmetic that is looked at, in fp32); None where `reason` says why.
        reason: that it is not known which answers are right; empty where it is.
    """

    runs: Sequence[tuple[Evaluation, Evaluation]]
    changed: MetricValue
    accuracies: tuple[float | None, float | None]
    reason: str = ""

    @property
    def evaluation(self) -> Evaluation:
        """The first run's, in the arithmetic that is looked at."""
        return self.runs[0][0]

    @property
    def reference(self) -> Evaluation:
        """The first run's, in fp32."""
        return self.runs[0][1]

    @property
    def words(self) -> tuple[str, str]:
        """How each of the two was computed: the arithmetic, and what else of the numerics differs."""
        numerics = [one.numerics for one in self.runs[0]]
        first, second = (", ".join([arithmetic_words(own), *other_facts(own, numerics)]) for own in numerics)
        return first, second


@dataclass(frozen=True, kw_only=True)
class PrecisionReport:
    """What the store has on the question.

    Args:
        rows: by model and setting, in the order of the store.
        missing: by setting the models that were evaluated there in another arithmetic, and never in fp32.
    """

    rows: Sequence[PrecisionRow]
    missing: Mapping[str, list[str]]


def precision_report(
    store: Reader, *, models: Sequence[str], settings: Sequence[str], datasets: Sequence[str], confidence: float = 0.95
) -> PrecisionReport:
    """Every model on every setting in each of its numerics, against fp32: on the same device if that is stored.

    Args:
        models, settings, datasets: names and globs; all without any.
        confidence: of the intervals, each for itself. Images are the units; draws of the noise and runs lie in them.
    Raises:
        UnknownNameError: a model, setting or data set that is named has no complete evaluation there.
        StoreError: an evaluation is not stored as a whole.
    """
    complete = complete_evaluations(store)
    _check_named("Setting", settings, {one.setting for one in complete})
    _check_named("Data set", datasets, {one.dataset for one in complete})
    found = [one for one in complete if is_named(one.setting, settings) and is_named(one.dataset, datasets)]
    _check_named("Model", models, {one.model for one in found})
    groups: dict[tuple[str, str], dict[str, Runs]] = {}
    for one in found:
        if is_named(one.model, models):
            own = groups.setdefault((one.model_fingerprint, one.setting_fingerprint), {})
            own.setdefault(numerics_key(one), {})[one.fit_seed, one.noise_seed] = one
    rows: list[PrecisionRow] = []
    missing: dict[str, list[str]] = {}
    for own in groups.values():
        references = [runs for runs in own.values() if _is_fp32(_first(runs))]
        if not references:
            first = _first(next(iter(own.values())))
            missing.setdefault(first.setting, []).append(first.model)
            continue
        pairs = [(runs, _most_alike(runs, references)) for runs in own.values() if runs is not references[0]]
        rows += [row for runs, reference in pairs if (row := _row(runs, reference, confidence))]
    return PrecisionReport(rows=rows, missing=missing)


def precision_record(row: PrecisionRow) -> dict[str, Any]:
    """A row as a JSON-able record, numbers in percent."""
    evaluation, reference = row.evaluation, row.reference
    return {
        "model": evaluation.model,
        "eval_setting": evaluation.setting,
        "numerics": dict(evaluation.numerics),
        "against": dict(reference.numerics),
        "n": evaluation.n,
        "num_draws": row.changed.detail["num_draws"],
        "seeds": [max(one.fit_seed, one.noise_seed) for one, _ in row.runs],
        "num_changed": row.changed.detail["num_changed"],
        "num_predictions": row.changed.detail["num_predictions"],
        "changed": number(row.changed),
        "accuracy": row.accuracies[0],
        "accuracy_against": row.accuracies[1],
        "reason": row.reason or None,
    }


def _check_named(what: str, patterns: Sequence[str], known: Iterable[str]) -> None:
    stored = sorted(known)
    for pattern in patterns:
        if not any(is_named(name, [pattern]) for name in stored):
            hint = suggestion(pattern, stored) or "--list-models-db and --list-eval-settings-db name what there is."
            raise UnknownNameError(f"{what} '{pattern}' has no complete evaluation there. {hint}")


def _first(runs: Runs) -> Evaluation:
    return next(iter(runs.values()))


def _is_fp32(evaluation: Evaluation) -> bool:
    """Whether networks computed in float32 throughout, in the usual layout and as they are."""
    facts = evaluation.numerics
    return facts.get("dtype") == "float32" and not any(
        facts.get(name) for name in ("tf32", "channels_last", "compiled")
    )


def _most_alike(runs: Runs, references: Sequence[Runs]) -> Runs:
    """Of the runs in fp32 those that differ in least else, the device first; runs in fp32 are compared with the first.

    Those with no run in common come last.
    """
    own = _first(runs)
    if _is_fp32(own):
        return references[0]

    def distance(reference: Runs) -> tuple[bool, bool, int]:
        facts, others = own.numerics, _first(reference).numerics
        differing = sum(facts.get(name) != others.get(name) for name in {*facts, *others} - set(ARITHMETIC))
        return not runs.keys() & reference.keys(), facts.get("device") != others.get("device"), differing

    return min(references, key=distance)


def _row(runs: Runs, reference: Runs, confidence: float) -> PrecisionRow | None:
    """The row of two kinds of numerics; None where they have no run in common."""
    pairs = [(one, reference[seeds]) for seeds, one in runs.items() if seeds in reference]
    if not pairs:
        return None
    draws = [min(one.num_draws, other.num_draws) for one, other in pairs]
    differs = [
        one.predictions()[:count] != other.predictions()[:count]
        for (one, other), count in zip(pairs, draws, strict=True)
    ]
    indices = np.concatenate([one.sample_indices() for one, _ in pairs])
    per_image = np.concatenate([drawn.mean(axis=0) for drawn in differs])
    num_predictions = sum(drawn.size for drawn in differs)
    num_changed = sum(int(np.count_nonzero(drawn)) for drawn in differs)
    interval = clustered_proportion(
        per_image, num_draws=max(draws), clusters=indices if len(pairs) > 1 else None, confidence=confidence
    )
    detail = {"num_changed": num_changed, "num_predictions": num_predictions, "num_draws": max(draws)}
    changed = percent("changed", num_changed / num_predictions, interval, n=pairs[0][0].n, detail=detail)
    reason = next(filter(None, (without_labels(one) for pair in pairs for one in pair)), "")
    accuracies = (None, None) if reason else _accuracies(pairs, draws)
    return PrecisionRow(runs=pairs, changed=changed, accuracies=accuracies, reason=reason)


def _accuracies(pairs: Sequence[tuple[Evaluation, Evaluation]], draws: Sequence[int]) -> tuple[float, float]:
    first, second = (
        float(
            np.concatenate(
                [correct(pair[side])[:count].ravel() for pair, count in zip(pairs, draws, strict=True)]
            ).mean()
        )
        for side in (0, 1)
    )
    return 100 * first, 100 * second
