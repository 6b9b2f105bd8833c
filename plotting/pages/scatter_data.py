"""The scatter page of a site: its page, the points that it draws, and plotly, which only this page loads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from plotting.drawing.scatter import KINDS, LOW_ACCURACY
from plotting.pages.data import SiteData
from plotting.pages.entries import Entry
from plotting.pages.render import render

from testbed.errors import TestbedError
from testbed.results.effective import FIT_SETS, SHIFT_PAIRS
from testbed.results.fit_sets import THRESHOLDS
from testbed.visible import visible

if TYPE_CHECKING:
    import pandas as pd

PAGE, POINTS, PLOTLY = "scatter.html", "data/points.js", "assets/plotly.min.js"
DIGITS = {"value": 5, "ci_low": 3, "ci_high": 3}  # behind the point: a line is right to 1e-4
RHO_DIGITS = 3
_SYMBOLS = {"o": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "v": "triangle-down", "P": "cross"}


def scatter_files(site: SiteData) -> Iterator[tuple[str, bytes]]:
    """The files of the scatter page, by their paths within the site.

    Raises: TestbedError: plotly is not installed.
    """
    yield PAGE, render(PAGE, path=PAGE)
    yield POINTS, points_script(site)
    yield PLOTLY, _plotly()


def points_script(site: SiteData) -> bytes:
    """A script that puts all points into `TESTBED_POINTS`; pages of a file system may load scripts but not data."""
    text = json.dumps(_content(site), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # a string that is parsed is ready in half the time of an object that is written out
    return f"window.TESTBED_POINTS = JSON.parse({json.dumps(text)});\n".encode()


def _plotly() -> bytes:
    try:
        import plotly
    except ImportError as error:
        raise TestbedError("The site's scatter page needs plotly: pip install plotly") from error
    return (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_bytes()


def _content(site: SiteData) -> dict[str, Any]:
    entries = {entry.name: place for place, entry in enumerate(site.entries)}
    names = [setting.name for setting in site.settings]
    places = {name: place for place, name in enumerate(names)}
    pairs = [
        _pair(site, name, entries, places) for name, pair in SHIFT_PAIRS.items() if {pair.x, pair.y} <= set(places)
    ]
    counts = [setting.num_models for setting in site.settings]
    return {
        "entries": _entries(site.entries),
        "kinds": [
            {
                "words": kind.words,
                "color": kind.color,
                "symbol": _SYMBOLS[kind.marker],
                "is_low": kind.types == LOW_ACCURACY,
            }
            for kind in KINDS
        ],
        "sets": _sets(site.entries),
        "settings": {
            "name": names,
            "title": [setting.title if setting.title != setting.name else setting.group for setting in site.settings],
            "threshold": [THRESHOLDS.get(name) for name in names],
        },
        "columns": _columns(site.points, entries, names),
        "pairs": pairs,
        "start": [pairs[0]["x"], pairs[0]["y"]] if pairs else _most(counts),
    }


def _pair(site: SiteData, name: str, entries: Mapping[str, int], places: Mapping[str, int]) -> dict[str, Any]:
    """A known pair, with the intervals of rho and the notes of its line where it has one."""
    pair = SHIFT_PAIRS[name]
    known = {"title": pair.title, "x": places[pair.x], "y": places[pair.y], "pivot": pair.pivot,
             "pivot_model": pair.pivot_model}  # fmt: skip
    if (fit := site.effective.get(name)) is None:
        return known
    rho = {
        "entry": fit.table["entry"].map(entries).tolist(),
        "low": _rounded(fit.table["rho_low"], RHO_DIGITS),
        "high": _rounded(fit.table["rho_high"], RHO_DIGITS),
    }
    return {**known, "rho": rho, "notes": list(fit.notes)}


def _entries(entries: Sequence[Entry]) -> dict[str, Any]:
    kinds = {one: place for place, kind in enumerate(KINDS) for one in kind.types}
    return {
        "name": [visible(entry.name) for entry in entries],
        "model": [visible(entry.model) for entry in entries],
        "kind": [kinds.get(entry.model_type, 0) for entry in entries],
        "source": [entry.source for entry in entries],
        "own": [int(entry.is_own) for entry in entries],
        "href": [entry.file for entry in entries],
    }


def _sets(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The sets of models that a line can be fitted on, whatever their accuracy and whoever measured them."""
    import pandas as pd

    rows = [{"model": entry.model, "model_type": entry.model_type or None, "x": 100.0} for entry in entries]
    table = pd.DataFrame(rows)
    return [
        {
            "name": one.name,
            "words": one.words,
            "has_threshold": one.has_threshold,
            "is_yardstick": one.is_yardstick,
            "members": np.flatnonzero(one.candidates(table, "").to_numpy(dtype=bool)).tolist(),
        }
        for one in FIT_SETS.values()
    ]


def _columns(points: pd.DataFrame, entries: Mapping[str, int], names: Sequence[str]) -> list[dict[str, Any]]:
    """By setting, in the order of `names`: which models have it, and their numbers."""
    known = points[points["entry"].isin(entries.keys())]
    known = known.assign(place=known["entry"].map(entries))
    groups = dict(list(known.sort_values("place", kind="stable").groupby("eval_setting", sort=False)))
    return [_column(groups[name]) for name in names]


def _column(rows: pd.DataFrame) -> dict[str, Any]:
    counts = [None if n != n else int(n) for n in rows["n"].to_numpy(dtype=np.float64, na_value=np.nan).tolist()]
    found = {name: _rounded(rows[name], digits) for name, digits in DIGITS.items()}
    return {
        "entry": rows["place"].tolist(),
        "value": found["value"],
        "low": found["ci_low"],
        "high": found["ci_high"],
        "n": counts[0] if len(set(counts)) == 1 else counts,
    }


def _rounded(column: pd.Series[Any], digits: int) -> list[float | int | None]:
    values = np.round(column.to_numpy(dtype=np.float64, na_value=np.nan), digits).tolist()
    return [None if value != value else int(value) if value == int(value) else value for value in values]


def _most(counts: Sequence[int]) -> list[int]:
    """The two settings that the most models have."""
    order = sorted(range(len(counts)), key=lambda place: -counts[place])
    return [order[0], order[1] if len(order) > 1 else order[0]]
