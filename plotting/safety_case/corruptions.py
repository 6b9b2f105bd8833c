"""The part of a report about common corruptions: what is kept under each, the worst, and whether that is well-posed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plotting.safety_case.document import Section, Table
from plotting.safety_case.evidence import Evidence
from plotting.safety_case.pictures import corruption_picture
from plotting.safety_case.statements import cell_words, highest_losses, percent

from testbed.metrics.corruption import RELATIVE
from testbed.report import few_runs_lines, interval_cell, undefined_words
from testbed.results import Precision
from testbed.results.corruption import DatasetGrids, corruption_grids
from testbed.results.corruption_choice import family_words
from testbed.results.corruption_report import Column, CorruptionReport, corruption_report

SHOWN = 10  # worst cells
MEANS = {
    "clean_accuracy": "clean accuracy %",
    "corruption_accuracy": "mean accuracy under corruption %",
    RELATIVE: "of the images right when clean still right %",
    "recovery": "of the images wrong when clean now right %",
    "raw_rce": "mean corruption error difference, points",
}
ERRORS = {
    "unnormalised_mean_error_15": "unnormalised mean error over the 15 %",
    "unnormalised_mean_error_19": "unnormalised mean error over 19 %",
}


def stored_corruptions(found: Evidence, confidence: float) -> list[DatasetGrids]:
    """The model under each family of corruptions of the data set that is stored."""
    precision = Precision(confidence=confidence)
    asked = {"models": [found.model], "datasets": [found.dataset]}
    each = [corruption_grids(found.store, precision, family=family, **asked) for family in found.families]
    return [grids for several in each for grids in several]


def corruption_sections(found: Evidence, grids: Sequence[DatasetGrids], confidence: float) -> list[Section]:
    """A section for each family, with the numbers that `db.py --corruption-report --well-posed` prints."""
    if not grids:
        return [Section(title="Common corruptions", text=["No evaluation under common corruptions is stored."])]
    sections = []
    for one in grids:
        report = corruption_report(one, Precision(confidence=confidence), models=[found.model], with_wellposed=True)
        if report is not None:
            sections.append(_section(one, report, confidence))
        elif one.undefined:
            title = f"Common corruptions, {family_words(one.family)}"
            sections.append(Section(title=title, text=undefined_words(one.undefined)))
    return sections


def _section(one: DatasetGrids, report: CorruptionReport, confidence: float) -> Section:
    columns = report.columns
    return Section(
        title=f"Common corruptions, {family_words(one.family)}",
        tables=[_means(columns), _kept(report), *(_worst(column, confidence) for column in columns)],
        pictures=[corruption_picture(one)],
        points=list(_findings(columns)),
        notes=list(_notes(report, confidence)),
    )


def _means(columns: Sequence[Column]) -> Table:
    rows = []
    for name, label in (MEANS | ERRORS).items():
        values = [column.mean.get(name) or column.errors.get(name) for column in columns]
        if any(value is not None and value.value is not None for value in values):
            rows.append((label, *("" if value is None else interval_cell(value) for value in values)))
    return Table(header=("over all corruptions", *(column.stored.name for column in columns)), rows=rows)


def _kept(report: CorruptionReport) -> Table:
    header = ("corruption", "severities", *(f"{column.stored.name}, still right %" for column in report.columns))
    rows = [
        (name, _severities(severities), *(interval_cell(column.relative[name]) for column in report.columns))
        for name, severities in report.rows.items()
    ]
    caption = "Of the images right when clean those still right, over all severities of a corruption"
    return Table(header=header, rows=rows, num_names=2, caption=caption)


def _worst(column: Column, confidence: float) -> Table:
    losses = highest_losses(column.stored, confidence)
    known = {cell: answer for cell, answer in losses.items() if answer.value is not None}
    worst = sorted(known, key=lambda cell: -(known[cell].value or 0.0))[:SHOWN]
    rows = [
        (cell_words(cell), column.stored.groups[cell][0].evaluation.setting, f"{known[cell].n:,}",
         percent(known[cell].value), "undecided" if column.stored.warning else percent(known[cell].high))
        for cell in worst
    ]  # fmt: skip
    caption = f"Where {column.stored.name} loses most: {len(rows)} of {len(losses)}, worst first"
    return Table(header=("corruption", "setting", "n", "lost %", "lost at most, %"), rows=rows, num_names=2,
                 caption=caption)  # fmt: skip


def _findings(columns: Sequence[Column]) -> Iterator[str]:
    for column in columns:
        for finding in column.findings or ():
            yield f"{column.stored.name}, {finding.sentence}"
        if not column.findings:
            yield f"{column.stored.name}: nothing speaks against the simulation of these corruptions."


def _notes(report: CorruptionReport, confidence: float) -> Iterator[str]:
    yield (
        f"Intervals are two-sided, {100 * confidence:g} %, as db.py --corruption-report prints; 'lost at most' is "
        "one-sided and holds for all severities of all corruptions together (Bonferroni). The list says where a "
        "well-posed simulator would answer otherwise."
    )
    for name, number in report.left_out.items():
        yield f"{number} settings of {name} are of other samples and left out."
    yield from undefined_words(report.undefined)
    yield from few_runs_lines(group for column in report.columns for group in column.stored.groups.values())
    for column in report.columns:
        if column.stored.warning:
            yield f"{column.stored.name}: {column.stored.warning}."
        lost, total = column.stored.nonfinite
        if lost:
            yield f"{column.stored.name}: {lost} of {total} answers are not finite; they count as wrong."


def _severities(severities: Sequence[int | None]) -> str:
    known = [severity for severity in severities if severity is not None]
    return f"{known[0]}-{known[-1]}" if len(known) > 1 else ", ".join(map(str, known)) or "-"
