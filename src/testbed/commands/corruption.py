"""The action of `db.py` that tells what common corruptions cost stored and published models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import stdev
from textwrap import fill
from typing import TYPE_CHECKING

from testbed.cli import EXIT_SOME_FAILED, say
from testbed.commands.action import Options, print_json, reading
from testbed.commands.corruption_published import print_published
from testbed.commands.mscr import fill_command
from testbed.commands.precision import precision_of, precision_words
from testbed.errors import DataError, TestbedError, UnknownNameError
from testbed.records import MetricValue
from testbed.report import WIDTH, aligned_table, few_runs_lines, former_words, interval_cell, undefined_words

if TYPE_CHECKING:
    from testbed.metrics.intervals import Side
    from testbed.results import Precision
    from testbed.results.corruption import DatasetGrids, StoredGrid
    from testbed.results.corruption_report import Column, CorruptionReport

MARKS = {"best": " *", "alike": " ~", "": "  "}
MEANS = {  # the rows below the corruptions, by name of the number
    "clean_accuracy": "clean accuracy, A_cl %",
    "corruption_accuracy": "mean accuracy, A_c %",
    "recovery": "recovered, q %",
    "raw_rce": "mean corruption error difference",
    "relative_corruption_accuracy_on_common_correct": "A_rel_c %, right by all",
}
ERRORS = {
    "unnormalised_mean_error_15": "unnormalised mean error %",
    "unnormalised_mean_error_19": "the same over 19 %",
    "mce": "mCE %",
    "relative_mce": "relative mCE %",
}
LABELS = MEANS | ERRORS | {"unnormalised_mean_error_19": "unnormalised mean error over 19"}  # by themselves
SHOWN = 3  # settings in a message


def corruption_report(options: Options) -> int | None:
    """Prints relative corruption accuracy by corruption and model, means, errors, and whether it is well-posed.

    Raises:
        UnknownNameError: nothing of what is asked for is stored, with the command that fills it; or the baseline is no
            model that is known.
        DataError: it is not known of any sample which answer is right.
    """
    from testbed.results.corruption import corruption_grids
    from testbed.results.corruption_baseline import check_baseline
    from testbed.results.corruption_choice import family_of
    from testbed.results.corruption_record import report_record
    from testbed.results.corruption_report import corruption_report as report_of

    if options["with_published"]:
        print_published(options)
        return None
    precision, asked, baseline = precision_of(options), options["models"], options["baseline"]
    with reading(options) as store:
        if baseline:
            check_baseline(store, baseline)
        found = corruption_grids(
            store, precision, models=asked, datasets=options["datasets"], beside=[baseline] if baseline else [],
            family=family_of(is_on_disk=bool(options["on_disk"]), variant=options["variant"]),
        )  # fmt: skip
        made = [
            report_of(one, precision, models=asked, baseline=baseline, with_wellposed=options["well_posed"])
            for one in found
        ]
        reports = [report for report in made if report]
        if not reports:
            raise _nothing_to_report(options, found)
        records = [report_record(report) for report in reports] if options["as_json"] else []
    if options["as_json"]:
        asked_for = {"confidence": precision.confidence, "one_sided": precision.is_one_sided}
        print_json({"results": records, **asked_for, "cluster_by": precision.cluster_by or None})
    else:
        print("\n\n".join(_text(report, precision) for report in reports))
    missing = [line for one in found for line in _missing(one, options)]
    missing += [line for report in reports for line in _no_baseline(report)] if baseline else []
    for line in missing:
        say(line)
    return EXIT_SOME_FAILED if missing else None


def _nothing_to_report(options: Options, found: Sequence[DatasetGrids]) -> TestbedError:
    if unknown := [words for one in found for words in undefined_words(one.undefined)]:
        return DataError(f"{' '.join(unknown)} Accuracies need labels of the samples.")
    return UnknownNameError(" ".join([_nothing(options), *(_left_out(one.left_out) for one in found)]).strip())


def _nothing(options: Options) -> str:
    dataset = (options["datasets"] or ("DATASET",))[0]
    kind, variant = "on-disk" if options["on_disk"] else "in-memory", options["variant"]
    copies = variant.removesuffix("resized").removesuffix("-") if options["on_disk"] else ""  # another set's suffix
    end = variant.removeprefix(copies).removeprefix("-")
    stem = f"{dataset}-{copies or 'c'}"
    setting = f"{stem}.fog.3_{kind}-{end}" if end else f"{stem}.*_{kind}"  # globs find plain ones
    command = fill_command(options, options["models"] or ("MODEL",), setting)
    return f"No model that was asked for has a complete evaluation under {kind} corruptions. Run: {command}"


def _left_out(sets: Mapping[str, int]) -> str:
    """Which settings are of another number of samples; empty where none is."""
    words = [f"{number} of {name} (--dataset {name})" for name, number in sets.items()]
    return f"Left out are settings of other samples: {', '.join(words)}." if words else ""


def _missing(found: DatasetGrids, options: Options) -> Iterator[str]:
    """What has to be evaluated before all rows are there for all models."""
    for model in found.models:
        if model.missing:
            settings = list(model.missing)
            seeds = sorted({seed for seeds in model.missing.values() for seed in seeds})
            more = f" and {len(settings) - SHOWN} more" if len(settings) > SHOWN else ""
            command = fill_command(options, [model.evaluation.model], settings, seeds)
            yield f"Not stored: {model.name} on {', '.join(settings[:SHOWN])}{more}. Run: {command}"


def _no_baseline(report: CorruptionReport) -> Iterator[str]:
    """Why mCE by the baseline that was asked for cannot be had: each reason once."""
    for reason in dict.fromkeys(column.errors["mce"].reason for column in report.columns if not column.ces):
        yield f"No mCE on {report.dataset}: {reason}."


def _text(report: CorruptionReport, precision: Precision) -> str:
    """The table, what it is over, and what is known about the simulator."""
    from testbed.results.corruption_choice import family_words

    notes = [*_notes(report, precision), *_findings(report)]
    title = f"{report.dataset}: relative corruption accuracy A_rel_c %, corruptions {family_words(report.family)}"
    parts = [title, _table(report, precision), "\n".join(fill(note, WIDTH) for note in notes)]
    if any(column.recoveries for column in report.columns):
        parts.append(_recoveries(report))
    return "\n\n".join(parts)


def _table(report: CorruptionReport, precision: Precision) -> str:
    from testbed.metrics.corruption import RELATIVE
    from testbed.results.corruption_report import MEAN

    table = [["corruption", "severity", *(f"{column.stored.name}  " for column in report.columns)]]
    for name, severities in report.rows.items():
        cells = [column.relative[name] for column in report.columns]
        table.append([name, _severities(severities), *_marked(report, name, cells, precision)])
    over = {_severities(report.rows[name]) for name in report.averaged}
    words = over.pop() if len(over) == 1 else "as above"
    means = [column.mean[RELATIVE] for column in report.columns]
    table.append([_mean_words(report), words, *_marked(report, MEAN, means, precision)])
    if any(_spread(column) for column in report.columns):
        table.append(["  sd over runs", "", *(f"{_spread(column)}  " for column in report.columns)])
    for name, label in MEANS.items():
        cells_words = "" if name == "clean_accuracy" else words
        table += _row(label, cells_words, [column.mean.get(name) for column in report.columns], precision, name)
    for name, label in ERRORS.items():
        values = [column.errors.get(name) for column in report.columns]
        if any(value and value.value is not None for value in values):
            table += _row(label, "1-5", values, precision, name)
    return aligned_table(table, num_names=2)


def _recoveries(report: CorruptionReport) -> str:
    """By cell q, and in brackets its null."""
    table = [["recovered, q % (by guessing)", *(column.stored.name for column in report.columns)]]
    for cell in ((name, severity) for name, severities in report.rows.items() for severity in severities):
        row = [f"{cell[0]} {cell[1] or ''}".strip()]
        for value in (column.recoveries.get(cell) for column in report.columns):
            null = None if value is None else value.detail["guessing"]
            row.append("" if value is None else interval_cell(value) + ("" if null is None else f" ({null:.1f})"))
        table.append(row)
    return aligned_table(table, num_names=1)


def _marked(report: CorruptionReport, row: str, values: Sequence[MetricValue], precision: Precision) -> list[str]:
    marks = report.marks.get(row, [""] * len(values))
    return [_cell(value, precision, "lower") + MARKS[mark] for value, mark in zip(values, marks, strict=True)]


def _row(
    label: str, over: str, values: Sequence[MetricValue | None], precision: Precision, name: str
) -> list[list[str]]:
    """A row below the corruptions; none where no model has such a number."""
    from testbed.metrics.corruption import SIDES

    side = SIDES.get(name, "lower" if name in MEANS else "upper")
    cells = ["" if value is None else f"{_cell(value, precision, side)}  " for value in values]
    return [[label, over, *cells]] if any(cells) else []


def _cell(value: MetricValue, precision: Precision, side: Side) -> str:
    return interval_cell(value, precision.side(side))


def _severities(severities: Sequence[int | None]) -> str:
    """The severities in words, such as '1-5'."""
    known = [severity for severity in severities if severity is not None]
    if len(known) > 1 and known == list(range(known[0], known[-1] + 1)):
        return f"{known[0]}-{known[-1]}"
    return ", ".join(map(str, known)) or "-"


def _mean_words(report: CorruptionReport) -> str:
    from testbed.metrics.corruption import COMMON

    number = len(report.averaged)
    return "mean of the 15" if number == len(COMMON) else f"mean of {number}"


def _spread(column: Column) -> str:
    """The standard deviation of the mean over runs that fit a model each."""
    from testbed.metrics.corruption import RELATIVE

    runs = [value for value in column.mean[RELATIVE].detail.get("runs", ()) if value is not None]
    return f"{stdev(runs):.2f}" if len(runs) > 1 else ""


def _notes(report: CorruptionReport, precision: Precision) -> Iterator[str]:
    """What the numbers are over, and why some of them are undefined."""
    from testbed.metrics.corruption import COMMON

    yield (
        "A_rel_c: of the images right when clean, those right under the corruption, over the severities of its row; "
        f"below them, over those of the mean. {precision_words(precision).capitalize()}; so are cells."
    )
    yield (
        "Mean corruption error difference: the error less the clean error, in percentage points. That of every cell "
        "(raw_rce), and CE and relative CE of every corruption, are in --json."
    )
    yield "; ".join(_sample_words(column.stored) for column in report.columns) + "."
    yield from _nonfinite(report)
    yield from few_runs_lines(group for column in report.columns for group in column.stored.groups.values())
    yield from (f"{one.name}: {warning}." for one in (c.stored for c in report.columns) if (warning := one.warning))
    if report.marks:
        yield (
            "*: best; ~: not distinguishable from the best (paired over images: intervals of the difference, Holm over "
            "all rows and pairs)."
        )
    elif len(report.columns) > 1:
        yield f"The models are not compared with each other, because {report.not_compared}."
    if lacking := [name for name in COMMON if name not in report.rows]:
        yield f"Of the 15 common corruptions, {len(lacking)} are missing: {', '.join(lacking)}."
    if (base := report.baseline.errors) is not None:
        yield f"mCE is by {base.name} ({base.source}), whose errors are taken as they are: it belongs to its protocol."
    if report.left_out:
        yield _left_out(report.left_out)
    yield from undefined_words(report.undefined)
    groups = [group for column in report.columns for group in column.stored.groups.values()]
    yield from former_words(run.evaluation for group in groups for run in group)
    yield from _reasons(report)


def _sample_words(stored: StoredGrid) -> str:
    """How many samples, draws and runs a model's column is over."""
    draws = sorted({round(number) for number in stored.grid.num_draws.values()})
    words = f"{draws[0]}" if len(draws) == 1 else f"{draws[0]} to {draws[-1]}"
    seeds = f"seed{'s' if len(stored.seeds) > 1 else ''} {', '.join(map(str, stored.seeds))}"
    fits = f" with each of {len(stored.grid.clean)} fitted models" if len(stored.grid.clean) > 1 else ""
    plural = "" if words == "1" else "s"
    return f"{stored.name}: {stored.grid.clean.shape[1]} samples x {words} draw{plural}{fits}, {seeds}"


