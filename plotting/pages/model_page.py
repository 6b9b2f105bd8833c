"""The page of a model: clean, under noise, under corruptions, off the line of standard models, and where it is from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plotting.pages.data import Point, SiteData, point_cell
from plotting.pages.entries import Entry
from plotting.pages.heat import heat_maps
from plotting.pages.names import file_stem
from plotting.pages.origins import Origin
from plotting.pages.overview import rho_cell
from plotting.pages.own import Change
from plotting.pages.tables import MISSING, Cell, Column, Table, count_cell, metric_cell, number_cell, text_cell

from testbed.records import MetricValue
from testbed.report import separation_words
from testbed.results.corruption_report import Column as ReportColumn
from testbed.results.corruption_report import CorruptionReport

_MEANS = {
    "relative_corruption_accuracy": "relative corruption accuracy A_rel_c",
    "corruption_accuracy": "corruption accuracy A_c",
    "recovery": "recovery q",
    "unnormalised_mean_error_15": "unnormalised mean corruption error",
    "mean_corruption_error_difference_15": "mean corruption error difference (points)",
}


@dataclass(frozen=True, kw_only=True)
class ModelPage:
    """What the page of a model shows; tables without rows are left out."""

    entry: Entry
    others: Sequence[Entry]
    facts: Sequence[tuple[str, str]]
    clean: Table
    noise: Table
    levels: Sequence[str]
    warning: str
    notes: Sequence[str]
    robustness: Table
    heat: Sequence[Table]
    means: Sequence[Table]
    points: Table
    origin: Origin | None
    commands: Sequence[str]


def model_page(site: SiteData, entry: Entry) -> ModelPage:
    """The page of a model."""
    points = site.of_entry(entry.name)
    changes = site.own.changes.get(entry.name, {})
    origin = site.own.origins.get(entry.name)
    return ModelPage(
        entry=entry,
        others=[other for other in site.of_model(entry.model) if other.name != entry.name],
        facts=list(_facts(entry, origin)),
        clean=_clean(site, points),
        noise=_noise(site, points, changes),
        levels=list(_levels(site, changes)),
        warning=site.own.warnings.get(entry.name, ""),
        notes=[*site.own.former.get(entry.name, ()), *site.own.undefined.get(entry.name, ())],
        robustness=_robustness(site, entry),
        heat=heat_maps(site, entry),
        means=[_means(report, report.columns[place]) for report, place in site.own.reports.get(entry.name, ())],
        points=_points(site, entry, points),
        origin=origin,
        commands=list(_commands(entry, origin)),
    )


def _facts(entry: Entry, origin: Origin | None) -> Sequence[tuple[str, str]]:
    facts = [
        ("Name", entry.model),
        ("Measured", "here" if entry.is_own else f"by others, published as {entry.source}"),
        ("Protocol", "" if entry.is_own or entry.protocol == entry.source else entry.protocol),
        ("Type", entry.kind),
        ("Family", entry.family),
        ("Classes", entry.label_space),
        ("Input", f"{entry.input_size} px" if entry.input_size else ""),
        ("Baseline", entry.baseline),
    ]
    if origin is not None and origin.model is not None:
        spec = origin.model.spec
        trained = spec.get("training_data") or ()
        facts += [("Architecture", str(spec.get("arch") or "")), ("Trained on", ", ".join(map(str, trained)))]
    return [(name, words) for name, words in facts if words]


def _clean(site: SiteData, points: Mapping[str, Point]) -> Table:
    parents = {setting.clean for setting in site.settings}
    names = [name for name in sorted(points) if name in parents]
    names = names or [name for name in sorted(points) if not (site.setting(name).clean or site.setting(name).parts)][:1]
    rows = [[*_setting_cells(site, points[name])] for name in names]
    return Table(name="Clean accuracy", columns=_POINT_COLUMNS, rows=rows)


_POINT_COLUMNS = (
    Column("setting", "text"),
    Column("accuracy %", has_interval=True),
    Column("n", title="images behind the number"),
)


def _setting_cells(site: SiteData, point: Point) -> list[Cell]:
    setting = site.setting(point.setting)
    return [
        text_cell(setting.name, href=setting.file, title=setting.description),
        point_cell(point),
        count_cell(point.n),
    ]


def _noise(site: SiteData, points: Mapping[str, Point], changes: Mapping[str, Change]) -> Table:
    """Our own under noise and attacks, against their clean parents."""
    columns = [
        Column("setting", "text"), Column("level", title="size of the noise, in pixels from 0 to 1"),
        Column("accuracy %", has_interval=True), Column("MSCR %", has_interval=True),
        Column("loss %", has_interval=True), Column("recovery %", has_interval=True), Column("n"),
        Column("draws", title="draws of the noise for each image, times runs"),
    ]  # fmt: skip
    rows = []
    for change in changes.values():
        setting, point = site.setting(change.setting), points.get(change.setting)
        if setting.is_corruption:
            continue
        draws = f"{change.num_draws}" if change.num_runs == 1 else f"{change.num_draws} x {change.num_runs}"
        rows.append([
            text_cell(setting.name, href=setting.file, title=setting.description),
            number_cell(change.shift.epsilon, digits=4),
            MISSING if point is None else point_cell(point),
            *(metric_cell(change.metrics.get(name)) for name in ("mscr", "loss", "recovery")),
            count_cell(change.n),
            Cell(text=draws, value=change.num_draws * change.num_runs),
        ])  # fmt: skip
    return Table(name="Under noise and attacks, against clean", columns=columns, rows=rows)


def _levels(site: SiteData, changes: Mapping[str, Change]) -> Sequence[str]:
    """Where noise levels come from, and what their numbers do not tell, in sentences."""
    found = []
    for change in changes.values():
        if (separation := site.setting(change.setting).spec.get("separation")) is not None:
            found.append(f"{change.setting}: the level is half of {separation_words(separation)}.")
        found += change.notes
    return list(dict.fromkeys(found))


def _robustness(site: SiteData, entry: Entry) -> Table:
    columns = [
        Column("shift", "text"), Column("accuracy without it %"), Column("accuracy under it %"),
        Column("expected %", title="of a standard model of this accuracy, with the interval that one would keep within",
               has_interval=True),
        Column("ρ", title="effective robustness: accuracy above what is expected, in points", has_interval=True),
        Column("more than chance?", "text"),
        Column("τ", title="relative robustness: accuracy above that of the model's baseline", has_interval=True),
    ]  # fmt: skip
    rows = []
    for pair, row in site.robustness.of(entry.name):
        fit = site.robustness.fits[pair]
        low, high = row["expected_low"], row["expected_high"]
        rows.append([
            text_cell(site.robustness.title(pair), href=site.setting(fit.y).file, title=f"{fit.x} against {fit.y}"),
            number_cell(row["x"]),
            number_cell(row["y"]),
            number_cell(row["beta"], low, high),
            rho_cell(row),
            text_cell(_verdict(row)),
            number_cell(row.get("tau"), row.get("tau_low"), row.get("tau_high"), is_signed=True),
        ])  # fmt: skip
    return Table(name="Effective robustness", columns=columns, rows=rows)


def _verdict(row: Mapping[str, Any]) -> str:
    look = rho_cell(row).look
    words = {"above": "above standard models", "below": "below standard models"}.get(look, "within standard models")
    words = words if row["rho_low"] is not None else "no interval"
    notes = [words, *(["line extrapolated"] if row.get("is_extrapolated") else [])]
    notes += ["used for the line"] if row.get("is_fit") else []
    return ", ".join(notes)


def _means(report: CorruptionReport, column: ReportColumn) -> Table:
    """The means over corruptions, with what they are over."""
    known: dict[str, MetricValue] = {**column.mean, **column.errors}
    rows = [[text_cell(words), metric_cell(known[name]), count_cell(known[name].n)]
            for name, words in _MEANS.items() if name in known]  # fmt: skip
    corruptions = f"mean over {len(report.averaged)} corruptions of {report.dataset}"
    columns = [Column("over all corruptions", "text"), Column("value %", has_interval=True), Column("n")]
    return Table(name=corruptions, columns=columns, rows=rows)


def _points(site: SiteData, entry: Entry, points: Mapping[str, Point]) -> Table:
    columns = [_POINT_COLUMNS[0], Column("kind", "text", filter="kind"), *_POINT_COLUMNS[1:]]
    rows = []
    for setting in site.settings:
        if (point := points.get(setting.name)) is not None:
            first, *others = _setting_cells(site, point)
            rows.append([first, text_cell(setting.group), *others])
    stem = file_stem(entry.name)
    return Table(name="All settings", columns=columns, rows=rows, csv=f"data/model-{stem}.csv")


def _commands(entry: Entry, origin: Origin | None) -> Sequence[str]:
    """The commands that make our own numbers again, one for each set of seeds."""
    if origin is None:
        return []
    by_seeds: dict[tuple[int, ...], list[str]] = {}
    for setting, seeds in origin.settings.items():
        by_seeds.setdefault(tuple(seeds), []).append(setting)
    found = []
    for seeds, settings in by_seeds.items():
        runs = [] if seeds == (0,) else ["--seeds", *map(str, seeds)]
        words = ["python", "eval.py", "--models", entry.model, *runs, "--db", "--eval-settings", *settings]
        found.append(shlex.join(words))
    return found
