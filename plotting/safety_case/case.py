"""The whole report on a model and a data set, section by section."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from plotting.safety_case.commands import commands_section
from plotting.safety_case.corruptions import corruption_sections, stored_corruptions
from plotting.safety_case.document import Section, Table
from plotting.safety_case.evidence import Evidence, evidence
from plotting.safety_case.identity import (
    data_section,
    date_of,
    evaluations_section,
    model_section,
    provenance_section,
)
from plotting.safety_case.left_open import left_open
from plotting.safety_case.noise import clean_section, noise_section
from plotting.safety_case.statements import statement

from testbed.claim_language import parse_claim
from testbed.commands.claim import answer_text
from testbed.metrics.intervals import tails
from testbed.results import Precision
from testbed.results.claims import claim_rows
from testbed.results.data_facts import data_facts
from testbed.results.stored import model_names
from testbed.store.reader import Reader


@dataclass(frozen=True, kw_only=True)
class SafetyCase:
    """A report.

    Args:
        model, dataset: what it is about.
        confidence: of its bounds and intervals.
        date: of the last evaluation.
        sections: in their order.
    """

    model: str
    dataset: str
    confidence: float
    date: str
    sections: Sequence[Section]


def safety_case(
    store: Reader, model: str, dataset: str | None, *, confidence: float = 0.95, claims: Sequence[str] = (),
    source: Mapping[str, Mapping[str, str]] | None = None,
) -> SafetyCase:  # fmt: skip
    """The report on a model.

    Args:
        dataset: None for the only one that is stored.
        confidence: of each bound and interval, and of all claims together.
        claims: as `testbed.claim_language` reads them.
        source: by data set where it comes from.
    Raises:
        UnknownNameError: the model has nothing on the data set, or on a setting that a claim is about.
        TestbedError: no such confidence or claim, or one data set has to be chosen.
    """
    tails(confidence)
    found = evidence(store, model, dataset)
    grids = stored_corruptions(found, confidence)
    facts = data_facts(store, {one.setting_fingerprint for one in found.evaluations})
    models = [stored for one in grids for stored in one.models]
    sections = [
        statement(found, models, confidence),
        *_claims(found, claims, confidence),
        left_open(found, grids, facts),
        clean_section(found, confidence),
        noise_section(found, confidence),
        *corruption_sections(found, grids, confidence),
        model_section(found),
        data_section(facts, (source or {}).get(found.dataset, {})),
        provenance_section(found),
        commands_section(found, confidence, claims),
        evaluations_section(found),
    ]
    return SafetyCase(
        model=found.model, dataset=found.dataset, confidence=confidence, date=date_of(found), sections=sections
    )


def _claims(found: Evidence, claims: Sequence[str], confidence: float) -> Iterator[Section]:
    """What `db.py --claim` says; the verdicts of all hold together (Bonferroni)."""
    if not claims:
        return
    precision = Precision(confidence=1 - (1 - confidence) / len(claims))
    rows = []
    for text in claims:
        claim = parse_claim(text)
        answered = claim_rows(found.store, claim, [found.model], precision, per_class=False)
        names = model_names([row.runs[0] for row in answered])
        rows += [
            (str(claim), names[row.evaluation.id], answer_text(answer, claim))
            for row in answered
            for answer in row.answers.values()
        ]
    note = f"All verdicts together are right with {100 * confidence:g} % confidence (Bonferroni over {len(claims)})."
    if len(claims) > 1:
        note += " So bounds lie further out here than in the statement, where each holds so by itself."
    table = Table(header=("claim", "model", "verdict"), rows=rows, num_names=3)
    yield Section(title="Claims", tables=[table], notes=[note])