def _nonfinite(report: CorruptionReport) -> Iterator[str]:
    for stored in (column.stored for column in report.columns):
        lost, total = stored.nonfinite
        if lost:
            yield f"{stored.name}: {lost} of {total} answers are not finite (NaN or infinite); they count as wrong."


def _reasons(report: CorruptionReport) -> Iterator[str]:
    """Why numbers are undefined: each reason once for the same numbers, with the models that it is about."""
    found: dict[tuple[str, str], list[str]] = {}
    for column in report.columns:
        labels: dict[str, list[str]] = {}
        for name, label in LABELS.items():
            value = column.mean.get(name) or column.errors.get(name)
            if value is not None and value.value is None:
                labels.setdefault(value.reason, []).append(label.removesuffix(" %"))
        for reason, names in labels.items():
            found.setdefault((reason, ", ".join(names)), []).append(column.stored.name)
    for (reason, numbers), models in found.items():
        yield f"Undefined for {', '.join(models)}, because {reason}: {numbers}."


def _findings(report: CorruptionReport) -> Iterator[str]:
    """What speaks against a simulator, each sentence once, with the models that it is true of."""
    said: dict[str, list[str]] = {}
    for column in report.columns:
        if column.findings == []:
            yield f"{column.stored.name}: nothing speaks against the corruptions, in {len(column.recoveries)} cells."
        for found in column.findings or ():
            said.setdefault(found.sentence, []).append(column.stored.name)
    yield from (f"{', '.join(models)}, {sentence}" for sentence, models in said.items())
