"""The action of `db.py` that tells how many predictions change with the arithmetic of the networks, against fp32."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from testbed.cli import EXIT_SOME_FAILED, say
from testbed.commands.action import Options, print_json, reading
from testbed.commands.mscr import fill_command
from testbed.errors import UnknownNameError
from testbed.report import WIDTH, aligned_table, interval_cell, undefined_words

if TYPE_CHECKING:
    from testbed.results.precision_report import PrecisionRow

HEADER = ("model", "setting", "arithmetic", "against", "n", "changed", "changed %", "top-1 %", "against %")


def precision_report(options: Options) -> int | None:
    """Prints for every model and setting how many predictions change against fp32, and the accuracy of both.

    Raises: UnknownNameError: nothing was evaluated in fp32 and in another arithmetic; the message says how to.
    """
    from testbed.results.precision_report import precision_record
    from testbed.results.precision_report import precision_report as report_of

    confidence = options["confidence"]
    with reading(options) as store:
        found = report_of(
            store, models=options["models"], settings=options["eval_settings"], datasets=options["datasets"],
            confidence=confidence,
        )  # fmt: skip
    missing = [
        f"Not stored in fp32: {', '.join(dict.fromkeys(models))} on {setting}. Run: "
        f"{fill_command(options, models, setting)} --precision fp32"
        for setting, models in found.missing.items()
    ]
    if not found.rows:
        raise UnknownNameError("\n".join(missing) or _nothing(options))
    if options["as_json"]:
        print_json({"results": [precision_record(row) for row in found.rows], "confidence": confidence})
    else:
        print(_text(found.rows, confidence))
    for line in missing:
        say(line)
    return EXIT_SOME_FAILED if missing else None


def _nothing(options: Options) -> str:
    models, settings = options["models"] or ("MODEL",), options["eval_settings"] or ("SETTING",)
    return (
        "No model that was asked for was evaluated in fp32 and in another arithmetic as well. Run: "
        f"{fill_command(options, models, settings)} --precision bf16"
    )


def _text(rows: Sequence[PrecisionRow], confidence: float) -> str:
    table: list[Sequence[str]] = [HEADER]
    for row in rows:
        evaluation, detail = row.evaluation, row.changed.detail
        runs = f" x {len(row.runs)}" if len(row.runs) > 1 else ""
        size = f"{evaluation.n} x {detail['num_draws']}{runs}"
        accuracies = ("undefined" if value is None else f"{value:.2f}" for value in row.accuracies)
        table.append((evaluation.model, evaluation.setting, *row.words, size, str(detail["num_changed"]),
                      interval_cell(row.changed), *accuracies))  # fmt: skip
    note = (
        f"changed: predictions that are not those in fp32, of the same images under the same noise; "
        f"{100 * confidence:g} % intervals over images, draws of the noise and runs nested in them, each for itself. "
        "n is samples x draws (x runs)."
    )
    notes = [note, *undefined_words({row.evaluation.setting: row.reason for row in rows if row.reason})]
    return "\n".join([aligned_table(table, num_names=4), "", *(fill(note, WIDTH) for note in notes)])
