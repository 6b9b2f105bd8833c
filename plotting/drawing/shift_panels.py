"""The panels of a figure of models on pairs of settings: which models are in each, and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from plotting.drawing.comparison import Comparison
from plotting.drawing.counts import counted, span
from plotting.drawing.scatter import LOW_ACCURACY
from plotting.drawing.style import plain

from testbed.errors import DataError, TestbedError
from testbed.metrics.scales import scale_named
from testbed.results.effective import Effective
from testbed.results.fit_sets import fit_set_named

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from testbed.shift_pairs import ShiftPair

SHOWN_NOTE = 300  # letters of the notes on a line that a caption has room for


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Models on two settings.

    Args:
        pair: the settings.
        table: the models that are shown: of `testbed.results.points.side_by_side`, and with a line what it adds.
        effective: the line; None where there are too few models to fit one.
        hidden: entries of low accuracy that are left out.
        scale: of the axes.
    """

    pair: ShiftPair
    table: pd.DataFrame
    effective: Effective | None
    hidden: int
    scale: str

    @cached_property
    def drawn(self) -> pd.DataFrame:
        """The rows that have a place on the scale."""
        places = scale_named(self.scale)
        is_on = np.isfinite(places.of_percent(self.table["x"])) & np.isfinite(places.of_percent(self.table["y"]))
        return self.table[is_on].reset_index(drop=True)

    def images(self, axis: str) -> str:
        """How many images the accuracies on an axis are of: `n = 10,000`."""
        counts = self.table[f"{axis}_n"].dropna().astype(int)
        return "n not told" if counts.empty else f"n = {span(counts)}"


