"""Everything that a site shows, read from the store once: models, settings, and the points where they meet."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from plotting.pages.entries import Entry, entries_of
from plotting.pages.own import Own, own_results, undefined_in
from plotting.pages.robustness import Robustness, robustness
from plotting.pages.settings import Setting, described
from plotting.pages.tables import Cell, number_cell

from testbed.cli import Tell, tell_nothing
from testbed.errors import UnknownNameError
from testbed.report import undefined_words
from testbed.results.aggregates import AGGREGATES, parts_of
from testbed.results.points import model_points
from testbed.results.stored import is_named
from testbed.store.published import list_sources
from testbed.store.reader import Reader

if TYPE_CHECKING:
    import pandas as pd

    from testbed.results.effective import Effective

DOUBTFUL = "‡"  # behind a published number of which something is known to be wrong
_ONE_SEVERITY = re.compile(r"(?P<set>.+)\.(?P<name>[a-z0-9_]+)\.[1-5](?P<ending>_(?:in-memory|on-disk)\S*)")


class Point(NamedTuple):
    """The accuracy of a model on a setting, in percent, with its 95 % interval and the images behind it."""

    entry: str
    setting: str
    value: float
    low: float
    high: float
    n: int | None
    flag: str


@dataclass(frozen=True, kw_only=True)
class SiteData:
    """What a site shows.

    Args:
        points: of `testbed.results.points.model_points`, over all settings and the means of several.
        entries: the models, by the labels that the points have.
        settings: the settings and means that have a point, by name.
        own: what is known of our own evaluations beside their accuracies.
        robustness: effective robustness over the pairs of settings that enough models have.
        sources: published ones that are shown beside our own results, with the SHA-256 of their files.
    """

    points: pd.DataFrame
    entries: Sequence[Entry]
    settings: Sequence[Setting]
    own: Own
    robustness: Robustness
    sources: Mapping[str, Sequence[str]]

    def entry(self, name: str) -> Entry:
        """The model of a label."""
        return self._entries[name]

    def setting(self, name: str) -> Setting:
        """The setting of a name. Raises: KeyError: it has no point."""
        return self._settings[name]

    def has_setting(self, name: str) -> bool:
        """Whether any model has a point on a setting."""
        return name in self._settings

    def of_model(self, name: str) -> Sequence[Entry]:
        """The entries of a model of this name, from whatever source."""
        return self._by_model.get(name, [])

    def of_entry(self, name: str) -> Mapping[str, Point]:
        """The points of a model, by setting."""
        return self._by_entry.get(name, {})

    def of_setting(self, name: str) -> Sequence[Point]:
        """The points on a setting, the most accurate model first."""
        return self._by_setting.get(name, [])

    @property
    def effective(self) -> Mapping[str, Effective]:
        """The fitted lines, by name of the pair."""
        return self.robustness.fits

    @cached_property
    def _entries(self) -> dict[str, Entry]:
        return {entry.name: entry for entry in self.entries}

    @cached_property
    def _by_model(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = defaultdict(list)
        for entry in self.entries:
            found[entry.model].append(entry)
        return found

    @cached_property
    def _settings(self) -> dict[str, Setting]:
        return {setting.name: setting for setting in self.settings}

    @cached_property
    def _all(self) -> list[Point]:
        columns = ("entry", "eval_setting", "value", "ci_low", "ci_high", "n", "flag")
        found = (self.points[name].astype(object).where(self.points[name].notna(), None) for name in columns)
        rows = zip(*(column.tolist() for column in found), strict=True)
        return [Point(*row)._replace(flag=row[6] or "") for row in rows if row[2] is not None]

    @cached_property
    def _by_entry(self) -> dict[str, dict[str, Point]]:
        found: dict[str, dict[str, Point]] = defaultdict(dict)
        for point in self._all:
            found[point.entry][point.setting] = point
        return found

    @cached_property
    def _by_setting(self) -> dict[str, list[Point]]:
        found: dict[str, list[Point]] = defaultdict(list)
        for point in sorted(self._all, key=lambda one: (-one.value, one.entry)):
            found[point.setting].append(point)
        return found


def read_site(
    store: Reader, *, sources: Sequence[str] = (), models: Sequence[str] = (), settings: Sequence[str] = (),
    tell: Tell = tell_nothing,
) -> SiteData:  # fmt: skip
    """What the store holds of the models and settings that are asked for.

    Args:
        sources: published ones beside our own results.
        models, settings: names and globs; all without any.
        tell: is told what takes a while.
    Raises: UnknownNameError: nothing is stored of what is asked for.
    """
    table = store.results(published=sources)
    table = table[table["status"].isin(["complete", "published"]) & ~table["is_stale"].fillna(False)]
    known = sorted(set(table["eval_setting"]))
    wanted = [name for name in known if is_named(name, settings)]
    if not wanted:
        raise UnknownNameError(_nothing(store, known, settings, sources))
    table = table[table["eval_setting"].isin(wanted)]
    points = model_points(store, [*wanted, *_means(wanted)], sources=sources, models=models)
    points = points[points["value"].notna()]
    if points.empty:
        raise UnknownNameError(
            f"No model that is asked for ({' '.join(models) or 'all'}) has a result on them. "
            f"{' '.join(undefined_words(undefined_in(table)))}".rstrip()
        )
    names = list(dict.fromkeys(points["eval_setting"]))
    entries = entries_of(points)
    tell(f"Fitting the lines through {len(entries):,} models.")
    own = own_results(store, table[table["source"].isna()], entries, settings=set(names))
    return SiteData(
        points=points,
        entries=entries,
        settings=described(store, sorted(names), points),
        own=own,
        robustness=robustness(points),
        sources=_files(table, sources),
    )


def _files(table: pd.DataFrame, sources: Sequence[str]) -> dict[str, list[str]]:
    """By source the SHA-256 of the files that its numbers are from."""
    found = table.groupby("source")["source_sha256"].unique()
    return {source: sorted(found[source]) for source in dict.fromkeys(sources) if source in found}


def _means(settings: Collection[str]) -> Iterable[str]:
    """The means over several settings that can be had of those that are there."""
    there = set(settings)
    matches = [found for found in map(_ONE_SEVERITY.fullmatch, sorted(there)) if found]
    names = dict.fromkeys(f"{found['set']}.{found['name']}{found['ending']}" for found in matches)
    names |= dict.fromkeys(f"{found['set']}{found['ending']}" for found in matches)
    for name in (*AGGREGATES, *names):
        parts = _leaves(name)
        if name not in there and parts and parts <= there:
            yield name


def _leaves(name: str) -> set[str]:
    parts = parts_of(name)
    return set().union(*(_leaves(part) or {part} for part in parts)) if parts else set()


def _nothing(store: Reader, known: Sequence[str], settings: Sequence[str], sources: Sequence[str]) -> str:
    if known:
        return f"No setting matches {' '.join(settings)}. Stored: {', '.join(known[:20])}{', ...' * (len(known) > 20)}."
    with store.reading() as connection:
        others = [name for name in list_sources(connection) if name not in sources]
    beside = f" Published results are shown with --with-published {' '.join(others)}." if others else ""
    return (
        f"{store.url} holds no complete evaluation.{beside} Evaluate something: "
        f"python eval.py --models digits-resnet --eval-settings digits --db-url {store.url}"
    )


def point_cell(point: Point) -> Cell:
    """The accuracy of a model on a setting, as a cell; one that is doubtful is marked."""
    mark = DOUBTFUL if point.flag else ""
    return number_cell(point.value, point.low, point.high, title=flag_words(point.flag), mark=mark)


def flag_words(flag: str) -> str:
    """What is known to be wrong with a published number, in words; empty for nothing."""
    return flag and f"as it was published, but doubtful: {flag}"
