"""The page of a setting: what it is, where its data come from, and how all models do on it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from plotting.pages.data import SiteData, point_cell
from plotting.pages.names import file_stem
from plotting.pages.own import Change
from plotting.pages.settings import MEAN, Setting
from plotting.pages.tables import MISSING, Cell, Column, Table, count_cell, metric_cell, text_cell

from testbed.metrics.comparison import NETTED
from testbed.metrics.effective import Line
from testbed.report import NORM_SYMBOLS, separation_words
from testbed.results.fit_sets import FIT_SETS


class FittedLine(NamedTuple):
    """A line of accuracy on a setting against that on another one.

    Args:
        title: of the shift.
        x: the other setting.
        fit_set: the models that it was fitted on, in words.
        words: the line, or two lines below and above a point.
        notes: what is to be known of it.
    """

    title: str
    x: Setting
    fit_set: str
    words: Sequence[str]
    notes: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class SettingPage:
    """What the page of a setting shows."""

    setting: Setting
    facts: Sequence[tuple[str, str]]
    data: Sequence[tuple[str, str]]
    address: str
    definition: str
    level: str
    notes: Sequence[str]
    parts: Sequence[Setting]
    means: Sequence[Setting]
    clean: Setting | None
    ranking: Table
    lines: Sequence[FittedLine]


def setting_page(site: SiteData, setting: Setting) -> SettingPage:
    """The page of a setting."""
    separation = setting.spec.get("separation")
    clean = site.setting(setting.clean) if site.has_setting(setting.clean) else None
    return SettingPage(
        setting=setting,
        facts=_facts(setting),
        data=_data(setting),
        address=str(setting.card.get("address") or ""),
        definition=_definition(setting),
        level="" if separation is None else f"The level is half of {separation_words(separation)}.",
        notes=list(dict.fromkeys(note for change in _changes(site, setting).values() for note in change.notes)),
        parts=[site.setting(name) for name in setting.parts if site.has_setting(name)],
        means=[other for other in site.settings if setting.name in other.parts],
        clean=clean,
        ranking=_ranking(site, setting),
        lines=list(_lines(site, setting)),
    )


def _lines(site: SiteData, setting: Setting) -> Iterator[FittedLine]:
    """The lines that tell what is expected of a model on this setting."""
    for name, fit in site.robustness.fits.items():
        if fit.y == setting.name:
            words = [_line_words(fit.scale, line) for line in fit.lines]
            members = FIT_SETS[fit.fit_set].words if fit.fit_set in FIT_SETS else fit.fit_set
            yield FittedLine(site.robustness.title(name), site.setting(fit.x), members, words, fit.notes)


def _line_words(scale: str, line: Line) -> str:
    """A line in words, with true minus signs."""
    formula = f"{scale}(y) = {line.intercept:.3f} + {line.slope:.3f} {scale}(x)".replace("+ -", "− ").replace("-", "−")
    models = f"{line.n} models from {line.x_low:.1f} to {line.x_high:.1f} %"
    return f"{formula}, through {models}, r = {line.r:.3f}".replace("r = -", "r = −")


def _facts(setting: Setting) -> list[tuple[str, str]]:
    card, shift = setting.card, setting.shift
    facts = [
        ("Kind", setting.group),
        ("Data set", f"{card.get('dataset', '')} {f'({split})' if (split := card.get('split')) else ''}".strip()),
        ("Images", f"{setting.n:,}" if setting.n else ""),
        ("Classes", f"{classes:,}" if (classes := card.get("num_classes")) else ""),
        ("Severity", str(shift.severity) if shift and shift.severity else ""),
        ("Norm", NORM_SYMBOLS.get(shift.norm, shift.norm) if shift and shift.norm else ""),
        ("Level", f"{shift.epsilon:.6g}" if shift and shift.epsilon is not None else ""),
        ("Compared with", setting.clean),
        ("Defined in", str(card.get("defined_in") or "")),
        ("Metrics", ", ".join(card.get("metrics", ()))),
    ]
    return [(name, words) for name, words in facts if words]


def _data(setting: Setting) -> list[tuple[str, str]]:
    card = setting.card
    facts = [
        ("What", card.get("title")),
        ("Licence", card.get("licence")),
        ("To get it", card.get("get")),
        ("Put it into", " or ".join(f"DATA/{place}" if place != "." else "DATA" for place in card.get("places", ()))),
        ("Layout", card.get("layout")),
        ("Paper", card.get("citation")),
    ]
    return [(name, str(words)) for name, words in facts if words]


def _definition(setting: Setting) -> str:
    """What is done to the images, as the registry and the store keep it."""
    known: Mapping[str, Any] = setting.card.get("definition") or setting.spec
    shown = {key: value for key, value in known.items() if value is not None}
    return json.dumps(shown, indent=2, sort_keys=True, ensure_ascii=False, default=str) if shown else ""


def _changes(site: SiteData, setting: Setting) -> dict[str, Change]:
    """Of each of our own models that was evaluated on the setting."""
    return {entry: known[setting.name] for entry, known in site.own.changes.items() if setting.name in known}


def _ranking(site: SiteData, setting: Setting) -> Table:
    changes = _changes(site, setting)
    columns = [
        Column("model", "text"), Column("type", "text", filter="type"), Column("source", "text", filter="source"),
        Column("accuracy %", has_interval=True), Column("n", title="images behind the number"),
        *([Column(f"{words} %", has_interval=True) for words in ("MSCR", "loss", "recovery")] if changes else []),
    ]  # fmt: skip
    rows = []
    for point in site.of_setting(setting.name):
        entry = site.entry(point.entry)
        cells: list[Cell] = [
            text_cell(entry.name, href=entry.file),
            text_cell(entry.kind),
            text_cell(entry.where_from),
            point_cell(point),
            count_cell(point.n),
        ]
        if changes:
            change = changes.get(entry.name)
            cells += [MISSING if change is None else metric_cell(change.metrics.get(name)) for name in NETTED]
        rows.append(cells)
    return Table(name=f"{len(rows)} models on {setting.name}", columns=columns, rows=rows,
                 csv=f"data/setting-{file_stem(setting.name)}.csv")  # fmt: skip


def settings_table(site: SiteData) -> Table:
    """All settings, for their list."""
    columns = [
        Column("setting", "text"), Column("kind", "text", filter="kind"), Column("what it is", "text"),
        Column("images"), Column("models", title="that have a result on it"),
    ]  # fmt: skip
    rows = [
        [
            text_cell(setting.name, href=setting.file), text_cell(setting.group), text_cell(setting.description),
            count_cell(setting.n) if setting.group != MEAN else MISSING, count_cell(setting.num_models),
        ]
        for setting in site.settings
    ]  # fmt: skip
    return Table(name=f"{len(rows)} settings", columns=columns, rows=rows, csv="data/settings.csv")