@dataclass(frozen=True, kw_only=True)
class Panels:
    """The panels of one figure. Args: missing: pairs that no model that is shown has both settings of."""

    comparison: Comparison
    panels: Sequence[Panel]
    missing: Sequence[ShiftPair]

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per panel and model, with the names of the pair and its settings first."""
        import pandas as pd

        tables = []
        for panel in self.panels:
            names = {"shift": panel.pair.name, "x_setting": panel.pair.x, "y_setting": panel.pair.y}
            tables.append(panel.table.assign(**names)[[*names, *panel.table.columns]])
        return pd.concat(tables, ignore_index=True)

    @property
    def caption(self) -> str:
        """Which models and lines these are, what the bars are, and what is not shown."""
        said = [f"{self.comparison.source_words(self.table)}.", "Bars: 95 % intervals of each accuracy."]
        said += self._line_sentences()
        if self.table["is_own"].any() and not self.table["is_own"].all():
            said.append("Black rims: evaluated here.")
        said += self._left_out()
        return " ".join(said)

    def _line_sentences(self) -> list[str]:
        words = plain(fit_set_named(self.comparison.fit_set).words, 80)
        lined = [(panel, panel.effective) for panel in self.panels if panel.effective is not None]
        lines = [line for _, line in lined]
        if not lines:
            return [
                f"No line: fewer than three models to fit one to ({words}) have both settings, or all one accuracy."
            ]
        counts = sorted({sum(line.n for line in one.lines) for one in lines})
        span = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
        said = [
            f"Lines: least squares on the {self.comparison.scale} scale through {span} models ({words})"
            f"{_formulas(lines)}, dashed beyond them; bands: {100 * self.comparison.confidence:g} % from 1,000 "
            "resamples of these models."
        ]
        without = [panel.pair.title for panel in self.panels if panel.effective is None]
        if without:
            names = ", ".join(map(plain, without))
            said.append(f"No line where fewer than three have both settings, or all one accuracy: {names}.")
        told = (note for panel, line in lined for note in line.notes_on(panel.table) if _is_told(note))
        notes = dict.fromkeys(told)
        return said + [plain(note, SHOWN_NOTE) for note in notes]

    def _left_out(self) -> list[str]:
        said = []
        if hidden := max(panel.hidden for panel in self.panels):
            said.append(f"Not shown: {counted([hidden], 'model')} of low accuracy.")
        if off := sum(len(panel.table) - len(panel.drawn) for panel in self.panels):
            said.append(f"Not shown: {counted([off], 'point')} at 0 or 100 %, for which the scale has no place.")
        if self.missing:
            said.append(f"Not stored: {', '.join(plain(pair.title) for pair in self.missing)}.")
        return said


def panels_of(
    comparison: Comparison,
    pairs: Sequence[ShiftPair],
    *,
    more: Sequence[ShiftPair] = (),
    with_low_accuracy: bool = False,
) -> Panels:
    """The pairs that any models have both settings of, with the lines.

    Args:
        more: pairs that nobody misses where they are not stored.
        with_low_accuracy: also models that were trained on few images or on simple features.
    Raises:
        TestbedError: no model has both settings of any pair.
        UnknownNameError: a highlighted model is in none of the panels, or the fit set names an unknown one.
    """
    there = comparison.stored([*pairs, *more])
    if not there:
        _tell_missing(comparison, pairs)
    panels = [_panel(comparison, pair, with_low_accuracy=with_low_accuracy) for pair in there]
    found = Panels(comparison=comparison, panels=panels, missing=[pair for pair in pairs if pair not in there])
    comparison.check_highlight(found.table)
    return found


def _tell_missing(comparison: Comparison, pairs: Sequence[ShiftPair]) -> NoReturn:
    """Raises: TestbedError: no model has both settings of any of the pairs."""
    try:
        comparison.side_by_side(pairs[0].x, pairs[0].y)
    except TestbedError as error:
        if len(pairs) == 1:
            raise
        names = ", ".join(pair.title for pair in pairs)
        raise TestbedError(f"No model has both settings of any of {names}. Of the first: {error}") from error
    raise TestbedError(f"No model has results on both '{pairs[0].x}' and '{pairs[0].y}'.")


def _panel(comparison: Comparison, pair: ShiftPair, *, with_low_accuracy: bool) -> Panel:
    effective = None
    try:
        effective = comparison.effective(pair.x, pair.y)
        table = comparison.shown(effective.table)
    except DataError:  # too few models of the fit set: the points say something without a line, too
        table = comparison.side_by_side(pair.x, pair.y)
    is_low = is_low_accuracy(table) & ~comparison.is_highlighted(table)
    if with_low_accuracy or is_low.all():
        is_low = np.zeros(len(table), np.bool_)
    return Panel(
        pair=pair, table=table[~is_low].reset_index(drop=True), effective=effective, hidden=int(is_low.sum()),
        scale=comparison.scale,
    )  # fmt: skip


def is_low_accuracy(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Published models of low accuracy: by their type, or where that is not known by standing below the whole line."""
    is_low = table["model_type"].isin(LOW_ACCURACY).fillna(False).to_numpy(np.bool_)
    if "is_fit" in table:
        lowest = table["x"][table["is_fit"].astype(bool)].min()
        is_low = is_low | (table["model_type"].isna() & (table["x"] < lowest)).to_numpy(np.bool_)
    return np.asarray(is_low & ~table["is_own"].to_numpy(np.bool_))


def _formulas(lines: Sequence[Effective]) -> str:
    """The formula of a line that is the only one of its figure."""
    if len(lines) != 1 or len(lines[0].lines) != 1:
        return ""
    line = lines[0].lines[0]
    intercept = line.intercept * (100 if line.scale == "linear" else 1)  # percent there
    words = f" with slope {line.slope:.3f}, intercept {intercept:.3f}, r = {line.r:.3f}"
    return words.replace("-", "\N{MINUS SIGN}")


def _is_told(note: str) -> bool:
    """Whether a note on a line says what the figure does not, of something that it draws."""
    return not note.startswith(("Results of several sources", "The line is extrapolated", "Models differ by"))
