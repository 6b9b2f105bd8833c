"""The separation of a data set: histogram and cumulative share of the distances from other classes.

`db.py --separation DATASET --out DIR` draws it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from plotting.drawing.style import PALETTE, mark_separation, new_figure, save

from testbed.store.views import StoredSeparation

if TYPE_CHECKING:
    import pandas as pd


def draw_separation(found: StoredSeparation, path: Path, *, label: str, caption: str) -> list[Path]:
    """Draws how far samples are from the nearest one of another class; returns the paths of the files.

    Args:
        found: with its detail.
        path: of the files, without an ending.
        label: of the axis of distances, with the unit.
        caption: set under the figure.
    """
    table = distribution(found)
    edges = np.append(table["distance_from"], table["distance_to"].iloc[-1])
    with new_figure(height=3.0) as figure:
        counts, shares = figure.subplots(2, sharex=True)
        counts.stairs(table["samples"], edges, fill=True, color=PALETTE[0])
        counts.set_ylabel("samples")
        shares.step(edges[1:], table["cumulative_percent"], where="post", color=PALETTE[0])
        shares.set_yscale("log")
        shares.yaxis.set_major_formatter("{x:g}")
        shares.set_ylabel("samples within (%)")
        shares.set_xlabel(label)
        shares.set_xlim(0, edges[-1])
        for axes in (counts, shares):
            mark_separation(axes, found.epsilon_min)
        return save(figure, table, path, caption=caption)


def distribution(found: StoredSeparation) -> pd.DataFrame:
    """The stored distribution as a table: a row per bin, with the share of the samples up to its end."""
    import pandas as pd

    bins = found.detail["distribution"]
    counts = np.array(bins["counts"])
    edges = bins["start"] + bins["width"] * np.arange(len(counts) + 1)
    return pd.DataFrame({
        "distance_from": edges[:-1],
        "distance_to": edges[1:],
        "samples": counts,
        "cumulative_percent": 100 * counts.cumsum() / counts.sum(),
    })  # fmt: skip
