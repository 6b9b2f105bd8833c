"""The table of models by settings: its columns, its numbers with intervals and marks, and how LaTeX sets it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from plotting.drawing.comparison import Comparison
from plotting.drawing.counts import span
from plotting.drawing.latex import DENSE, Table, escape, stacked
from plotting.drawing.shifts import NATURAL, SYNTHETIC
from plotting.drawing.style import plain, shortened

from testbed.errors import DataError, TestbedError
from testbed.metrics.among_best import among_best
from testbed.results.fit_sets import fit_set_named
from testbed.results.points import ENTRY
from testbed.shift_pairs import SHIFT_PAIRS, ShiftPair

if TYPE_CHECKING:
    import pandas as pd

MOST = 10  # columns that are shown unasked
LONG = 45  # rows that a page has room for
LONGEST_NAME = 60
ACCURACY, RHO = "accuracy", "effective robustness"
_PAIRS = {SHIFT_PAIRS[name].y: SHIFT_PAIRS[name] for name in (*NATURAL, *SYNTHETIC)}


def columns_of(comparison: Comparison, asked: Sequence[str]) -> list[str]:
    """The settings to show: those asked for; else ImageNet and the paper's shifts as far as stored; else clean ones.

    Raises: TestbedError: nothing is stored at all.
    """
    if asked:
        return list(dict.fromkeys(asked))
    paper = [name for name in ("val", *_PAIRS) if comparison.has([name])]
    if paper:
        return paper
    from plotting.drawing.setting_columns import columns_of as grid_columns
    from plotting.drawing.setting_columns import known_settings, spaces_of

    spaces = spaces_of(known_settings(comparison.store, comparison.sources))
    if not spaces:
        raise TestbedError(
            f"{comparison.store.url} holds no evaluation. Evaluate some: python eval.py --models digits-resnet "
            f"--eval-settings digits --db-url {comparison.store.url}; or add --with-published SOURCE."
        )
    largest = max(spaces.values(), key=len)
    names = [column.setting for column in grid_columns(largest, is_aggregated=True)]
    return [name for name in names if comparison.has([name])][:MOST]


def table_of(comparison: Comparison, settings: Sequence[str], *, with_rho: bool) -> pd.DataFrame:
    """A row per model and column, models by their first number from the largest.

    Returns: the columns of `testbed.results.points.ENTRY`, then eval_setting, measure, value, ci_low, ci_high, n,
        is_best (of effective robustness: above what standard models reach), is_among_best, is_extrapolated (of
        effective robustness: the line is continued beyond its models).
    Raises: DataError: no model that is shown has any of the numbers.
    """
    import pandas as pd

    points = comparison.shown(comparison.points(settings))
    if points.empty:
        raise DataError(f"No model that is shown has a result on {', '.join(settings)}. Name others with --models.")
    parts = []
    for name in settings:
        parts.append(_accuracies(points[points["eval_setting"] == name]))
        if with_rho and name in _PAIRS:
            parts.append(_robustness(comparison, _PAIRS[name]))
    table = pd.concat(parts, ignore_index=True)
    first = table.drop_duplicates("entry").set_index("entry")  # of each model, in the order of the columns
    column = first["eval_setting"].map({name: position for position, name in enumerate(settings)})
    ranks = first.assign(column=column).sort_values(["column", "value"], ascending=[True, False], kind="stable")
    place = {entry: position for position, entry in enumerate(ranks.index)}
    return table.sort_values("entry", key=lambda names: names.map(place), kind="stable").reset_index(drop=True)


def _accuracies(rows: pd.DataFrame) -> pd.DataFrame:
    value, low, high = (rows[name].to_numpy(np.float64) for name in ("value", "ci_low", "ci_high"))
    is_best = value == np.nanmax(value) if len(value) else np.zeros(0, np.bool_)
    marked = rows.assign(measure=ACCURACY, is_best=is_best, is_among_best=among_best(value, low, high),
                         is_extrapolated=False)  # fmt: skip
    return marked[[*ENTRY, *_COLUMNS]]


def _robustness(comparison: Comparison, pair: ShiftPair) -> pd.DataFrame:
    """Effective robustness as rows of the table; none where no line can be fitted."""
    try:
        rows = comparison.shown(comparison.effective(pair.x, pair.y).table)
    except TestbedError as error:
        raise type(error)(f"{error} Or leave out --effective-robustness.") from error
    is_above = (rows["rho_low"] > 0).to_numpy(np.bool_)
    names = {"rho": "value", "rho_low": "ci_low", "rho_high": "ci_high", "y_n": "n"}
    marked = rows.drop(columns=["x", "y"]).rename(columns=names)
    return marked.assign(eval_setting=pair.y, measure=RHO, is_best=is_above, is_among_best=is_above)[
        [*ENTRY, *_COLUMNS]
    ]


_COLUMNS = ("eval_setting", "measure", "value", "ci_low", "ci_high", "n", "is_best", "is_among_best",
            "is_extrapolated")  # fmt: skip


def _group(name: str, cells: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The rows of a model: intervals behind the numbers, and of many columns below them."""
    if len(cells) < DENSE:
        return [[name, *(f"{number} {interval}".rstrip() for number, interval in cells)]]
    return [[name, *(number for number, _ in cells)], ["", *(interval for _, interval in cells)]]


