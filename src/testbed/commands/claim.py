"""The action of `db.py` that answers a claim about stored models: supported, refuted or undecided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from testbed.claim_language import Claim, parse_claim
from testbed.commands.action import Options, print_json, reading
from testbed.commands.mscr import fill_command
from testbed.commands.precision import precision_of
from testbed.errors import UnknownNameError
from testbed.report import WIDTH, former_words

SHOWN = 20  # classes that are not supported

if TYPE_CHECKING:
    from testbed.metrics.claims import Answer
    from testbed.results import Precision
    from testbed.results.claims import ClaimRow


def claim(options: Options) -> None:
    """Prints what the store says about a claim, a line per model.

    Raises: ClaimError: it cannot be read. UnknownNameError: what it is about is not stored.
    """
    from testbed.results.claims import NotStoredError, claim_rows

    wanted, precision = parse_claim(options["claim"]), precision_of(options)
    with reading(options) as store:
        try:
            rows = claim_rows(store, wanted, options["models"], precision, per_class=options["per_class"])
        except NotStoredError as error:
            command = fill_command(options, error.models, error.setting)
            raise UnknownNameError(f"{error} Run: {command}") from None
    if options["as_json"]:
        print_json(_record(wanted, rows, precision))
    else:
        print("\n".join(_lines(wanted, rows, precision)))


def _record(wanted: Claim, rows: Sequence[ClaimRow], precision: Precision) -> dict[str, object]:
    from testbed.results.claims import claim_record, common_verdict
    from testbed.results.stored import model_names

    names = model_names([row.runs[0] for row in rows])
    return {
        "claim": str(wanted),
        "verdict": common_verdict(row.verdict for row in rows),
        "confidence": precision.confidence,
        "cluster_by": precision.cluster_by or None,
        "correction": {"method": "Bonferroni", "num_claims": sum(len(row.answers) for row in rows)},
        "results": [claim_record(row, names[row.evaluation.id]) for row in rows],
    }


def _lines(wanted: Claim, rows: Sequence[ClaimRow], precision: Precision) -> Iterator[str]:
    from testbed.results.stored import model_names

    names = model_names([row.runs[0] for row in rows])
    asked = sum(len(row.answers) for row in rows)
    together = f", all {asked} verdicts together (Bonferroni)" if asked > 1 else ""
    yield f"{wanted}, with {100 * precision.confidence:g} % confidence{together}"
    for row in rows:
        name, answers = names[row.evaluation.id], row.answers
        if "" in answers:
            yield _wrapped(f"{name}: {answer_text(answers[''], wanted)}", "  ")
        else:
            yield from _class_lines(name, row, wanted)
    methods = dict.fromkeys(answer.method for row in rows for answer in row.answers.values() if answer.method)
    if methods:
        yield _wrapped(f"Bounds, one-sided: {'; '.join(methods)}.", "  ")
    for setting in dict.fromkeys(group[0].evaluation.setting for row in rows for group in row.runs):
        yield from _shared_note(setting, rows)
    for words in former_words(run.evaluation for row in rows for group in row.runs for run in group):
        yield _wrapped(words, "  ")


def _class_lines(name: str, row: ClaimRow, wanted: Claim) -> Iterator[str]:
    """How many classes there are, and those that are not supported, refuted ones first."""
    left = [(of, answer) for of, answer in row.answers.items() if answer.verdict != "supported"]
    left.sort(key=lambda one: one[1].verdict != "refuted")
    total = len(row.answers)
    yield f"{name}: {row.verdict} for all {total} classes together; {total - len(left)} of them supported"
    yield from (_wrapped(f"  class '{of}': {answer_text(answer, wanted)}", "    ") for of, answer in left[:SHOWN])
    if len(left) > SHOWN:
        yield f"  ... and {len(left) - SHOWN} more, see --json"


def _wrapped(text: str, indent: str) -> str:
    return fill(text, WIDTH, subsequent_indent=indent)


def answer_text(answer: Answer, wanted: Claim) -> str:
    """The verdict, the number and what bounds it, and what would decide it."""
    if answer.value is None:
        return f"undecided, because it is undefined: {answer.reason}"
    unit = "points" if wanted.subtracted else "%"
    value = f"{_number(answer.value)} {unit} (n = {answer.n} {answer.unit})"
    return f"{answer.verdict}: {value}, {_bound(answer, wanted)}{_what_decides(answer)}"


def _bound(answer: Answer, wanted: Claim) -> str:
    """The bound that decided, or both."""
    low, high = f"at least {_number(answer.low)}", f"at most {_number(answer.high)}"
    if answer.verdict == "undecided":
        return f"{low} and {high}"
    return high if (answer.verdict == "supported") == wanted.operator.startswith("<") else low


def _what_decides(answer: Answer) -> str:
    if answer.reason:
        return f"; {answer.reason}"
    if answer.verdict != "undecided":
        return ""
    if answer.needed is None:
        where = " on these images" if answer.unit == "runs" else ""
        return f"; no number like these would decide it{where}"
    return f"; {answer.needed:,} like these would decide it"


def _number(value: float | None) -> str:
    """In percent; a number that is 0 but for rounding is 0."""
    return "" if value is None else f"{round(100 * value, 9) + 0.0:.4g}"


def _shared_note(setting: str, rows: Sequence[ClaimRow]) -> Iterator[str]:
    """That a claim is about the draws at hand, where one model is asked about noise that all images share."""
    from testbed.results.runs import by_fit

    groups = [group for row in rows for group in row.runs if group[0].evaluation.setting == setting]
    shift = groups[0][0].evaluation.shift
    if shift is not None and shift.family.endswith("-shared") and any(len(by_fit(group)) == 1 for group in groups):
        yield _wrapped(f"{setting}: all images share the noise of a draw; the verdict is about these.", "  ")
