"""A contact sheet: one picture under corruptions, in rows, at their severities, in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np
from plotting.drawing.picture import Picture

from testbed.errors import UnknownNameError
from testbed.metrics.corruption import in_order
from testbed.perturbations.corruptions.corrupt import Corrupt, Output
from testbed.perturbations.corruptions.corruption import NUM_SEVERITIES, Corruption

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from torch import Tensor

    Row = list[tuple[Corrupt, Tensor]]  # by severity: what is done to the picture, and what comes out

CELL, LABELS, HEADER = 0.97, 0.95, 0.25  # inches: a picture's width at most, the names beside, the numbers above
TALLEST = 9.0  # inches, that a page has room for above a caption
DOTS = 300.0  # in an inch, unless pixels are smaller
GAP = 0.03  # between pictures, of their width
VISIBLE = 0.5 / 255  # half a grey level
COLUMNS = ("clean", *map(str, range(1, NUM_SEVERITIES + 1)))


def chosen(known: Mapping[str, Corruption], patterns: Sequence[str]) -> list[Corruption]:
    """The corruptions of these names or globs, all without any, in the order of the benchmark.

    Raises: UnknownNameError: a pattern matches nothing.
    """
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise UnknownNameError(f"No corruption matches '{pattern}'. There are {', '.join(known)}.")
    wanted = patterns or ("*",)
    return [known[name] for name in in_order(known) if any(fnmatchcase(name, pattern) for pattern in wanted)]


def corrupted(picture: Picture, corruption: Corruption, *, table: str | None, output: Output) -> Row:
    """The picture under a corruption at each of its severities.

    Args: table: whose parameters; None for those of the picture's size.
    Raises: DefinitionError: the corruption does not have that table.
    """
    if not corruption.has_severities:
        table = None
    row: Row = []
    for severity in range(1, NUM_SEVERITIES + 1) if corruption.has_severities else (None,):
        what = Corrupt(corruption=corruption, severity=severity, table=table, output=output).at_size(*picture.size)
        row.append((what, what(picture.pixels, keys=picture.keys)))
    return row


def numbers_of(picture: Picture, rows: Sequence[Row]) -> pd.DataFrame:
    """For each corrupted picture its parameters, by how much of the range [0, 1] its values moved, and how many did."""
    import pandas as pd

    found = []
    for corrupt, pixels in (cell for row in rows for cell in row):
        change = pixels.double() - picture.pixels
        arguments = corrupt.parameters(*picture.size)
        found.append({
            "corruption": corrupt.corruption.name,
            "group": corrupt.corruption.group,
            "severity": corrupt.severity,
            "table": corrupt.table,
            "parameters": " ".join(f"{name}={value}" for name, value in arguments.items()),
            "output": corrupt.output,
            "mean_change": round(float(change.mean()), 6),
            "mean_absolute_change": round(float(change.abs().mean()), 6),
            "changed_percent": round(100 * float((change.abs() >= VISIBLE).double().mean()), 2),
        })  # fmt: skip
    return pd.DataFrame(found).astype({"severity": "Int64"})


def caption(picture: Picture, numbers: pd.DataFrame, *, is_by_size: bool, seed: int) -> str:
    """What the sheet shows."""
    (height, width), channels = picture.size, picture.pixels.shape[1]
    tables = " and ".join(numbers["table"].dropna().unique()) or "none"
    plain = numbers.loc[numbers["severity"].isna(), "corruption"]
    same = numbers[numbers["changed_percent"] == 0]
    severities = same["severity"].astype(object).fillna("")  # none where there are none
    unchanged = ", ".join(f"{name} {level}".strip() for name, level in zip(same["corruption"], severities, strict=True))
    exception = f" ({', '.join(plain)}: no severities, one picture)" if len(plain) else ""
    return (
        f"Corruptions of {picture.source}, {height} x {width} pixels, {'colour' if channels == 3 else 'one channel'}, "
        f"the clean picture first, then severity 1 to 5{exception}. Parameters: {tables}"
        f"{', by size' if is_by_size else ''}. Output: {numbers['output'].iloc[0]}. Seed {seed}. n = 1 picture."
        f"{f' Unchanged to half a grey level: {unchanged}.' if unchanged else ''}"
    )


def sheet_size(picture: Picture, num_rows: int) -> tuple[float, float]:
    """Width and height in inches: of a page at most."""
    row = picture.size[0] / picture.size[1] + GAP  # over the width of a picture
    cell = min(CELL, (TALLEST - HEADER) / (num_rows * row))
    return LABELS + len(COLUMNS) * cell, HEADER + num_rows * cell * row


def sheet_resolution(picture: Picture, width: float) -> float:
    """Dots per inch at which no pixel is lost. Args: width: of `sheet_size`."""
    return max(DOTS, picture.size[1] * len(COLUMNS) / (width - LABELS))


def draw_sheet(axes: Axes, picture: Picture, rows: Sequence[Row]) -> None:
    """Draws the pictures side by side, with a row for each corruption."""
    height, width = picture.size
    gap = max(1, round(GAP * width))
    across, down = width + gap, height + gap
    sheet = np.ones((len(rows) * down, len(COLUMNS) * across, 3), np.float32)
    for y, row in enumerate(rows):
        for x, pixels in enumerate([picture.pixels, *(pixels for _, pixels in row)]):
            sheet[y * down :, x * across :][:height, :width] = pixels[0].movedim(0, 2).numpy()
    axes.imshow(sheet[:-gap, :-gap])
    axes.set_xticks(np.arange(len(COLUMNS)) * across + (width - 1) / 2, COLUMNS)
    axes.set_yticks(np.arange(len(rows)) * down + (height - 1) / 2, [row[0][0].corruption.name for row in rows])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
