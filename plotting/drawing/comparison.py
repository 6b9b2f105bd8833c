"""What figures of models on settings get: everybody's numbers, the models to show, and how a line is fitted to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from plotting.drawing.counts import counted
from plotting.drawing.style import plain

from testbed.errors import TestbedError, UnknownNameError, suggestion
from testbed.results.aggregates import AGGREGATES, TENTH, settings_of
from testbed.results.effective import Effective, effective_robustness
from testbed.results.points import model_points, side_by_side
from testbed.results.stored import complete_evaluations, is_named
from testbed.store.published import list_published_settings, list_sources
from testbed.store.reader import Reader
from testbed.store.transfer import slug

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from testbed.shift_pairs import ShiftPair

SHOWN = 12  # names in a message


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The models of a store and of published sources, compared on settings that the figure names.

    Args:
        store: that holds the results.
        sources: published ones that are shown beside its own.
        models: names or globs of those shown, all if empty. A line is fitted to its own set, shown or not.
        highlight: names or globs of those that are labelled.
        fit_set: a name of `testbed.results.effective.FIT_SETS`, or names and globs of models.
        scale: of the axes and of the line: 'logit', 'probit' or 'linear'.
        confidence: of the prediction interval and of the band; those of single results are 95 %.
    """

    store: Reader
    sources: Sequence[str] = ()
    models: Sequence[str] = ()
    highlight: Sequence[str] = ()
    fit_set: Sequence[str] = ("standard",)
    scale: str = "logit"
    confidence: float = 0.95
    _read: dict[frozenset[str], pd.DataFrame] = field(default_factory=dict, init=False, repr=False, compare=False)

    def points(self, settings: Sequence[str]) -> pd.DataFrame:
        """`testbed.results.points.model_points` of all models. A store is read once for a figure that asks for all
        its settings first.

        Args: settings: names of settings or of aggregates.
        Raises: UnknownNameError: nothing is stored of a setting, or was imported under the name of a source.
        """
        wanted = frozenset(settings)
        for known, table in self._read.items():
            if wanted <= known:
                return table[table["eval_setting"].isin(wanted)]
        for name in settings:
            if not self._is_known(name):
                near = suggestion(name, sorted({*self.names, *AGGREGATES} - {name})) if name not in AGGREGATES else ""
                near = near or "See db.py --list-eval-settings-db."
                raise UnknownNameError(f"Nothing is stored of '{name}'. {self._other_sources()}{near}")
        self._read[wanted] = model_points(self.store, list(dict.fromkeys(settings)), sources=self.sources)
        return self._read[wanted]

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the settings that anything is stored of, measured or published; aggregates are not among them."""
        with self.store.reading() as connection:
            theirs = list_published_settings(connection, self.sources)
        return frozenset({one.setting for one in complete_evaluations(self.store)}.union(theirs))

    def has(self, settings: Sequence[str]) -> bool:
        """Whether any model that is shown has a result on each of the settings."""
        return all(map(self._is_known, settings)) and self._have_all(settings)

    def stored(self, pairs: Iterable[ShiftPair]) -> list[ShiftPair]:
        """Those pairs of settings that any model that is shown has both of; all their results are read at once."""
        known = [pair for pair in pairs if self._is_known(pair.x) and self._is_known(pair.y)]
        if known:
            with suppress(UnknownNameError):  # an aggregate that no model has all parts of: pairs are then read singly
                self.points([name for pair in known for name in (pair.x, pair.y)])
        return [pair for pair in known if self._have_all([pair.x, pair.y])]

    def side_by_side(self, x: str, y: str) -> pd.DataFrame:
        """`testbed.results.points.side_by_side` of the models that are shown.

        Raises: TestbedError: none of them has both; or nothing at all is known of one.
        """
        points = self._points_of_both(x, y)
        return self.shown(side_by_side(points, x, y))

    def effective(self, x: str, y: str) -> Effective:
        """The line of `y` over `x` through the fit set, and where every model stands to it, shown or not.

        Raises: TestbedError: too few models of the fit set have both, or none that is shown.
        """
        points = self._points_of_both(x, y)
        return effective_robustness(
            points, x, y, fit_set=self.fit_set, scale=self.scale, confidence=self.confidence
        )  # fmt: skip

    def shown(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of the models that are asked for, and of the highlighted ones. Args: table: with ENTRY columns."""
        if not self.models:
            return table
        return table[_named(table, self.models) | _named(table, self.highlight)].reset_index(drop=True)

    def is_highlighted(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """For every row, whether its model is to be labelled."""
        return _named(table, self.highlight)

    def check_highlight(self, table: pd.DataFrame) -> None:
        """Raises: UnknownNameError: a model that is to be labelled is in none of the rows that a figure shows."""
        for name in self.highlight:
            if not _named(table, [name]).any():
                known = sorted({*table["model"], *table["entry"]})
                near = suggestion(name, known) or f"There are {', '.join(known[:SHOWN])}."
                raise UnknownNameError(f"--highlight {name}: no model of that name has results here. {near}")

    def path(self, out: Path, name: str) -> Path:
        """Where the files of a figure go, without their endings."""
        return out / slug(name)

    # Words for captions

    def source_words(self, table: pd.DataFrame) -> str:
        """How many models a table has, and from where: `310 models published by imagenet-testbed, 2 evaluated here`.

        Models that were measured in several ways are said to be entries: `1,556 entries of 1,318 models`.
        """
        first = table.drop_duplicates("entry")
        words = []
        for source, rows in first.groupby(first["source"].fillna(""), sort=True):
            entries, models = len(rows), rows["model"].nunique()
            several = f"{entries:,} entries of " if entries > models else ""
            count = f"{several}{counted([models], 'model')}"
            words.append(f"{count} {f'published by {plain(str(source))}' if source else 'evaluated here'}")
        return ", ".join(words)

    def _points_of_both(self, x: str, y: str) -> pd.DataFrame:
        """Raises: TestbedError: nothing is stored of a setting, or no model that is shown has both."""
        points = self.points([x, y])
        if self._have_all([x, y]):
            return points
        shown = self.shown(points)
        words = " and ".join(f"{(shown['eval_setting'] == name).sum()} of '{name}'" for name in (x, y))
        asked = f" by {' '.join(self.models)}" if self.models else ""
        published = f" with those of {', '.join(self.sources)}" if self.sources else ""
        raise TestbedError(
            f"No model{asked} has results on both settings: {self.store.url} holds {words}{published}. "
            f"{self._other_sources()}Evaluate some: python eval.py --models MODEL --eval-settings {x} {y} "
            f"--db-url {self.store.url}"
        )

    def _is_known(self, setting: str) -> bool:
        """Whether anything is stored of a setting, or of all parts of an aggregate."""
        parts = settings_of(setting, self.names)
        return all(part in self.names or (part != setting and f"{part}{TENTH}" in self.names) for part in parts)

    def _have_all(self, settings: Sequence[str]) -> bool:
        try:
            shown = self.shown(self.points(settings))
        except UnknownNameError:
            return False
        return bool((shown.groupby("entry")["eval_setting"].nunique() == len(set(settings))).any())

    def _other_sources(self) -> str:
        """How to show what others published, where it is there and was not asked for."""
        with self.store.reading() as connection:
            there = list_sources(connection)
        if others := [name for name in there if name not in self.sources and set(self.sources) <= set(there)]:
            return f"Published numbers are there too: add --with-published {' '.join([*self.sources, *others])}. "
        return ""


def _named(table: pd.DataFrame, patterns: Sequence[str]) -> NDArray[np.bool_]:
    """For every row, whether its model or its label is one of the names or fits one of the globs."""
    named = [
        bool(patterns) and (is_named(model, patterns) or is_named(entry, patterns))
        for model, entry in zip(table["model"], table["entry"], strict=True)
    ]
    return np.array(named, np.bool_)
