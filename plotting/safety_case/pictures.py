"""Figures of the other scripts as images inside a page: the same bytes for the same results."""

from __future__ import annotations

import base64
import glob
from io import BytesIO
from typing import TYPE_CHECKING, Any

from plotting.safety_case.document import Picture
from plotting.safety_case.evidence import Evidence, shift_of

from testbed.errors import TestbedError
from testbed.records import NORMS, Norm
from testbed.report import NORM_SYMBOLS
from testbed.results.corruption import DatasetGrids

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Nothing of the moment or the program goes into a file.
_METADATA: Any = {"Date": None, "Creator": None}


def picture(figure: Figure, *, alt: str, caption: str) -> Picture:
    """A figure of `plotting.drawing.style.new_figure`, still in its block, as a scalable image."""
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "testbed"  # names inside the file, random else
    stream = BytesIO()
    figure.savefig(stream, format="svg", metadata=_METADATA)
    encoded = base64.b64encode(stream.getvalue()).decode("ascii")
    uri, inches = f"data:image/svg+xml;base64,{encoded}", float(figure.get_figwidth())
    return Picture(uri=uri, inches=inches, alt=alt, caption=caption)


def corruption_picture(grids: DatasetGrids) -> Picture:
    """The heat map of `plotting/corruption_heatmap.py`."""
    from plotting.drawing.corruption_cells import draw_tables, tables_size
    from plotting.drawing.corruption_table import Corruptions, half_width_sentence
    from plotting.drawing.style import new_figure

    stored = Corruptions(found=grids, metric="A_rel_c")
    width, height = tables_size(stored)
    caption = (
        f"Of the images right when clean those still right (%) on {stored.source_words}: {stored.sample_words}. "
        f"Darker is smaller, hatched was not evaluated.{half_width_sentence(stored.table)}"
    )
    with new_figure(width=width, height=height) as figure:
        draw_tables(figure, stored)
        return picture(figure, alt="Heat map of corruptions and severities", caption=caption)


def noise_pictures(found: Evidence) -> list[Picture]:
    """A curve of accuracy over the noise level for each norm in which several levels are stored."""
    pictures = []
    for norm in NORMS:
        levels = {shift.epsilon for group in found.shifted
                  if (shift := shift_of(group)) and shift.family == f"uniform-{norm}"}  # fmt: skip
        if len(levels) > 1:
            pictures += _curve(found, norm)
    return pictures


def _curve(found: Evidence, norm: Norm) -> list[Picture]:
    """As `plotting/accuracy_over_noise.py`; none where its rules allow no such figure."""
    from plotting.drawing.selection import Selection
    from plotting.drawing.stored import stored
    from plotting.drawing.style import draw_curves, mark_separation, new_figure, plain

    wanted = Selection(
        norm=norm, dataset=found.dataset, models=[glob.escape(found.model)],
        num_samples=max(group[0].evaluation.n for group in found.plain or found.shifted),
    )  # fmt: skip
    try:
        shown = stored(found.store, wanted)
    except TestbedError:  # several numerics, say: the table has them one by one
        return []
    caption = (
        f"Top-1 accuracy under {shown.noise_words}: {shown.sample_words}. Bars are 95 % intervals."
        f"{shown.separation_sentence}"
    ).replace("ε$_{min}$", "ε_min")
    with new_figure(height=2.0) as figure:
        axes = figure.subplots()
        draw_curves(axes, shown.metrics("top1"), "epsilon", {model: plain(model) for model in shown.models})
        mark_separation(axes, shown.epsilon_min)
        axes.set_xlabel(f"noise level ε ({shown.unit})")
        axes.set_ylabel("top-1 accuracy (%)")
        alt = f"Accuracy over the level of uniform {NORM_SYMBOLS[norm]} noise"
        return [picture(figure, alt=alt, caption=caption)]
