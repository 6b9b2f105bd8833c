"""A store at a glance: its evaluations by key, with marks that tell in one pass which of them two stores hold alike."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select

from testbed.store import digests
from testbed.store.reader import Reader
from testbed.store.schema import (
    eval_settings,
    evaluations,
    logit_shards,
    metrics,
    model_versions,
    models,
    setting_versions,
)

Key = tuple[str, str, int, int, str]  # definitions, seeds and numerics: the same in every store


@dataclass(frozen=True, kw_only=True)
class Held:
    """An evaluation as a store holds it.

    Args:
        row: of the evaluation, with names and fingerprints of model and setting.
        pieces, metrics: equal for equal pieces and for metrics of equal names, within one process.
    """

    row: Row[Any]
    pieces: int
    metrics: int

    @property
    def key(self) -> Key:
        """What makes it the same evaluation in another store."""
        row = self.row
        return (
            row.model_fingerprint, row.setting_fingerprint, row.fit_seed, row.noise_seed, row.numerics_fingerprint,
        )  # fmt: skip

    @property
    def name(self) -> str:
        """The evaluation in words."""
        row = self.row
        return f"{row.model} on {row.setting} (fit seed {row.fit_seed}, noise seed {row.noise_seed})"

    def is_whole_and_same(self, other: Held) -> bool:
        """Whether both are complete, with the same pieces and labels."""
        ours, theirs = ((one.row.num_draws, one.row.hidden, one.pieces) for one in (self, other))
        return self.row.status == other.row.status == "complete" and ours == theirs


def overview(reader: Reader) -> dict[Key, Held]:
    """All evaluations of a store, in three queries."""
    with reader.reading() as connection:
        digests.check(connection, evaluations)
        pieces, names = _pieces(connection), _metric_names(connection)
        rows = connection.execute(
            select(
                evaluations,
                models.c.name.label("model"),
                eval_settings.c.name.label("setting"),
                model_versions.c.fingerprint.label("model_fingerprint"),
                setting_versions.c.fingerprint.label("setting_fingerprint"),
            )
            .select_from(evaluations)
            .join(model_versions)
            .join(models)
            .join(setting_versions, evaluations.c.setting_version_id == setting_versions.c.id)
            .join(eval_settings)
            .order_by(evaluations.c.id)
        )
        held = [Held(row=row, pieces=pieces[row.id], metrics=names[row.id]) for row in rows]
    return {one.key: one for one in held}


def _pieces(connection: Connection) -> dict[int, int]:
    columns = logit_shards.c["evaluation_id", "draw", "start", "codec", "sha256", "labels_sha256"]
    rows = connection.execute(select(*columns).execution_options(yield_per=1000))
    marks: dict[int, int] = defaultdict(int)
    for evaluation_id, *piece in rows:
        marks[evaluation_id] += hash(tuple(piece))  # a sum, for no order is asked of the database
    return marks


def _metric_names(connection: Connection) -> dict[int, int]:
    rows = connection.execute(select(metrics.c.evaluation_id, metrics.c.name).execution_options(yield_per=1000))
    marks: dict[int, int] = defaultdict(int)
    for evaluation_id, name in rows:
        marks[evaluation_id] += hash(name)
    return marks
