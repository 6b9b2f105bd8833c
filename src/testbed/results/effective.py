"""Effective robustness of stored models: how far above or below the line of standard models each of them lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testbed.errors import DataError, UnknownNameError
from testbed.metrics.effective import Line, band, resampled_lines
from testbed.metrics.prediction import Fit
from testbed.metrics.scales import scale_named
from testbed.results.effective_fit import (
    check_families,
    chosen_models,
    families_of,
    fits_of,
    images,
    is_on_side,
    models_of_line,
    parting,
)
from testbed.results.effective_notes import doubtful, notes_of, shared_error, sources_of, without_place
from testbed.results.fit_sets import FIT_SETS, FitSet, check_members, fit_set_named
from testbed.results.relative import with_tau
from testbed.shift_pairs import SHIFT_PAIRS, ShiftPair, pair_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FIT_SETS", "SHIFT_PAIRS", "Effective", "FitSet", "ShiftPair", "effective_robustness"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Effective:
    """Models on two settings, the line of a fit set, and every model's distance from it.

    Args:
        x, y: the settings or aggregates.
        scale: on which the line is one: 'logit', 'probit' or 'linear'.
        confidence: of the band and of prediction intervals.
        fit_set: name of the set of models that the line was fitted on.
        lines: one; or two, below and above `pivot`.
        pivot: accuracy on x, percent, where the first of two lines ends; None with one.
        table: a row per model, by `rho` from the largest: the columns of `points.side_by_side`, and
            is_fit: whether a line was fitted on it;
            beta: the line's value at its x; rho: effective robustness, y - beta;
            expected_low, expected_high: where y of one more standard model of this x, measured on as many images, would
            lie; rho_low, rho_high: y less these, so that 0 is outside where y is not that of a standard model;
            is_extrapolated: x lies beyond the models of the fit;
            tau: relative robustness, y less the baseline's y, with tau_low, tau_high; missing without a baseline.
        notes_of_fit: sentences on what the lines do not say themselves.
        flagged: published numbers of these models that are doubtful: `eval_setting`, `entry` and `flag`.
        by_family: whether the band is of resampled families of models.
    """

    x: str
    y: str
    scale: str
    confidence: float
    fit_set: str
    lines: tuple[Line, ...]
    table: pd.DataFrame
    notes_of_fit: tuple[str, ...]
    flagged: pd.DataFrame
    pivot: float | None = None
    by_family: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what the lines and the numbers of all models do not say themselves."""
        return self.notes_on(self.table)

    def notes_on(self, rows: pd.DataFrame) -> tuple[str, ...]:
        """Sentences on what the lines, and the numbers of some rows of the table, do not say themselves."""
        return (*self.notes_of_fit, *doubtful(self.flagged, rows), *notes_of(rows))

    def curve(self, num: int = 200) -> pd.DataFrame:
        """The lines for drawing: x, y, y_low, y_high in percent, evenly spaced on the scale over all models' x.

        The bounds are those of lines through resampled models of the fit. With two lines, each has its own models and
        ends where the other begins; `line` numbers them.
        """
        import pandas as pd

        x, parts = self.table["x"].to_numpy(np.float64), []
        for number, line in enumerate(self.lines):
            inside = x[is_on_side(x, number, self.pivot)]
            start, end = scale_named(self.scale).of_percent([inside.min(), inside.max()]).tolist()
            at = scale_named(self.scale).to_percent(np.linspace(start, end, num))
            below, above = band(self.resampled(number), at, scale=self.scale, confidence=self.confidence)
            parts.append(pd.DataFrame({"line": number, "x": at, "y": line.at(at), "y_low": below, "y_high": above}))
        return pd.concat(parts, ignore_index=True)

    def resampled(self, number: int = 0) -> Array:
        """Intercept and slope of one of the lines, by its number, through resampled models: (resamples, 2)."""
        rows = models_of_line(self.table, number, self.pivot)
        families = families_of(rows) if self.by_family else None
        return resampled_lines(rows["x"], rows["y"], scale=self.scale, families=families)


