"""The part of a report about clean images, noise and attacks: every setting, and the classes that are hit hardest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plotting.safety_case.document import Picture, Section, Table
from plotting.safety_case.evidence import Evidence, shift_of
from plotting.safety_case.pictures import noise_pictures
from plotting.safety_case.statements import bounds_of, percent

from testbed.records import MetricValue
from testbed.report import (
    clean_parent_words,
    clipping_lines,
    few_runs_lines,
    interval_cell,
    noise_words,
    separation_words,
)
from testbed.results import Precision
from testbed.results.mscr import MscrRow, mscr_rows
from testbed.results.runs import accuracies_over_runs
from testbed.results.stored import Group
from testbed.store.evaluation import Evaluation

SHOWN = 12  # classes of a table


def clean_section(found: Evidence, confidence: float) -> Section:
    """The accuracies on images that nothing was done to."""
    rows = [_clean_row(group, confidence) for group in found.plain]
    header = ("setting", "n", "at least, top-1 %", "top-1 %", "balanced %", "worst class %")
    note = f"Bounds 'at least' are one-sided, {100 * confidence:g} %; intervals are two-sided, 95 %, as eval.py prints."
    return Section(title="Clean images", tables=[Table(header=header, rows=rows)] if rows else [], notes=[note])


def noise_section(found: Evidence, confidence: float) -> Section:
    """The numbers that `db.py --mscr` prints, of every setting with a clean parent that is no corruption."""
    if not found.shifted:
        text = "No evaluation under noise or attacks is stored with its clean one."
        return Section(title="Noise and attacks", text=[text])
    rows = mscr_rows(found.shifted, Precision(confidence=confidence))
    pictures: list[Picture] = noise_pictures(found)
    return Section(
        title="Noise and attacks",
        tables=[_numbers(rows), _changes(rows, confidence), *_classes(rows)],
        pictures=pictures,
        notes=list(_notes(rows, found.separations, confidence)),
    )


def _clean_row(group: Group, confidence: float) -> tuple[str, ...]:
    evaluation, answer = group[0].evaluation, bounds_of("top1", group, confidence)
    known = accuracies_over_runs([run.evaluation for run in group])
    cells = [interval_cell(known[name]) for name in ("top1", "balanced_accuracy")]
    low = "undefined" if answer.value is None else percent(answer.low)
    return (evaluation.setting, _size(group), low, *cells, _worst(known["worst_class_accuracy"]))


def _numbers(rows: Sequence[MscrRow]) -> Table:
    names = ("clean_accuracy", "robust_accuracy", "mscr", "loss", "recovery")
    header = ("setting", "n", "clean %", "shifted %", "MSCR %", "loss %", "recovery %")
    cells = [
        (row.evaluation.setting, _size(row.runs), *(interval_cell(row.metrics[name]) for name in names)) for row in rows
    ]
    return Table(header=header, rows=cells, caption="Accuracy, net change (MSCR), loss and recovery")


def _changes(rows: Sequence[MscrRow], confidence: float) -> Table:
    header = ("setting", "shift", "lost at most, %", "shifted - clean, points", "real?", "worst class, %")
    cells = []
    for row in rows:
        lost, shift = bounds_of("loss", row.runs, confidence), row.evaluation.shift
        words = noise_words(shift) if shift and shift.epsilon is not None else shift.name if shift else ""
        most = "undefined" if lost.value is None else "undecided" if row.warning else percent(lost.high)
        change, worst = interval_cell(row.accuracy_change), _worst(row.metrics["worst_class_accuracy"])
        cells.append((row.evaluation.setting, words, most, change, row.verdict, worst))
    return Table(header=header, rows=cells, num_names=2, caption="Bounds, and whether the change is more than chance")


def _classes(rows: Sequence[MscrRow]) -> Iterator[Table]:
    """The classes with the lowest accuracy on the setting that costs most, with their clean accuracy."""
    known = [row for row in rows if row.metrics["worst_class_accuracy"].value is not None]
    if not known:
        return
    row = max(known, key=lambda one: one.metrics["loss"].value or 0.0)
    shifted = _by_class([run.evaluation for run in row.runs])
    clean = _by_class([run.clean for run in row.runs if run.clean])
    lowest = sorted(shifted, key=lambda name: shifted[name].value or 0.0)[:SHOWN]
    cells = [
        (name, str(shifted[name].n), interval_cell(clean[name]) if name in clean else "", interval_cell(shifted[name]))
        for name in lowest
    ]
    more = f", the {SHOWN} lowest of {len(shifted)}" if len(shifted) > SHOWN else ""
    caption = f"Accuracy by class on {row.evaluation.setting}{more} (95 % intervals)"
    yield Table(header=("class", "n", "clean %", "shifted %"), rows=cells, caption=caption)


def _by_class(evaluations: Sequence[Evaluation]) -> dict[str, MetricValue]:
    """The accuracy of each class that has images, by its name."""
    classes = accuracies_over_runs(evaluations)["worst_class_accuracy"].detail.get("classes", ())
    return {
        str(one["class"]): MetricValue(
            name="accuracy", value=one["value"], n=one["n"], ci_low=one.get("ci_low"), ci_high=one.get("ci_high")
        )
        for one in classes
        if one["value"] is not None
    }


def _worst(value: MetricValue) -> str:
    return "" if value.value is None else f"'{value.detail['class']}' {interval_cell(value)} (n = {value.n})"


def _size(group: Group) -> str:
    """Samples, x draws, x runs."""
    evaluation = group[0].evaluation
    draws = f" x {evaluation.num_draws}" if evaluation.num_draws > 1 else ""
    return f"{evaluation.n:,}{draws}{f' x {len(group)}' if len(group) > 1 else ''}"


def _notes(rows: Sequence[MscrRow], separations: Mapping[str, Mapping[str, Any]], confidence: float) -> Iterator[str]:
    yield (
        "n is samples x draws of the noise x runs. Loss is the share of the images right when clean that are wrong "
        "under the shift, recovery that of the images wrong when clean that are right under it; MSCR nets the two. "
        f"Intervals are two-sided, {100 * confidence:g} %, as db.py --mscr prints; 'lost at most' is one-sided."
    )
    yield (
        f"real?: the intervals of the change hold together with {100 * confidence:g} % (Bonferroni over {len(rows)}); "
        "'loss' and 'gain' exclude 0."
    )
    yield from (f"{words}." for words in dict.fromkeys(clean_parent_words(row.runs) for row in rows) if words)
    yield from few_runs_lines(row.runs for row in rows)
    yield from clipping_lines(row.runs for row in rows)
    for row in rows:
        setting, shift = row.evaluation.setting, shift_of(row.runs)
        if separation := separations.get(setting):
            level = f"{shift.epsilon:.6g}" if shift and shift.epsilon is not None else "the level"
            yield f"{setting}: {level} is half of {separation_words(separation)}."
        if row.warning:
            yield f"{setting}: {row.warning}."
        reasons = {value.reason for value in row.metrics.values() if value.value is None}
        yield from (f"{setting}: undefined, because {reason}." for reason in sorted(reasons))
