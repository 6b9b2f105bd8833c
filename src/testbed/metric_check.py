"""Whether stored metrics are those of the stored predictions, and their repair."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from testbed.errors import TestbedError
from testbed.records import MetricValue
from testbed.results import accuracies_of, compared, own_metrics, store_comparison
from testbed.results.stored import complete_evaluations, stored_groups
from testbed.store import digests, verification
from testbed.store.evaluation import Evaluation
from testbed.store.reader import Reader
from testbed.store.store import Store
from testbed.store.verification import Finding, Verification

# What stored intervals of the worst class were before their tails were exact. Their bounds are those that were written,
# as the row's digest tells; `--recompute` brings them up to date.
_FORMER = re.compile(r"(wilson|exact and mid-p)(, effective n)?; Bonferroni over \d+ classes")
TOLERANCE = 1e-9  # relative: another processor may round the last digit otherwise


def verify(store: Reader) -> Verification:
    """Reads everything in the store, and computes the built-in metrics of what is sound again.

    Raises: StoreError: a table or a column is missing.
    """
    found = verification.verify(store)
    damaged = {finding.evaluation_id or finding.metrics_of for finding in found.findings}
    differing = tuple(_check(store, damaged)) if all(map(_is_local, found.findings)) else ()
    return replace(found, findings=(*found.findings, *differing))


def repair(store: Store, findings: Iterable[Finding]) -> int:
    """Computes the metrics that are not those of their predictions again; returns of how many evaluations."""
    return _repaired(store, {finding.metrics_of for finding in findings if finding.metrics_of is not None})


def repair_damaged(store: Store) -> int:
    """Computes the metrics of which a row is not as it was written again; returns of how many evaluations."""
    with store.writing() as connection:
        ids = digests.damaged_metrics(connection)
    return _repaired(store, ids)


def _repaired(store: Store, ids: set[int]) -> int:
    if not ids:
        return 0
    with store.writing() as connection:
        digests.delete_damaged_metrics(connection, ids)
    parents = _parents(store, ids)
    known = [one for one in store.list_evaluations(with_removed=True) if one.id in ids]
    for evaluation in known:
        references = {*evaluation.comparisons(), *parents.get(evaluation.id, ())}
        store.put_metrics(evaluation.id, own_metrics(evaluation))
        for reference in sorted(references):
            store_comparison(store, evaluation, store.evaluation_by_id(reference))
    return len(known)


def _parents(store: Reader, ids: set[int]) -> dict[int, list[int]]:
    """By the id of an evaluation that of its clean parent: a comparison may be gone whole."""
    groups = stored_groups(store, complete_evaluations(store), lambda evaluation: evaluation.id in ids)
    return {run.evaluation.id: [run.clean.id] for group in groups for run in group if run.clean is not None}


def _is_local(finding: Finding) -> bool:
    """Whether a finding says nothing about other evaluations than its own."""
    return finding.can_be_mended


def _check(store: Reader, damaged: set[int | None]) -> Iterator[Finding]:
    complete = store.list_evaluations(status="complete", with_removed=True)
    sound = {evaluation.id: evaluation for evaluation in complete if evaluation.id not in damaged}
    for evaluation in sound.values():
        pair = f"{evaluation.model} on {evaluation.setting}"
        try:
            is_right = _is_own(evaluation) and _is_compared(evaluation, sound)
        except (TestbedError, TypeError, ValueError) as error:
            text = f"Metrics of {pair} (evaluation {evaluation.id}) cannot be checked: {error}"
            yield Finding(text=text)
            continue
        if not is_right:
            text = (
                f"Metrics of {pair} (evaluation {evaluation.id}) are not those of its predictions; "
                "db.py --recompute mends it."
            )
            yield Finding(text=text, metrics_of=evaluation.id)


def _is_own(evaluation: Evaluation) -> bool:
    """Whether the built-in accuracies are those of the ranks; a setting or a plugin may have replaced some."""
    stored = {value.name: value for value in evaluation.metrics()}
    computed = accuracies_of(evaluation).values()
    is_replaced = {name for name, value in stored.items() if "source" in value.detail}
    return all(_is_stored(value, stored) for value in computed if value.name not in is_replaced)


def _is_compared(evaluation: Evaluation, sound: dict[int, Evaluation]) -> bool:
    """Whether the comparisons are those with their references; one that is not whole now is left for later."""
    for reference, values in evaluation.comparisons().items():
        if reference in sound:
            stored = {value.name: value for value in values}
            computed = compared(evaluation, sound[reference])
            if not all(_is_stored(value, stored) for value in computed):
                return False
    return True


def _is_stored(computed: MetricValue, stored: dict[str, MetricValue]) -> bool:
    found = stored.get(computed.name)
    if found is None or found.n != computed.n:
        return False
    if _FORMER.fullmatch(found.method):
        return _is_same(found.value, computed.value)
    if (found.method, found.reason) != (computed.method, computed.reason):
        return False
    pairs = [(found.value, computed.value), (found.ci_low, computed.ci_low), (found.ci_high, computed.ci_high)]
    return all(_is_same(*pair) for pair in pairs)


def _is_same(found: float | None, computed: float | None) -> bool:
    """Whether both are missing or close; SQLite may hold a text where a number belongs."""
    computed = None if computed is None or not math.isfinite(computed) else float(computed)
    if found is None or computed is None:
        return found is computed
    return isinstance(found, float) and math.isclose(found, computed, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
