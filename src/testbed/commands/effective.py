"""The action of `db.py` that tells how far models lie above or below the line of standard models."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from testbed.commands.action import Options, print_json, reading
from testbed.report import WIDTH, aligned_table

if TYPE_CHECKING:
    import pandas as pd

    from testbed.metrics.effective import Line
    from testbed.results.effective import Effective


def effective_robustness(options: Options) -> None:
    """Prints the line of a fit set and each model's effective and relative robustness on two settings.

    The line is fitted on the whole fit set, whichever models are shown; notes on models are on those.

    Raises: UnknownNameError: no such setting, source, model or fit set. DataError: too few models for a line.
    """
    from testbed.results.effective import effective_robustness as measured
    from testbed.results.points import model_points

    x, y = options["effective_robustness"]
    with reading(options) as store:
        points = model_points(store, [x, y], sources=options["with_published"])
    found = measured(
        points,
        x,
        y,
        fit_set=options["fit_set"] or "standard",
        scale=options["scale"],
        confidence=options["confidence"],
        by_family=bool(options["by_family"]),
    )
    shown = _shown(found, options["models"])
    if options["as_json"]:
        print_json(_record(found, shown))
    else:
        print(_text(found, shown))


def _shown(found: Effective, models: Sequence[str]) -> pd.DataFrame:
    """The rows of the models that were asked for. Raises: UnknownNameError: one is no model on both settings."""
    from testbed.errors import UnknownNameError, suggestion
    from testbed.results.stored import is_named

    table = found.table
    for pattern in models:
        if not any(is_named(name, [pattern]) for name in {*table["model"], *table["entry"]}):
            near = suggestion(pattern, table["entry"])
            raise UnknownNameError(f"No model '{pattern}' has results on both settings. {near}".rstrip())
    names = zip(table["model"], table["entry"], strict=True)
    return table[[is_named(model, models) or is_named(entry, models) for model, entry in names]]


def _bounds(found: Effective, number: int) -> tuple[list[float], list[float]]:
    """Lower and upper bounds of a line's intercept and slope."""
    from testbed.metrics.effective import percentile_bounds

    low, high = percentile_bounds(found.resampled(number), confidence=found.confidence)
    return low.tolist(), high.tolist()


def _record(found: Effective, shown: pd.DataFrame) -> dict[str, Any]:
    lines = []
    for number, line in enumerate(found.lines):
        low, high = _bounds(found, number)
        ends = {"slope_ci": [low[1], high[1]], "intercept_ci": [low[0], high[0]]}
        lines.append({"slope": line.slope, "intercept": line.intercept, **ends, "r": line.r, "n": line.n,
                      "x_low": line.x_low, "x_high": line.x_high})  # fmt: skip
    asked = {"x": found.x, "y": found.y, "scale": found.scale, "fit_set": found.fit_set, "pivot": found.pivot}
    return {
        **asked,
        "confidence": found.confidence,
        "by_family": found.by_family,
        "lines": lines,
        "results": [_plain(row) for row in shown.to_dict("records")],
        "notes": list(found.notes_on(shown)),
    }


def _plain(row: dict[Any, Any]) -> dict[str, Any]:
    """A row for a program: null where a value is missing or not finite."""
    import numpy as np
    import pandas as pd

    values = {str(name): getattr(value, "item", lambda value=value: value)() for name, value in row.items()}
    return {
        name: None if pd.isna(value) or (isinstance(value, float) and not np.isfinite(value)) else value
        for name, value in values.items()
    }


def _text(found: Effective, shown: pd.DataFrame) -> str:
    has_tau = bool(shown["tau"].notna().any())
    header = ["model", "mark", "n on x, y", "x %", "y %", "line %", "rho", *(["tau"] if has_tau else [])]
    table = [header, *(_row(row, has_tau=has_tau) for row in shown.to_dict("records"))]
    notes = [
        f"x: {found.x}; y: {found.y}; line: y of the line at x; rho: effective robustness, y less the line, percentage "
        f"points, with the interval that {100 * found.confidence:g} % of models like those of the fit set keep within "
        "when measured on as many images.",
        "mark: above or below where 0 lies outside of that interval; extrapolated where no model of the fit set is as "
        "good, or as bad, on x.",
    ]
    if has_tau:
        notes.append("tau: relative robustness, y less that of the model's baseline, percentage points.")
    lines = [_line(found, number, line) for number, line in enumerate(found.lines)]
    parts = [*_filled(lines), "", aligned_table(table, num_names=2), "", *_filled([*notes, *found.notes_on(shown)])]
    return "\n".join(parts)


def _filled(sentences: Sequence[str]) -> list[str]:
    return [fill(sentence, WIDTH, break_on_hyphens=False) for sentence in sentences]


def _line(found: Effective, number: int, line: Line) -> str:
    low, high = _bounds(found, number)
    where = "" if found.pivot is None else f" {('below', 'from')[number]} {found.pivot:g} %"
    x, y = ("x", "y") if found.scale == "linear" else (f"{found.scale}(x)", f"{found.scale}(y)")
    drawn = "families of models" if found.by_family else "models"
    return (
        f"{y} = {line.intercept:.4f} [{low[0]:.4f}, {high[0]:.4f}] + {line.slope:.4f} [{low[1]:.4f}, {high[1]:.4f}] "
        f"{x}{where}: the line through {line.n} models (fit set: {found.fit_set}) of {line.x_low:.2f} to "
        f"{line.x_high:.2f} % on x, r2 = {line.r**2:.4f}; between the bounds lie {100 * found.confidence:g} % of lines "
        f"through {drawn} drawn again."
    )


def _row(row: dict[Any, Any], *, has_tau: bool) -> list[str]:
    sizes = ", ".join("unknown" if size != size or size is None else f"{size}" for size in (row["x_n"], row["y_n"]))
    cells = [row["entry"], _marks(row), sizes, *(f"{row[name]:.2f}" for name in ("x", "y", "beta"))]
    cells.append(f"{row['rho']:+.2f} [{row['rho_low']:+.2f}, {row['rho_high']:+.2f}]")
    if has_tau:
        cells.append("" if row["tau"] != row["tau"] else f"{row['tau']:+.2f}{_interval(row)}")
    return cells


def _interval(row: dict[Any, Any]) -> str:
    low, high = row["tau_low"], row["tau_high"]
    return "" if low != low or high != high else f" [{low:+.2f}, {high:+.2f}]"


def _marks(row: dict[Any, Any]) -> str:
    side = "above" if row["rho_low"] > 0 else "below" if row["rho_high"] < 0 else ""
    return ", ".join(mark for mark in (side, "extrapolated" if row["is_extrapolated"] else "") if mark)
