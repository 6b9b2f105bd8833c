"""The action of `db.py` that tells what noise costs each stored model, and whether that is more than chance."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from testbed.cli import EXIT_SOME_FAILED, say
from testbed.commands.action import Options, print_json, reading
from testbed.commands.precision import precision_of, precision_words
from testbed.errors import UnknownNameError
from testbed.masking import masked
from testbed.records import NORMS, MetricValue
from testbed.report import (
    NORM_SYMBOLS,
    SHARED_DRAWS,
    WIDTH,
    aligned_table,
    clean_parent_words,
    clipping_lines,
    few_runs_lines,
    former_words,
    interval_cell,
    separation_words,
)

if TYPE_CHECKING:
    from testbed.results import Precision
    from testbed.results.mscr import MscrRow

COLUMNS = {"clean_accuracy": "clean %", "robust_accuracy": "robust %", "mscr": "MSCR %", "loss": "loss %",
           "recovery": "recovery %"}  # fmt: skip
PUBLISHED = {"mscr_published_interval": "MSCR %, published interval"}
REAL = ("model", "setting", "epsilon", "worst class under noise, %", "robust - clean, points", "real?")


def mscr(options: Options) -> int | None:
    """Prints accuracy, MSCR, loss and recovery of stored models under noise, and whether the change is real.

    Raises: UnknownNameError: nothing of what is asked for is stored; the message has the command that fills it.
    """
    from testbed.results.levels import Levels, answers
    from testbed.results.mscr import mscr_record, mscr_rows, undefined_levels

    precision = precision_of(options)
    levels = Levels(models=options["models"], datasets=options["datasets"], norms=options["norm"],
                    epsilon=options["epsilon"])  # fmt: skip
    with reading(options) as store:
        found = answers(store, levels)
        rows = mscr_rows(found.groups, precision)
        separations = {setting.name: setting.spec.get("separation") for setting in store.list_settings()}
        answered = {(row.evaluation.dataset, row.evaluation.shift.norm) for row in rows if row.evaluation.shift}
        undefined = [
            one for one in undefined_levels(store)
            if levels.is_of(one["dataset"], one["norm"]) and (one["dataset"], one["norm"]) not in answered
        ]  # fmt: skip
    missing = [
        f"Not stored: {', '.join(models)} on {setting}. Run: {fill_command(options, models, setting, found.seeds)}"
        for setting, models in found.missing.items()
    ]
    if not rows and not undefined:
        raise UnknownNameError("\n".join(missing) or _nothing(options))
    if options["as_json"]:
        records = [mscr_record(row, separations.get(row.evaluation.setting)) for row in rows]
        print_json({"results": records, "undefined": undefined, **_asked(precision, len(rows))})
    else:
        print(_text(rows, separations, undefined, precision))
    for line in missing:
        say(line)
    return EXIT_SOME_FAILED if missing else None


def fill_command(
    options: Options, models: Iterable[str], setting: str | Sequence[str], seeds: Sequence[int] = ()
) -> str:
    """The command line that evaluates models on a setting, or on several, into the store that was asked."""
    store = ["--db"] if not options["db_url"] else ["--db-url", masked(str(options["db_url"]))]
    store = ["--logdir", str(options["logdir"])] if options["logdir"] else store
    settings = [setting] if isinstance(setting, str) else setting
    names = ["--models", *dict.fromkeys(models), "--eval-settings", *settings]
    runs = ["--seeds", *map(str, seeds)] if set(seeds) - {0} else []
    return shlex.join(["python", "eval.py", *names, *runs, *store])


def _nothing(options: Options) -> str:
    models = options["models"] or ("MODEL",)
    setting = f"{(options['datasets'] or ('DATASET',))[0]}-mscr-{(options['norm'] or NORMS)[0]}"
    return (
        "No model that was asked for has a complete evaluation under noise at half the minimal class separation. Run: "
        f"{fill_command(options, models, setting)}"
    )


def _asked(precision: Precision, num_rows: int) -> dict[str, Any]:
    return {
        "confidence": precision.confidence,
        "one_sided": precision.is_one_sided,
        "cluster_by": precision.cluster_by or None,
        "correction": {"of": "accuracy_change", "method": "Bonferroni", "num_intervals": num_rows},
    }


def _text(
    rows: Sequence[MscrRow],
    separations: Mapping[str, Mapping[str, Any] | None],
    undefined: Sequence[Mapping[str, str]],
    precision: Precision,
) -> str:
    """The numbers, whether they are real, and what stands behind them."""
    lines = [_tables(rows, precision)] if rows else []
    lines += [fill(line, WIDTH) for line in _notes(rows, separations, precision)]
    lines += [
        fill(f"{one['dataset']} in {NORM_SYMBOLS[one['norm']]}: MSCR is undefined, since {one['reason']}.", WIDTH)
        for one in undefined
    ]
    return "\n".join(lines)


def _tables(rows: Sequence[MscrRow], precision: Precision) -> str:
    from testbed.results.mscr import SIDES
    from testbed.results.stored import model_names

    names = model_names([row.runs for row in rows])
    columns = COLUMNS | (PUBLISHED if any(row.num_fits > 1 for row in rows) else {})
    numbers, real = [("model", "setting", "n", *columns.values())], [REAL]
    for row in rows:
        evaluation, shift = row.evaluation, row.evaluation.shift
        who = (names[evaluation.id], evaluation.setting)
        cells = [_cell(row.metrics.get(name), precision, SIDES.get(name, "both")) for name in columns]
        numbers.append((*who, _size(row), *cells))
        worst = row.metrics["worst_class_accuracy"]
        worst_class = f"'{worst.detail['class']}' " if worst.value is not None else ""
        real.append((*who, f"{shift.epsilon:.6g}" if shift and shift.epsilon is not None else "",
                     worst_class + _cell(worst, precision, "lower"),
                     _cell(row.accuracy_change, precision, "upper"), row.verdict))  # fmt: skip
    return f"{aligned_table(numbers, num_names=2)}\n\n{aligned_table(real, num_names=2)}\n"


def _cell(value: MetricValue | None, precision: Precision, one_sided: Any) -> str:
    is_published = value is not None and value.name in PUBLISHED
    return "" if value is None else interval_cell(value, "both" if is_published else precision.side(one_sided))


def _size(row: MscrRow) -> str:
    """Samples x draws, x runs where there are several."""
    runs = f" x {len(row.runs)}" if len(row.runs) > 1 else ""
    return f"{row.evaluation.n} x {row.evaluation.num_draws}{runs}"


def _notes(
    rows: Sequence[MscrRow], separations: Mapping[str, Mapping[str, Any] | None], precision: Precision
) -> Iterable[str]:
    """What the numbers mean, and where each level comes from."""
    from testbed.results.runs import has_shared_draws

    if not rows:
        return
    yield f"n is samples x draws (x runs). {precision_words(precision).capitalize()}."
    kind = "bounds" if precision.is_one_sided else "intervals"
    if any(row.num_fits > 1 for row in rows):
        yield (
            "Where several runs fit a model each, intervals are over the runs (Student's t; re-splits after Nadeau and "
            "Bengio), and the published interval is 1.96 standard deviations over the root of their number."
        )
    for words in dict.fromkeys(clean_parent_words(row.runs) for row in rows):
        if words:
            yield f"{words}."
    yield from few_runs_lines(row.runs for row in rows)
    yield from clipping_lines(row.runs for row in rows)
    yield (
        f"real?: the {kind} of robust - clean hold together with {100 * precision.confidence:g} % (Bonferroni over "
        f"{len(rows)}); 'loss' and 'gain' exclude 0."
    )
    for setting in dict.fromkeys(row.evaluation.setting for row in rows):
        separation = separations.get(setting)
        source = f"half of {separation_words(separation)}" if separation else "a level of the user's choice"
        yield f"{setting}: epsilon is {source}."
    for setting in dict.fromkeys(row.evaluation.setting for row in rows if has_shared_draws(row.runs)):
        yield f"{setting}: {SHARED_DRAWS}."
    yield from former_words(run.evaluation for row in rows for run in row.runs)
    for row in rows:
        if row.warning:
            yield f"{row.evaluation.model} on {row.evaluation.setting}: {row.warning}."
        reasons = {value.reason for value in row.metrics.values() if value.value is None}
        for reason in sorted(reasons):
            yield f"{row.evaluation.model} on {row.evaluation.setting}: undefined, because {reason}."
