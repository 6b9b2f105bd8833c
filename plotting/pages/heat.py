"""Heat maps of corruptions by severity, as tables with coloured cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plotting.pages.data import DOUBTFUL, Point, SiteData, flag_words
from plotting.pages.entries import Entry
from plotting.pages.own import Change
from plotting.pages.settings import Setting
from plotting.pages.tables import MISSING, Cell, Column, Table, heat_cell, text_cell

from testbed.metrics.corruption import NUM_SEVERITIES, in_order
from testbed.results.aggregates import parts_of
from testbed.results.corruption_choice import family_words

Family = tuple[str, str]  # clean setting, and family of shifts


def heat_maps(site: SiteData, entry: Entry) -> Sequence[Table]:
    """For each set of corruptions of a model its accuracy; of our own ones also that relative to clean."""
    points, changes = site.of_entry(entry.name), site.own.changes.get(entry.name, {})
    found = []
    for (clean, family), settings in corruption_families(site).items():
        there = [setting for setting in settings if setting.name in points]
        words = f"corruptions of {clean} {family_words(family)}, %"
        accuracy = {setting.name: _accuracy(points[setting.name]) for setting in there}
        relative = {name: _relative(changes[name]) for name in accuracy if name in changes}
        if accuracy:
            found.append(_heat_map(f"Accuracy under {words}", there, accuracy, _means(there, points)))
        if relative:
            found.append(_heat_map(f"Of the images right when clean, right under {words}", there, relative, {}))
    return found


def corruption_families(site: SiteData) -> Mapping[Family, Sequence[Setting]]:
    """The corruptions that any model was evaluated on, by clean setting and family."""
    found: dict[Family, list[Setting]] = {}
    for setting in site.settings:
        if setting.is_corruption and setting.shift is not None:
            found.setdefault((setting.clean, setting.shift.family), []).append(setting)
    return found


def _heat_map(
    name: str, settings: Sequence[Setting], cells: Mapping[str, Cell], means: Mapping[str, Cell]
) -> Table:  # fmt: skip
    """Args: cells: by name of a setting; means: over the severities, by name of a corruption."""
    by_name: dict[str, dict[int | None, Setting]] = {}
    for setting in settings:
        if setting.shift is not None:
            by_name.setdefault(setting.shift.name, {})[setting.shift.severity] = setting
    rows = []
    for corruption in in_order(by_name):
        there = by_name[corruption]
        by_level = {level or 1: cells.get(setting.name, MISSING) for level, setting in there.items()}
        rows.append([
            text_cell(corruption.replace("_", " "), href=next(iter(there.values())).file),
            *(by_level.get(level, MISSING) for level in range(1, NUM_SEVERITIES + 1)),
            means.get(corruption, MISSING),
        ])  # fmt: skip
    severities = [Column(str(level), title=f"severity {level}") for level in range(1, NUM_SEVERITIES + 1)]
    columns = [Column("corruption", "text"), *severities, Column("mean")]
    return Table(name=name, columns=columns, rows=rows, look="heat")


def _means(settings: Sequence[Setting], points: Mapping[str, Point]) -> dict[str, Cell]:
    """By name of a corruption the point of its mean over the severities."""
    corruptions = {setting.name: setting.shift.name for setting in settings if setting.shift}
    found = {}
    for name, point in points.items():
        parts = [corruptions.get(part, "") for part in parts_of(name)]
        if len(set(parts)) == 1 and parts[0]:
            found[parts[0]] = _accuracy(point)
    return found


def _accuracy(point: Point) -> Cell:
    title = ". ".join(filter(None, [_of_n(point.n), flag_words(point.flag)]))
    return heat_cell(point.value, point.low, point.high, title=title, mark=DOUBTFUL if point.flag else "")


def _relative(change: Change) -> Cell:
    metric = change.relative_accuracy
    return heat_cell(metric.value, metric.ci_low, metric.ci_high, title=_of_n(metric.n))


def _of_n(n: int | None) -> str:
    return "" if n is None else f"n = {int(n):,}"
