"""Figures of effective robustness on natural shifts against what models do on a synthetic one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from plotting.drawing.comparison import Comparison
from plotting.drawing.rho_panels import (
    PEARSON_WORDS,
    draw_rho,
    entitle,
    label_sides,
    name_models,
    panel_height,
    panels,
    pearson,
)
from plotting.drawing.scatter import label_kinds, scale_axis
from plotting.drawing.shift_choice import MEASURES, Choice
from plotting.drawing.shifts import NATURAL, RHO, Robustness, robustness
from plotting.drawing.style import PAGE, add_legend, new_figure, plain, save

from testbed.errors import DataError
from testbed.shift_pairs import SHIFT_PAIRS

if TYPE_CHECKING:
    import pandas as pd


def draw_against(comparison: Comparison, out: Path, *, synthetic: str, against: str, choice: Choice) -> list[Path]:
    """Draws a panel for each natural shift, and returns the files.

    Args:
        synthetic: name of the shift on the x axis, in `SHIFT_PAIRS`.
        against: of MEASURES.
        choice: of the shifts on the y axes.
    Raises: TestbedError: there is no such shift, or no model with it and a natural one.
    """
    import pandas as pd

    found = robustness(comparison, choice, NATURAL, also=synthetic)
    shifts = [pair for pair in found.pairs if pair.name != synthetic]
    is_rho = against == MEASURES[0]
    tables = {pair.name: found.against(synthetic, pair.name, of="rho" if is_rho else "y") for pair in shifts}
    shown = pd.concat([table.assign(shift=name) for name, table in tables.items()], ignore_index=True)
    if shown.empty:
        raise DataError(f"No model has both the shift '{synthetic}' and one of {', '.join(tables)}. Name others.")
    title = SHIFT_PAIRS[synthetic].title
    with new_figure(width=PAGE, height=panel_height(len(shifts))) as figure:
        for axes, pair in zip(panels(figure, len(shifts)), shifts, strict=True):
            table = tables[pair.name]
            draw_rho(axes, table, found.highlighted, x_half=found.half_width(synthetic) if is_rho else None,
                     y_half=found.half_width(pair.name))  # fmt: skip
            if not is_rho:
                scale_axis(axes, "x", comparison.scale, table["x"])
            entitle(axes, plain(pair.title), pearson(table))
        label_sides(figure, f"{title}\n{'ρ (pp)' if is_rho else 'top-1 accuracy (%)'}", RHO)
        label_kinds(figure.axes[0], shown)
        add_legend(figure)
        for axes, table in zip(figure.axes, tables.values(), strict=True):
            name_models(axes, table, found.highlighted)
        path = comparison.path(out, f"effective-against-{synthetic}{'' if is_rho else '-accuracy'}")
        return save(figure, shown, path, caption=_caption(found, shown, title, is_rho=is_rho))


def _caption(found: Robustness, shown: pd.DataFrame, title: str, *, is_rho: bool) -> str:
    measure = "effective robustness ρ" if is_rho else "top-1 accuracy"
    return (
        f"Effective robustness ρ on other shifts against {measure} under: {title}. "
        f"{found.model_words(shown)} {found.line_words} {found.band_words} r: {PEARSON_WORDS}. "
        f"{found.image_words}"
    )
