"""The line or lines of a pair of settings: which models they are fitted on, and why others are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testbed.errors import DataError
from testbed.metrics.effective import FEWEST, is_on_scale
from testbed.metrics.prediction import Fit, fit
from testbed.results.effective_notes import few, left_out
from testbed.results.fit_sets import FIT_SETS, FitSet
from testbed.shift_pairs import ShiftPair

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_POINT_CONFIDENCE = 0.95  # of the intervals of the points


def chosen_models(table: pd.DataFrame, chosen: FitSet, pair: ShiftPair, *, scale: str) -> tuple[Mask, list[str]]:
    """Which rows of a table of models a line is fitted on, and sentences on those of the fit set that it is not.

    Args: table: of `points.side_by_side`, its x finite on the scale.
    """
    is_in = chosen.members(table, pair.x).to_numpy(dtype=bool)
    is_held_against = (chosen.candidates(table, pair.x) & chosen.held_against(table)).to_numpy(dtype=bool)
    is_pivot = is_in & (table["model"] == pair.pivot_model).to_numpy(dtype=bool)
    is_off = is_in & ~is_pivot & ~is_on_scale(table["x"], table["y"], scale=scale)
    is_again = _is_again(table, is_in & ~is_pivot & ~is_off)
    told = [
        *left_out(table[is_held_against], f"beside published models, '{chosen.name}' is of these alone"),
        *left_out(table[is_pivot], f"{pair.y} holds images that it gets wrong"),
        *left_out(table[is_off], f"{pair.y} is 0 or 100 %, which has no place on the {scale} scale"),
        *left_out(table[is_again], "each model counts once, here with another of its entries"),
    ]
    return is_in & ~is_pivot & ~is_off & ~is_again, told


def _is_again(table: pd.DataFrame, is_in: Mask) -> Mask:
    """Which of the chosen rows repeat a model; that of the source with the most chosen rows counts."""
    rows = table[is_in].assign(source=table["source"].astype("string").fillna(""))
    sizes = rows["source"].map(rows["source"].value_counts())
    ordered = rows.assign(size=-sizes.astype(float)).sort_values(["size", "source", "entry"], kind="stable")
    again = np.zeros(len(table), dtype=bool)
    again[table.index.get_indexer(ordered.index[ordered.duplicated("model")])] = True
    return again


def parting(pair: ShiftPair, x: pd.Series[float]) -> tuple[float | None, list[str]]:
    """Where two lines part, None for one line; and a sentence where a side has too few models for its own.

    Args: x: of the models that the line is fitted on.
    """
    if pair.pivot is None:
        return None, []
    below, above = int((x < pair.pivot).sum()), int((x >= pair.pivot).sum())
    if min(below, above) >= FEWEST:
        return pair.pivot, []
    sides = f"{below} models of the fit lie below its {pair.pivot} % and {above} above"
    return None, [f"One line is fitted instead of two that meet at {pair.pivot_model}: {sides}."]


def is_on_side(x: Array, number: int, pivot: float | None) -> Mask:
    """Which accuracies on x belong to a line, by its number."""
    return np.ones(len(x), dtype=bool) if pivot is None else np.asarray((x >= pivot) == bool(number))


def models_of_line(table: pd.DataFrame, number: int, pivot: float | None) -> pd.DataFrame:
    """The rows with `is_fit` of a line, by its number, in an order that does not depend on how they were read."""
    on_side = is_on_side(table["x"].to_numpy(np.float64), number, pivot)
    return table[table["is_fit"].to_numpy(dtype=bool) & on_side].sort_values(["x", "entry"], ascending=[False, True])


def fits_of(table: pd.DataFrame, pivot: float | None, *, scale: str, chosen: FitSet) -> tuple[Fit, ...]:
    """The fit of each line through the rows with `is_fit`.

    Raises: DataError: fewer than three models.
    """
    named = list(table.loc[table["is_fit"], "entry"])
    if len(named) < FEWEST:
        typeless = (
            " No type of these models is known: --import-csv takes a file of types." if _is_typeless(table) else ""
        )
        own = " Beside published models, own ones are not of this set." if chosen.held_against(table).any() else ""
        raise DataError(
            f"A line needs at least {FEWEST} models with both settings. Of {chosen.words} there are {len(named)} "
            f"({few(named) or 'none'}) among {len(table)}.{own}{typeless} Add published ones with --with-published, or "
            f"give another --fit-set: {', '.join(FIT_SETS)}, or names of models."
        )
    return tuple(_fit(models_of_line(table, number, pivot), scale) for number in ((0,) if pivot is None else (0, 1)))


def check_families(table: pd.DataFrame, pivot: float | None) -> None:
    """Raises: DataError: a line's models are of too few families to draw these again: the same would come each time."""
    for number in (0,) if pivot is None else (0, 1):
        named = sorted(set(families_of(models_of_line(table, number, pivot))))
        if len(named) < FEWEST:
            raise DataError(
                f"The line's models are of {len(named)} families ({', '.join(named)}). Drawing families needs at least "
                f"{FEWEST}: leave out --by-family."
            )


def _is_typeless(table: pd.DataFrame) -> bool:
    return bool(table["model_type"].isna().all())


def _fit(rows: pd.DataFrame, scale: str) -> Fit:
    return fit(
        rows["x"], rows["y"], x_n=images(rows, "x"), y_n=images(rows, "y"), families=families_of(rows), scale=scale
    )


def families_of(rows: pd.DataFrame) -> pd.Series[Any]:
    """The family of each model; a model whose family is not known is one of its own."""
    return rows["family"].astype("string").fillna(rows["model"].astype("string")).astype(str)


def images(table: pd.DataFrame, axis: str) -> Array:
    """How many independent images would give each model's interval on an axis; NaN where it is unknown.

    Draws and runs of one's own evaluations are not independent images, so their number is taken from the width of the
    interval, which knows; where there is none, or nothing or everything is right, it is n.
    """
    from scipy.special import ndtri

    n = table[f"{axis}_n"].to_numpy(dtype=np.float64, na_value=np.nan)
    part, low, high = (
        table[name].to_numpy(dtype=np.float64, na_value=np.nan) / 100 for name in (axis, f"{axis}_low", f"{axis}_high")
    )
    error = (high - low) / (2 * float(ndtri((1 + _POINT_CONFIDENCE) / 2)))
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = part * (1 - part) / np.square(error)
    is_known = table["is_own"].to_numpy(dtype=bool) & (effective > 0) & np.isfinite(effective)
    return np.where(is_known, effective, n)
