"""How a matrix of accuracies compares with a published one, whose values are read and compared and not kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from testbed.errors import DataError
from testbed.metrics.published import PUBLISHED_Z

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["test_eps", "train_eps", "acc_percent", "std_percent", "ci95_percent"]
MSCR = "MSCR"  # in the place of a test level


def read_published(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The accuracies and the MSCR row of a published matrix, with the columns of `plotting.drawing.matrix`.

    Args:
        path: a CSV with `COLUMNS`: means over runs in percent, their standard deviation, and the half width of their
            95 % interval; rows with 'MSCR' for a test level hold MSCR.
    Raises: DataError: it cannot be read, lacks a column, or has a cell twice.
    """
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype={"test_eps": str})
        if missing := [name for name in COLUMNS if name not in table]:
            raise DataError(f"{path} has no column {', '.join(missing)}. It needs {', '.join(COLUMNS)}.")
        table = table[COLUMNS].astype(dict.fromkeys(COLUMNS[1:], float))
        is_mscr = table["test_eps"] == MSCR
        cells = table[~is_mscr].astype({"test_eps": float})
    except (OSError, ValueError) as error:
        raise DataError(f"The published matrix {path} cannot be read: {error}.") from error
    if table.duplicated(COLUMNS[:2]).any():
        raise DataError(f"{path} has a cell twice. Leave one row for each test_eps and train_eps.")
    return cells, table[is_mscr].drop(columns="test_eps").rename(columns={"acc_percent": "mscr_percent"})


def compared(ours: pd.DataFrame, theirs: pd.DataFrame, value: str) -> pd.DataFrame:
    """`ours` with `z` and `std_ratio`, missing where the published table has no such cell or no deviation for it.

    Args:
        ours: cells of `plotting.drawing.matrix`.
        theirs: of `read_published`.
        value: 'acc_percent' or 'mscr_percent'.
    Returns: `z` is how many standard errors, those of both sides together, our mean is above the published one;
        `std_ratio` is our standard deviation over theirs.
    """
    known = _marked(theirs)[["mark", value, "std_percent", "ci95_percent"]]
    both = _marked(ours).merge(known, how="left", on="mark", suffixes=("", "_theirs"))
    error = np.hypot(both["ci95_percent"], both["ci95_percent_theirs"]) / PUBLISHED_Z
    z = (both[value] - both[f"{value}_theirs"]) / error
    return ours.assign(z=z.to_numpy(), std_ratio=(both["std_percent"] / both["std_percent_theirs"]).to_numpy())


def _marked(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with their levels to five digits: half a separation may be published as a float32."""
    levels = cells[[name for name in ("test_eps", "train_eps") if name in cells]]
    return cells.assign(mark=[" ".join(f"{level:.5g}" for level in row) for row in levels.to_numpy()])


def joint_picture(cells: pd.DataFrame, mscr: pd.DataFrame) -> str:
    """What all cells of `compared` say together: they share their runs, so counting those that agree says little."""
    lines, ratios = [_worst(cells)], cells["std_ratio"].dropna()
    if len(ratios):
        spread = f"median {ratios.median():.3f}, {ratios.min():.3f} to {ratios.max():.3f}"
        lines.append(f"Standard deviation of a run, ours / published: {spread}")
    return "\n".join([*lines, f"MSCR: {_worst(mscr)}"])


def _worst(cells: pd.DataFrame) -> str:
    known = cells.dropna(subset="z")
    if known.empty:
        return f"none of {len(cells)} cells has a published mean with a deviation to compare with"
    worst = known.iloc[int(known["z"].abs().argmax())]
    where = ", ".join(f"{name[:-4]} {worst[name]:.4g}" for name in ("test_eps", "train_eps") if name in known)
    return f"{len(known)} of {len(cells)} cells compared, worst |z| {abs(worst['z']):.2f} ({where})"
