"""The grids of a store: one for each set of classes, since only its settings have models in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from plotting.drawing.comparison import Comparison
from plotting.drawing.corruption_table import half_width_sentence
from plotting.drawing.counts import counted
from plotting.drawing.grid_cells import Grid, draw_grid, grid_of
from plotting.drawing.setting_columns import Known, chosen, columns_of, known_settings, spaces_of
from plotting.drawing.style import new_figure, plain, save

from testbed.errors import TestbedError, UnknownNameError, suggestion

if TYPE_CHECKING:
    import pandas as pd

LONGEST = 300  # letters of why numbers are suspect


def spaces_to_draw(
    comparison: Comparison, patterns: Sequence[str], space: str | None
) -> Mapping[str, Sequence[Known]]:  # fmt: skip
    """The settings to show, by label space.

    Args:
        patterns: names and globs of settings; all without any.
        space: only this one; None for all.
    Raises: TestbedError: nothing is stored, with a command that would change it, or not what is asked for.
    """
    settings = known_settings(comparison.store, comparison.sources)
    if not settings:
        raise TestbedError(
            f"{comparison.store.url} holds no evaluation. Evaluate some: python eval.py --models digits-resnet "
            f"--eval-settings digits 'digits-c.*_in-memory' --db-url {comparison.store.url}; or import a published "
            f"grid with db.py --import-csv and name it with --with-published."
        )
    spaces = spaces_of(chosen(settings, patterns))
    if space is None:
        return spaces
    if space not in spaces:
        raise UnknownNameError(
            f"No setting to show has the label space '{space}'. {suggestion(space, spaces)} There are "
            f"{', '.join(spaces)}."
        )
    return {space: spaces[space]}


def draw_space(
    comparison: Comparison, out: Path, space: str, settings: Sequence[Known], *, is_aggregated: bool
) -> list[Path]:  # fmt: skip
    """Draws the grid of one label space, of the models that have any result there.

    Raises: TestbedError: none of the models that are asked for has.
    """
    from matplotlib import rcParams

    columns = columns_of(settings, is_aggregated=is_aggregated)
    points = comparison.shown(comparison.points([column.setting for column in columns]))
    if points.empty:
        raise TestbedError(
            f"No model named {' '.join(comparison.models)} has a result on settings of {space}. See "
            f"db.py --list-models-db."
        )
    grid = grid_of(points, columns)
    width, height = grid.size
    name = "-".join(filter(None, ["grid", "aggregated" if is_aggregated else "", space]))
    with new_figure(width=width, height=height) as figure:
        rcParams["savefig.dpi"] = grid.resolution  # of this figure alone
        draw_grid(figure, grid)
        return save(figure, _csv(points, grid), comparison.path(out, name), caption=_caption(comparison, points, grid))


def _csv(points: pd.DataFrame, grid: Grid) -> pd.DataFrame:
    """The points in the order of the picture, from the top to the bottom and then to the right."""
    rows = {entry: position for position, entry in enumerate(grid.values.index)}
    columns = {column.setting: position for position, column in enumerate(grid.columns)}
    places = points.assign(row=points["entry"].map(rows), column=points["eval_setting"].map(columns))
    return places.sort_values(["row", "column"], kind="stable").drop(columns=["row", "column"])


def _caption(comparison: Comparison, points: pd.DataFrame, grid: Grid) -> str:
    missing = 100 * float(grid.values.isna().to_numpy().mean())
    flagged = int(grid.is_flagged.to_numpy().sum())
    known = points["n"].dropna()
    n = f"n = {counted(known, 'sample')}" if len(known) else "n is not known"
    reasons = plain("; ".join(sorted(set(points["flag"].dropna()))), LONGEST)
    suspect = f" Crosses: {flagged:,} cells with a published number that is suspect ({reasons})."
    hatched = f" Hatched: no result ({missing:.1f} % of the cells)."
    return (
        f"Accuracy in percent of {comparison.source_words(points)} on {len(grid.columns):,} settings; {n}. "
        f"Models by their accuracy on {plain(grid.columns[0].setting)}.{hatched if missing else ''}"
        f"{suspect if flagged else ''}{half_width_sentence(points)}"
    )
