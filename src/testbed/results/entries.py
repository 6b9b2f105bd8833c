"""What to call models in a table that holds some in several ways: by their names, and what tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd


class Way(NamedTuple):
    """A model as it was measured or published in one way; what does not apply is empty or 0."""

    model: str
    label_space: str
    source: str
    protocol: str
    input_size: int
    numerics: str


def with_entries(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the column `entry`, a label that is unique among them for each way that a model is in.

    Args: rows: of `testbed.results.point_rows`.
    """
    fields = list(Way._fields)
    ways = rows[fields].drop_duplicates()
    labels = entry_labels(list(map(Way._make, ways.itertuples(index=False, name=None))))
    return rows.merge(ways.assign(entry=labels), on=fields)


def entry_labels(ways: Sequence[Way]) -> list[str]:
    """A label for each of distinct ways, none twice."""
    twins: dict[str, list[Way]] = {}
    for way in ways:
        twins.setdefault(way.model, []).append(way)
    labels: dict[str, int] = {}
    for way in ways:
        label, number = _label(way, twins[way.model]), 1
        while (numbered := label if number == 1 else f"{label} #{number}") in labels:
            number += 1  # another model may be called what this label is
        labels[numbered] = number
    return list(labels)


def _label(way: Way, twins: Sequence[Way]) -> str:
    """The name, with each fact in which those of that name differ: by source, and then among those of one source."""
    siblings = [twin for twin in twins if twin.source == way.source]
    facts = [way.source] if len(siblings) < len(twins) else []
    told = (way.label_space, f"{way.input_size} px" * bool(way.input_size), way.protocol, way.numerics)
    names = ("label_space", "input_size", "protocol", "numerics")
    facts += [
        fact
        for name, fact in zip(names, told, strict=True)
        if len({getattr(twin, name) for twin in siblings}) > 1
    ]  # fmt: skip
    facts = [fact for fact in facts if fact]
    return f"{way.model} ({', '.join(facts)})" if facts else way.model
