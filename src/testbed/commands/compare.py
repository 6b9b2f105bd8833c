"""The action of `db.py` that tells how two stored models differ on the same samples and the same noise."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from testbed.commands.action import Options, print_json, reading
from testbed.commands.precision import precision_of, precision_words
from testbed.report import (
    SHARED_DRAWS,
    WIDTH,
    aligned_table,
    few_runs_lines,
    former_words,
    interval_cell,
    undefined_words,
)

if TYPE_CHECKING:
    from testbed.results import Precision
    from testbed.results.pairs import PairRow

NAMES = {"accuracy": "accuracy %", "mscr": "MSCR %", "loss": "loss %"}


def compare(options: Options) -> None:
    """Prints the differences of two models in accuracy, MSCR and loss, with intervals and tests.

    Raises: UnknownNameError: nothing to compare. DataError: samples, draws or seeds differ.
    """
    from testbed.results.pairs import compare_models, pair_record

    precision, models = precision_of(options), options["compare"]
    with reading(options) as store:
        rows = compare_models(store, models, precision, settings=options["eval_settings"], datasets=options["datasets"])
    if options["as_json"]:
        asked = {"confidence": precision.confidence, "one_sided": precision.is_one_sided}
        print_json({"results": [pair_record(row) for row in rows], **asked, "cluster_by": precision.cluster_by or None})
    else:
        print(_text(rows, models, precision))


def _text(rows: Sequence[PairRow], models: tuple[str, str], precision: Precision) -> str:
    from testbed.results.pairs import SIDES
    from testbed.results.runs import has_shared_draws

    ways = dict.fromkeys(row.arithmetic for row in rows)
    table = [["setting", "metric", "n", *models, "difference", "differ on", "p", "p (Holm)", "test"]]
    for row in rows:
        evaluation, found = row.evaluation, row.contrast
        runs = f" x {len(row.runs)}" if len(row.runs) > 1 else ""
        values = ("undefined" if value is None else f"{value:.2f}" for value in found.values)
        difference = interval_cell(found.difference, precision.side(SIDES[found.difference.name]))
        size = f"{evaluation.n} x {evaluation.num_draws}{runs}"
        setting = f"{evaluation.setting} ({row.arithmetic})" if len(ways) > 1 else evaluation.setting
        differing = "" if found.num_differing is None else str(found.num_differing)
        table.append([setting, NAMES[found.difference.name], size, *values, difference, differing, _p(found.p_value),
                      _p(row.holm), found.test])  # fmt: skip
    side = f" ({models[0]} is better)" if precision.is_one_sided else ""
    notes = [
        f"difference: {models[0]} less {models[1]}, percentage points, on the same samples and noise. "
        f"{precision_words(precision).capitalize()}, each for itself. n is samples x draws (x runs).",
        f"p: smallest level at which the interval excludes 0{side}, or by McNemar's exact test where a sample has one "
        "answer. Holm: corrected for the settings of this table, each metric for itself.",
    ]
    shared = dict.fromkeys(row.evaluation.setting for row in rows if has_shared_draws([pair[0] for pair in row.runs]))
    notes += [f"{setting}: {SHARED_DRAWS}." for setting in shared]
    notes += undefined_words({row.evaluation.setting: row.reason for row in rows if row.reason})
    notes += few_runs_lines([pair[0] for pair in row.runs] for row in rows)
    warnings = dict.fromkeys((model, warning) for row in rows for model, warning in row.warnings.items())
    notes += [f"{model}: {warning}." for model, warning in warnings]
    notes += [f"The two models computed in different ways: {way}." for way in ways if " and " in way]
    notes += former_words(run.evaluation for row in rows for pair in row.runs for run in pair)
    return "\n".join([aligned_table(table, num_names=2), "", *(fill(note, WIDTH) for note in notes)])


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if value >= 0.001 else f"{value:.1e}"