def effective_robustness(
    points: pd.DataFrame,
    x: str,
    y: str,
    *,
    fit_set: str | Sequence[str] = "standard",
    scale: str = "logit",
    confidence: float = 0.95,
    by_family: bool = False,
) -> Effective:
    """Effective robustness rho = y - beta(x) of all models that have both settings, in percentage points.

    beta is the line of least squares through the models of the fit set, on the scale. ImageNet-A against ImageNet of
    its classes has two lines, as published. rho has the interval that one more model of the fit set would keep within:
    see `metrics.prediction.fit`. The interval of a model that is itself in the fit set is therefore a little wide.

    Args:
        points: as `points.model_points` gives them.
        fit_set: a name in FIT_SETS, or names and globs of models, and @FILE with a name a line.
        by_family: resample families of models instead of models for the band.
    Raises:
        UnknownNameError: no model has both settings, or a model of the fit set is none of them.
        DataError: fewer than three models to fit a line on, or families to draw; an unknown scale; x is y.
    Source: Taori et al., NeurIPS 2020, sections 3 and 4.
    """
    from testbed.results.points import side_by_side

    if x == y:
        raise DataError(f"X and Y are both '{x}'. Name two settings, such as a clean one and a shift.")
    chosen, places = fit_set_named(fit_set), scale_named(scale)
    both = side_by_side(points, x, y)
    if both.empty:
        raise UnknownNameError(f"No model has results on both '{x}' and '{y}'. {_counted(points, x, y)}")
    check_members(chosen, list(both["model"]))
    has_place = np.isfinite(places.of_percent(both["x"]))
    pair = pair_of(x, y) or ShiftPair(name="", title="", x=x, y=y)
    table = both[has_place].reset_index(drop=True)
    is_fit, told = chosen_models(table, chosen, pair, scale=scale)
    pivot, parted = parting(pair, table["x"][is_fit])
    table = table.assign(is_fit=is_fit)
    fits = fits_of(table, pivot, scale=scale, chosen=chosen)
    if by_family:
        check_families(table, pivot)
    table = with_tau(_with_rho(table, fits, pivot, confidence))
    table = table.sort_values(["rho", "entry"], ascending=[False, True], kind="stable").reset_index(drop=True)
    told += without_place(both[~has_place], x, scale)
    told += [*shared_error(min(one.spread.kept for one in fits)), *sources_of(table)]
    return Effective(
        x=x,
        y=y,
        scale=scale,
        confidence=confidence,
        fit_set=chosen.name,
        lines=tuple(one.line for one in fits),
        table=table,
        notes_of_fit=(*parted, *told),
        flagged=_flagged(points, (x, y), table),
        pivot=pivot,
        by_family=by_family,
    )


_EXPECTED = ("beta", "expected_low", "expected_high")


def _with_rho(table: pd.DataFrame, fits: Sequence[Fit], pivot: float | None, confidence: float) -> pd.DataFrame:
    """The table with the line's values, prediction intervals and marks."""
    x, y = (table[axis].to_numpy(np.float64) for axis in ("x", "y"))
    x_n, y_n = images(table, "x"), images(table, "y")
    found: dict[str, Any] = {name: np.full(len(table), np.nan) for name in _EXPECTED}
    for number, one in enumerate(fits):
        side = is_on_side(x, number, pivot)
        expected = one.expected(x[side], x_n[side], y_n[side], confidence=confidence)
        for name, values in zip(_EXPECTED, expected, strict=True):
            found[name][side] = values
    beta, low, high = (found[name] for name in _EXPECTED)
    outside = (x < fits[0].line.x_low) | (x > fits[-1].line.x_high)
    return table.assign(**found, rho=y - beta, rho_low=y - high, rho_high=y - low, is_extrapolated=outside)


def _flagged(points: pd.DataFrame, settings: Sequence[str], table: pd.DataFrame) -> pd.DataFrame:
    """The doubtful points of a table's models, by setting."""
    is_theirs = points["eval_setting"].isin(settings) & points["entry"].isin(table["entry"])
    rows = points.loc[is_theirs & points["flag"].notna(), ["eval_setting", "entry", "flag"]]
    return rows.sort_values("eval_setting", key=lambda names: names.map(settings.index), kind="stable")


def _counted(points: pd.DataFrame, *settings: str) -> str:
    """How many models have each of the settings, for a message."""
    counts = [f"{int((points['eval_setting'] == setting).sum())} have '{setting}'" for setting in settings]
    return f"{' and '.join(counts)}. Evaluate them with eval.py, or add published ones with --with-published SOURCE."
