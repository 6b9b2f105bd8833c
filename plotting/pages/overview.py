"""The overview: for every data set a table of its models, clean and under everything that was tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plotting.pages.data import SiteData
from plotting.pages.entries import Entry
from plotting.pages.names import file_stem
from plotting.pages.own import Change
from plotting.pages.settings import CLEAN, Setting
from plotting.pages.tables import MISSING, Cell, Column, Table, count_cell, metric_cell, number_cell, text_cell

from testbed.metrics.corruption import RELATIVE, accuracies
from testbed.records import NORMS
from testbed.report import NORM_SYMBOLS
from testbed.results.corruption_report import Column as ReportColumn
from testbed.results.levels import SEPARATION_BASED

EXTRAPOLATED = "†"  # behind a number that is read from a line beyond the models it was fitted on
MEAN_ERROR = "unnormalised_mean_error_15"
_MEANS = {"in-memory": "avg_imagenet_c_in_memory", "on-disk": "avg_imagenet_c_on_disk"}


@dataclass(frozen=True, kw_only=True)
class Section:
    """A data set.

    Args:
        name: of its clean setting.
        anchor: within the page.
        words: what the table shows.
        table: of its models.
    """

    name: str
    anchor: str
    words: str
    table: Table


def sections(site: SiteData) -> list[Section]:
    """A section for each clean setting that others are compared with, the one with our own models first."""
    found = []
    for setting, entries in _by_clean(site).items():
        own = [entry for entry in entries if entry.is_own]
        found.append((not own, -len(entries), setting, _section(site, site.setting(setting), entries)))
    return [section for *_, section in sorted(found, key=lambda one: one[:3])]


def _by_clean(site: SiteData) -> dict[str, list[Entry]]:
    """By clean setting the models that were evaluated on it; each model is in one at least."""
    parents = {setting.clean for setting in site.settings} & {setting.name for setting in site.settings}
    alone = [setting.name for setting in site.settings if setting.shift is None and not setting.parts]
    found: dict[str, list[Entry]] = {}
    for entry in site.entries:
        points = site.of_entry(entry.name)
        there = sorted(parents & points.keys()) or [name for name in alone if name in points][:1]
        for name in there or sorted(points)[:1]:
            found.setdefault(name, []).append(entry)
    return found


def _section(site: SiteData, clean: Setting, entries: Sequence[Entry]) -> Section:
    groups = [group for group in _groups(site, clean, entries) if any(group.cells(entry) for entry in entries)]
    columns = [
        Column("model", "text"),
        Column("type", "text", "what the model was trained on or for", "type"),
        Column("source", "text", "measured here, or published by others", "source"),
        Column("clean %", title=f"accuracy on {clean.name}", has_interval=True),
        Column("n", title="images behind the clean accuracy"),
        *(column for group in groups for column in group.columns),
    ]
    points = {point.entry: point for point in site.of_setting(clean.name)}
    ordered = sorted(entries, key=lambda entry: (not entry.is_own, -points[entry.name].value, entry.name))
    rows = []
    for entry in ordered:
        point = points[entry.name]
        cells = [cell for group in groups for cell in group.cells(entry) or [MISSING] * len(group.columns)]
        rows.append([
            text_cell(entry.name, href=entry.file),
            text_cell(entry.kind),
            text_cell(entry.where_from),
            number_cell(point.value, point.low, point.high),
            count_cell(point.n),
            *cells,
        ])  # fmt: skip
    stem = file_stem(clean.name)
    table = Table(name=f"Models on {clean.name}", columns=columns, rows=rows, csv=f"data/overview-{stem}.csv")
    return Section(name=clean.name, anchor=stem, words=clean.description, table=table)


@dataclass(frozen=True)
class _Group:
    """Columns that belong together, and their cells by label of the model."""

    columns: Sequence[Column]
    known: Mapping[str, Sequence[Cell]]

    def cells(self, entry: Entry) -> Sequence[Cell]:
        return self.known.get(entry.name, ())


def _groups(site: SiteData, clean: Setting, entries: Sequence[Entry]) -> Iterator[_Group]:
    yield from _noise(site, clean, entries)
    yield _corruptions(site, clean, entries)
    yield from _published_corruptions(site, clean, entries)
    yield from _robustness(site, clean, entries)


def _noise(site: SiteData, clean: Setting, entries: Sequence[Entry]) -> Iterator[_Group]:
    """MSCR, loss and recovery at half the minimal class separation, for each setting of that kind."""
    for norm, setting in _at_separation(site, clean):
        changes = {entry.name: _change(site, entry, setting) for entry in entries}
        columns = [
            Column(f"MSCR {norm} %", title=f"relative change of accuracy on {setting.name}", has_interval=True),
            Column(f"loss {norm} %", title="of the images right when clean, those wrong under it", has_interval=True),
            Column(f"recovery {norm} %", title="of the images wrong when clean, those right under it",
                   has_interval=True),
        ]  # fmt: skip
        known = {
            name: [metric_cell(change.metrics.get(metric)) for metric in ("mscr", "loss", "recovery")]
            for name, change in changes.items() if change is not None
        }  # fmt: skip
        yield _Group(columns, known)


def _at_separation(site: SiteData, clean: Setting) -> list[tuple[str, Setting]]:
    """The settings at half the minimal class separation, each after its norm, in the order of the norms."""
    found = [
        (NORMS.index(setting.shift.norm), setting.name, setting)
        for setting in site.settings
        if setting.clean == clean.name and setting.shift and setting.shift.norm in NORMS
        and (setting.shift.name in SEPARATION_BASED or setting.spec.get("separation"))
    ]  # fmt: skip
    return [(NORM_SYMBOLS[NORMS[place]], setting) for place, _, setting in sorted(found, key=lambda one: one[:2])]


def _change(site: SiteData, entry: Entry, setting: Setting) -> Change | None:
    return site.own.changes.get(entry.name, {}).get(setting.name)


def _corruptions(site: SiteData, clean: Setting, entries: Sequence[Entry]) -> _Group:
    """Our own models under corruptions: the means, and the corruption that costs most."""
    columns = [
        Column("A_rel_c %", title="of the images right when clean, those right under corruptions", has_interval=True),
        Column("mean corruption error %", title="mean over the 15 corruptions and 5 severities", has_interval=True),
        Column("worst corruption", "text", "the corruption at a severity with the lowest accuracy"),
        Column("accuracy there %", title="accuracy under the worst corruption", has_interval=True),
    ]
    known = {}
    for entry in entries:
        if (column := site.own.column(entry.name, clean.name)) is not None:
            worst = worst_cell(column)
            known[entry.name] = [
                metric_cell(column.mean[RELATIVE]),
                metric_cell(column.errors[MEAN_ERROR]),
                text_cell(f"{worst[0]} {worst[1] or ''}".strip()),
                metric_cell(accuracies(column.stored.grid.outcomes([worst]))["corruption_accuracy"]),
            ]
    return _Group(columns, known)


def worst_cell(column: ReportColumn) -> tuple[str, int | None]:
    """The corruption and severity under which a model is least accurate."""
    grid = column.stored.grid
    return max(grid.cells, key=lambda cell: (grid.error(cell), cell[0], cell[1] or 0))


def _published_corruptions(site: SiteData, clean: Setting, entries: Sequence[Entry]) -> Iterator[_Group]:
    """Mean accuracy over ImageNet-C, where it is known of models that others published."""
    if clean.name != "val":
        return
    for kind, name in _MEANS.items():
        points = {point.entry: point for point in site.of_setting(name)}
        known = {
            entry.name: [number_cell(point.value, point.low, point.high)]
            for entry in entries if (point := points.get(entry.name)) is not None
        }  # fmt: skip
        title = "mean accuracy over all corruptions and severities of ImageNet-C"
        yield _Group([Column(f"ImageNet-C {kind} %", title=title, has_interval=True)], known)


def _robustness(site: SiteData, clean: Setting, entries: Sequence[Entry]) -> Iterator[_Group]:
    if clean.group != CLEAN:
        return
    for pair in site.robustness.shown:
        known = {}
        for entry in entries:
            if (row := site.robustness.row(entry.name, pair)) is not None:
                known[entry.name] = [rho_cell(row)]
        title = f"effective robustness on {site.robustness.title(pair)}, percentage points; † line continued"
        yield _Group([Column(f"ρ {pair}", title=title, has_interval=True)], known)


def rho_cell(row: Mapping[str, Any]) -> Cell:
    """Effective robustness, and whether it is more or less than standard models reach."""
    low, high = row["rho_low"], row["rho_high"]
    look = "" if low is None or high is None else "above" if low > 0 else "below" if high < 0 else ""
    mark = EXTRAPOLATED if row.get("is_extrapolated") else ""
    return number_cell(row["rho"], low, high, is_signed=True, look=look, mark=mark)