def latex_of(comparison: Comparison, table: pd.DataFrame) -> Table:
    """The table as LaTeX sets it, names of highlighted models in bold.

    Args: table: of `table_of`.
    Raises: UnknownNameError: a model that is to be highlighted is not in it.
    """
    comparison.check_highlight(table)
    marked = set(table["entry"][comparison.is_highlighted(table)])
    columns = list(dict.fromkeys(zip(table["eval_setting"], table["measure"], strict=True)))
    cells = {
        (row["entry"], row["eval_setting"], row["measure"]): row for row in table.to_dict("records")
    }  # fmt: skip
    entries = list(dict.fromkeys(table["entry"]))
    rows = [[_cell(cells.get((entry, *column))) for column in columns] for entry in entries]
    texts = [escape(shortened(entry, LONGEST_NAME)) for entry in entries]
    names = [rf"\textbf{{{text}}}" if entry in marked else text for entry, text in zip(entries, texts, strict=True)]
    groups = list(map(_group, names, rows))
    body = groups if len(columns) >= DENSE else [[row for group in groups for row in group]]
    return Table(
        columns="l" + "r" * len(columns), header=[["model", *(_title(*column) for column in columns)]], body=body,
        caption=escape(_caption(comparison, table)), label="tab:models", is_long=sum(map(len, groups)) > LONG,
    )  # fmt: skip


def _caption(comparison: Comparison, table: pd.DataFrame) -> str:
    accuracies = table[table["measure"] == ACCURACY]
    counts = [
        f"{_name(str(name))} {span(rows['n'].dropna())}"
        for name, rows in accuracies.groupby("eval_setting", sort=False)
    ]
    said = [
        f"Top-1 accuracy in percent with 95 % intervals: {comparison.source_words(table)}. Bold: the best of a column; "
        "italics: not shown to be worse than another (95 % for each column, one-sided tests, each of its share of the "
        f"error, as if models had seen different images). Images: {', '.join(counts)}."
    ]
    if (table["measure"] == RHO).any():
        said.append(
            f"ρ: effective robustness, the accuracy in the column before less that of the line through "
            f"{plain(fit_set_named(comparison.fit_set).words, 80)} ({comparison.scale} scale), in percentage points, "
            f"with its {100 * comparison.confidence:g} % prediction interval; bold where it is above 0, and † "
            "where the line is continued beyond its models."
        )
    return " ".join(said)


def _cell(row: dict[Any, Any] | None) -> tuple[str, str]:
    """A number and its interval."""
    if row is None or np.isnan(row["value"]):
        return "--", ""
    number = _number(row["value"], sign="+" if row["measure"] == RHO else "")
    if row["is_best"]:
        number = rf"\textbf{{{number}}}"
    elif row["is_among_best"]:
        number = rf"\textit{{{number}}}"
    if row["is_extrapolated"]:
        number += escape("†")
    if np.isnan(row["ci_low"]) or np.isnan(row["ci_high"]):
        return number, ""
    return number, rf"{{\tiny [{_number(row['ci_low'])}, {_number(row['ci_high'])}]}}"


def _number(value: float, *, sign: str = "") -> str:
    return f"{value:{sign}.2f}".replace("-", "$-$").replace("+", "$+$")


def _title(setting: str, measure: str) -> str:
    return r"$\rho$" if measure == RHO else stacked(_name(setting))


def _name(setting: str) -> str:
    """What a column is called: the paper's name of a shift, or the setting's own."""
    if setting == "val":
        return "ImageNet"
    return _PAIRS[setting].title.partition(" (")[0] if setting in _PAIRS else setting
