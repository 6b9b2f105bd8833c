"""What the numbers of effective robustness do not say themselves, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 3  # models in a note


def left_out(table: pd.DataFrame, reason: str) -> list[str]:
    """A sentence on models of the fit set that the line is not fitted on; none without any."""
    return [f"The line is not fitted on {few(list(table['entry']))}: {reason}."] if len(table) else []


def without_place(table: pd.DataFrame, x: str, scale: str) -> list[str]:
    """A sentence on models that have no place on x and are therefore in no table."""
    reason = f"{x} is 0 or 100 %, which has no place on the {scale} scale"
    return [f"{few(list(table['entry']))} is left out: {reason}."] if len(table) else []


def notes_of(table: pd.DataFrame) -> list[str]:
    """Sentences on mixed ways of measuring, on intervals that lack an error, and on extrapolation.

    Args: table: with `is_extrapolated`, as `results.effective` makes it, or some of its rows.
    """
    notes = [*_mixed(table, "protocol", "protocols"), *_mixed(table, "input_size", "input sizes")]
    for axis in ("x", "y"):
        unknown = list(table.loc[table[f"{axis}_n"].isna(), "entry"])
        if unknown:
            notes.append(
                f"How many images stand behind {axis} is unknown for {few(unknown)}: it is taken to be that of the "
                "models of the fit."
            )
    beyond = list(table.loc[table["is_extrapolated"], "entry"])
    return [*notes, f"The line is extrapolated for {few(beyond)}."] if beyond else notes


def doubtful(flagged: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    """A sentence for each setting on models of the table with published numbers that are marked as suspect.

    Args: flagged: with `eval_setting`, `entry` and `flag`.
    """
    found = flagged[flagged["entry"].isin(table["entry"])].groupby("eval_setting", sort=False)
    return [
        f"{setting} is published but doubtful, in whole or in part, for {few(list(rows['entry']))}: "
        f"{'; '.join(sorted(rows['flag'].unique()))}."
        for setting, rows in found
    ]


def shared_error(kept: float) -> list[str]:
    """A sentence where models lie closer together than their errors of measurement, taken one by one, would allow.

    Args: kept: of `metrics.spread.Spread`.
    """
    if kept > 0.95:
        return []
    return [
        f"Models differ by {100 * kept:.0f} % of the variance that images of their own would give: measured on the "
        "same images, they err together. Intervals are those of one more model measured on these images."
    ]


def _mixed(table: pd.DataFrame, column: str, words: str) -> list[str]:
    known = sorted(map(str, table[column].dropna().unique()))
    return [f"Models were measured with several {words}: {few(known)}."] if len(known) > 1 else []


def sources_of(table: pd.DataFrame) -> list[str]:
    """A sentence on whose results are compared, and how many of each the line is fitted on; none for one source.

    Args: table: with `is_fit`.
    """
    counts = table.groupby(table["source"].astype("string").fillna("own evaluations"), sort=True)["is_fit"].agg(
        ["size", "sum"]
    )
    if len(counts) < 2:
        return []
    parts = [f"{name}, {row['size']} models, {row['sum']} of the fit" for name, row in counts.iterrows()]
    return [f"Results of several sources are compared: {'; '.join(parts)}."]


def few(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
