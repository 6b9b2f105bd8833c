"""What the store knows of the data behind results: the sets themselves, and their separations."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from testbed.store import digests
from testbed.store.reader import Reader
from testbed.store.schema import datasets, separations, setting_versions


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """A data set that results are of.

    Args:
        n: samples of the split.
        num_classes: that it has names for.
        fingerprint: of pixels or files, targets and class names.
    """

    name: str
    split: str
    n: int
    num_classes: int
    fingerprint: str


def data_facts(store: Reader, setting_fingerprints: Collection[str]) -> list[DataFacts]:
    """The data sets of settings, by name and split."""
    wanted = (
        select(*datasets.c["name", "split", "n", "class_names", "fingerprint"], setting_versions.c.fingerprint)
        .select_from(datasets)
        .join(setting_versions, setting_versions.c.dataset_id == datasets.c.id)
        .order_by(datasets.c.name, datasets.c.split, datasets.c.fingerprint)
    )
    with store.reading() as connection:
        digests.check_settings(connection, setting_versions.c.fingerprint.in_(setting_fingerprints))
        rows = [tuple(row) for row in connection.execute(wanted)]
    found = {
        mark: DataFacts(name=name, split=split, n=n, num_classes=len(classes), fingerprint=mark)
        for name, split, n, classes, mark, setting in rows
        if setting in setting_fingerprints
    }
    return list(found.values())


def witness_of(store: Reader, dataset: str, norm: str, separation: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """How the nearest-neighbour classifier did within half of a separation; None where that is not stored.

    Args:
        separation: as the definition of a setting keeps it.
    Returns: as `testbed.separation.witness.Witness`, with sample ids for pairs.
    """
    is_it = (separations.c.dataset == dataset) & (separations.c.norm == norm)
    is_it &= separations.c.splits == "+".join(separation["splits"])
    is_it &= separations.c.num_points == separation["num_points"]
    with store.reading() as connection:
        digests.check(connection, separations, is_it)
        rows = connection.execute(select(*separations.c["min_distance", "detail"]).where(is_it)).all()
    found = [row.detail["witness"] for row in rows
             if row.min_distance == separation["min_distance"] and "witness" in row.detail]  # fmt: skip
    return found[0] if found else None
