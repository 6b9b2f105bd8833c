"""The parts of a report that say what was tested and how the numbers came to be, down to fingerprints."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from plotting.safety_case.document import Section, Table
from plotting.safety_case.evidence import Evidence

from testbed.masking import masked
from testbed.provenance import revision_words
from testbed.results.data_facts import DataFacts
from testbed.results.numerics import arithmetic_words
from testbed.store.evaluation import Evaluation

SHORT = 16  # digits of a fingerprint in a table


def model_section(found: Evidence) -> Section:
    """The definition that was evaluated, and its parameters by their hash."""
    marks = {one.model_fingerprint: one for one in found.evaluations}
    facts: dict[str, str] = {}
    for number, (mark, evaluation) in enumerate(marks.items()):
        behind = f" ({number + 1})" if len(marks) > 1 else ""
        loaded = found.store.model_facts(mark)
        outputs = None if loaded is None else loaded.num_outputs
        facts |= {
            f"name{behind}": evaluation.model,
            f"label space{behind}": evaluation.label_space,
            f"fingerprint of the definition{behind}": mark,
            f"SHA-256 of the parameters{behind}": (loaded and loaded.weights_sha256) or "none: nothing fixed to hash",
            f"outputs{behind}": "not known" if outputs is None else str(outputs),
        }
        facts |= {f"{name}{behind}": value for name, value in _spec(evaluation.model_spec).items()}
    return Section(title="The model", facts=facts)


def data_section(facts: Sequence[DataFacts], source: Mapping[str, str]) -> Section:
    """The data sets that were read, and where they come from. Args: source: what is known of that, by name."""
    rows = [(one.name, one.split, f"{one.n:,}", str(one.num_classes), one.fingerprint) for one in facts]
    header = ("data set", "split", "samples", "classes", "fingerprint of pixels or files, targets and class names")
    return Section(title="The data", facts=source, tables=[Table(header=header, rows=rows, num_names=2)])


def provenance_section(found: Evidence) -> Section:
    """The runs: when, with what code, versions, devices and arithmetic; then every evaluation by its fingerprint."""
    first = {one.run_id: one for one in found.evaluations}
    runs = {mark: one.provenance for mark, one in first.items()}
    facts: dict[str, str] = {}
    for number, (mark, run) in enumerate(sorted(runs.items(), key=lambda each: str(each[1].get("started_at")))):
        behind = f" ({number + 1})" if len(runs) > 1 else ""
        count = sum(one.run_id == mark for one in found.evaluations)
        facts |= {f"{name}{behind}": value for name, value in _run(run, count).items()}
    ways = sorted({arithmetic_words(one.numerics) for one in found.evaluations})
    facts["arithmetic"] = "; ".join(ways)
    facts["all numerics"] = "; ".join(sorted({_numerics(one) for one in found.evaluations}))
    return Section(title="How the numbers were made", facts=facts)


def evaluations_section(found: Evidence) -> Section:
    """Every evaluation that stands behind a number."""
    rows = [
        (one.setting, f"{one.fit_seed}, {one.noise_seed}", str(one.num_draws), f"{one.n:,}",
         one.setting_fingerprint[:SHORT], one.fingerprint[:SHORT])
        for one in found.evaluations
    ]  # fmt: skip
    header = ("setting", "seeds: fit, noise", "draws", "n", "definition", "evaluation")
    note = f"Of the last two columns, SHA-256, the first {SHORT} digits are shown; db.py --export has all."
    return Section(title="Evaluations", tables=[Table(header=header, rows=rows, is_long=True)], notes=[note])


def date_of(found: Evidence) -> str:
    """The day on which the last of the evaluations was completed: no other moment is in a report."""
    days = [one.completed_at for one in found.evaluations if one.completed_at is not None]
    return max(days).strftime("%Y-%m-%d") if days else "not known"


def _spec(spec: Mapping[str, Any]) -> dict[str, str]:
    """What a definition has that is not empty."""
    return {
        name.replace("_", " "): value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in spec.items()
        if value not in (None, "", [], {})
    }


def _run(run: Mapping[str, Any], count: int) -> dict[str, str]:
    if not run:
        return {"run": f"{count} evaluations without a record of their run, such as imported logits"}
    versions = ", ".join(f"{name} {version}" for name, version in (run.get("versions") or {}).items())
    started = run.get("started_at")
    return {
        "run": f"{run.get('uuid') or run['id']}, {count} evaluations",
        "started": "not known" if started is None else f"{started:%Y-%m-%d %H:%M} UTC",
        "code": revision_words(run.get("code_revision") or "") or "not from a git checkout",
        "versions": versions or "not known",
        "devices": ", ".join(map(str, run.get("devices") or ())) or "not known",
        "command": shlex.join(masked(str(argument)) for argument in run.get("argv") or ()) or "not known",
    }


def _numerics(one: Evaluation) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(one.numerics.items()))
