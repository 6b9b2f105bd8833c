"""Small multiples: a panel for each corruption with a curve over severity for each model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from plotting.drawing.corruption_table import Corruptions
from plotting.drawing.style import PAGE, SMALL, looks, plain

from testbed.errors import TestbedError
from testbed.metrics.corruption import NUM_SEVERITIES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 5  # panels in a row
PANEL = 1.15  # inches: the height of one
BAND = 0.18  # opacity of an interval
FEW = 4  # models; the intervals of more are fainter, so that they do not hide the curves


def panels_of(stored: Corruptions) -> list[str]:
    """The corruptions with severities, in the order of the benchmark. Raises: TestbedError: there is none."""
    if not (names := [name for name, severity in stored.wanted if severity == NUM_SEVERITIES]):
        raise TestbedError(f"No corruption of {stored.found.dataset} that is stored has severities to draw over.")
    return names


def panels_size(count: int) -> tuple[float, float]:
    """Width and height of so many panels in inches."""
    across = min(ACROSS, count)
    return 0.6 + across * (PAGE - 0.6) / ACROSS, 0.3 + math.ceil(count / across) * PANEL


def draw_panels(figure: Figure, stored: Corruptions, names: Sequence[str]) -> None:
    """Draws a panel for each of these corruptions, on shared axes."""
    table = stored.table[stored.table["severity"].notna()]
    across = min(ACROSS, len(names))
    panels = figure.subplots(math.ceil(len(names) / across), across, squeeze=False, sharex=True, sharey=True).ravel()
    labels = {name: _label(stored, name) for name in stored.models}
    for axes, name in zip(panels, names, strict=False):
        _draw_panel(axes, table[table["corruption"] == name], labels)
        axes.set_title(name, fontsize=SMALL, pad=2)
    for axes in panels[len(names) :]:
        axes.remove()
    for axes in panels[max(0, len(names) - across) : len(names)]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("severity")
    figure.supylabel(stored.label, fontsize="medium")


def _draw_panel(axes: Axes, rows: pd.DataFrame, labels: dict[str, str]) -> None:
    opacity = BAND * min(1.0, FEW / len(labels))
    for model, look in looks(list(labels), size=3).items():
        own = rows[rows["model"] == model].set_index("severity").reindex(range(1, NUM_SEVERITIES + 1))
        axes.plot(own.index, own["value"], label=labels[model], **look)
        axes.fill_between(own.index, own["ci_low"], own["ci_high"], color=look["color"], alpha=opacity, linewidth=0)
    axes.set_xticks(range(1, NUM_SEVERITIES + 1))


def _label(stored: Corruptions, model: str) -> str:
    """A model with its clean accuracy, for the legend."""
    value = stored.clean[model].value
    return plain(model) if value is None else f"{plain(model)} (clean {value:.1f} %)"
