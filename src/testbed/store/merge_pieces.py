"""Merging the pieces of one evaluation: whether two are the same, and taking over those that are missing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, select, update

from testbed.codec import checksum, decode
from testbed.logit_policy import detail, keeps_all
from testbed.records import Shard, ShardRange
from testbed.store import progress
from testbed.store.columns import int32_bytes
from testbed.store.reader import Reader
from testbed.store.schema import evaluations, logit_payloads, logit_shards
from testbed.store.store import Store
from testbed.store.versions import digest

BATCH_BYTES = 32 << 20  # of logits in one transaction

Place = tuple[int, int]  # draw and start of a piece


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What tells two pieces apart, without their arrays."""

    draw: int
    start: int
    stop: int
    codec: str
    num_outputs: int
    sha256: str
    labels_sha256: str


def stored_pieces(connection: Connection, evaluation_id: int) -> dict[Place, Piece]:
    """The stored pieces of an evaluation by draw and start."""
    columns = logit_shards.c["draw", "start", "stop", "codec", "num_outputs", "sha256", "labels_sha256"]
    rows = connection.execute(select(*columns).where(logit_shards.c.evaluation_id == evaluation_id))
    return {(row.draw, row.start): Piece(**row._mapping) for row in rows}


def wanted_places(ours: Mapping[Place, Piece], theirs: Mapping[Place, Piece]) -> list[Place]:
    """Where the other store holds a piece that ours lacks, or keeps more of its logits."""
    return [
        place for place, piece in theirs.items() if place not in ours or detail(ours[place].codec) < detail(piece.codec)
    ]


def conflict(
    here: Connection,
    there: Connection,
    known: Row[Any],
    found: Row[Any],
    ours: Mapping[Place, Piece],
    theirs: Mapping[Place, Piece],
) -> str:
    """Why an evaluation cannot be merged with ours; empty where it can."""
    if known.n != found.n:
        return f"it has {known.n} samples here and {found.n} there"
    if ours and theirs and known.shard_size != found.shard_size:
        return f"it is stored in pieces of {known.shard_size} samples here and of {found.shard_size} there"
    shared = sorted(ours.keys() & theirs.keys())
    differing = [p for p in shared if not _is_same(here, there, known.id, found.id, ours[p], theirs[p])]
    if not differing:
        return ""
    first = ours[differing[0]]
    return (
        f"{len(differing)} of {len(shared)} pieces that both stores hold differ, the first is draw {first.draw}, "
        f"samples {first.start} to {first.stop}"
    )


def _is_same(here: Connection, there: Connection, ours_id: int, theirs_id: int, ours: Piece, theirs: Piece) -> bool:
    """Whether two pieces hold the same: equal bytes, or equal numbers that were encoded in other ways."""
    if (ours.stop, ours.labels_sha256) != (theirs.stop, theirs.labels_sha256):
        return False
    if detail(ours.codec) != detail(theirs.codec):
        return True  # one keeps less of the logits; the labels, which are exact in both, are the same
    if (ours.codec, ours.sha256) == (theirs.codec, theirs.sha256):
        return True
    if not (keeps_all(ours.codec) and keeps_all(theirs.codec) and ours.num_outputs == theirs.num_outputs):
        return False
    return np.array_equal(_logits(here, ours_id, ours), _logits(there, theirs_id, theirs), equal_nan=True)


def _logits(connection: Connection, evaluation_id: int, piece: Piece) -> Any:
    where = (logit_payloads.c.draw == piece.draw) & (logit_payloads.c.start == piece.start)
    payload = connection.scalar(
        select(logit_payloads.c.payload).where(logit_payloads.c.evaluation_id == evaluation_id, where)
    )
    return decode(payload or b"", codec=piece.codec, num_outputs=piece.num_outputs)


def copy_pieces(
    ours: Store, theirs: Reader, *, source: Row[Any], target_id: int, places: Collection[Place], name: str
) -> list[str]:
    """Stores pieces of theirs with our evaluation, a few megabytes at a time; returns what was damaged there.

    The evaluation stays what it is meanwhile, complete or not.

    Args:
        source: their evaluation.
        target_id: id of ours.
        places: of the pieces that are wanted.
        name: of the evaluation, for sentences.
    """
    damaged: list[str] = []
    batch: list[Shard] = []
    for shard in _shards(theirs, source, places, name, damaged):
        batch.append(shard)
        if sum(len(one.payload) for one in batch) >= BATCH_BYTES:
            _put(ours, source, target_id, batch)
            batch = []
    _put(ours, source, target_id, batch)
    return damaged


def _put(ours: Store, source: Row[Any], target_id: int, batch: Sequence[Shard]) -> None:
    if not batch:
        return
    is_it = evaluations.c.id == target_id
    with ours.writing() as here:
        planned = here.execute(select(evaluations.c.num_draws).where(is_it)).scalar_one()
        draws = max(planned, *(shard.where.draw + 1 for shard in batch))
        # Pieces of draws that are not planned may be stored, but are refused: they are planned for this moment.
        here.execute(update(evaluations).where(is_it).values(num_draws=draws, shard_size=source.shard_size))
        progress.put_shards(here, [(target_id, shard) for shard in batch])
        here.execute(update(evaluations).where(is_it).values(num_draws=planned))


def _shards(
    theirs: Reader, source: Row[Any], places: Collection[Place], name: str, damaged: list[str]
) -> Iterator[Shard]:
    statement = (
        select(logit_shards, logit_payloads.c.payload)
        .outerjoin_from(logit_shards, logit_payloads)
        .where(logit_shards.c.evaluation_id == source.id)
        .order_by(logit_shards.c.draw, logit_shards.c.start)
        .execution_options(yield_per=1)
    )
    with theirs.reading() as there, there.execute(statement) as rows:
        for row in rows:
            if (row.draw, row.start) not in places:
                continue
            payload = row.payload or b""
            labels = digest(int32_bytes(row.predictions), int32_bytes(row.target_ranks))
            if (checksum(payload), labels) != (row.sha256, row.labels_sha256):
                damaged.append(
                    f"{name}: draw {row.draw}, samples {row.start} to {row.stop} are damaged there (checksum) "
                    "and were not taken"
                )
                continue
            fields = ("predictions", "target_ranks", "codec", "num_outputs", "sha256", "num_nonfinite", "batch_size",
                      "seconds", "worker")  # fmt: skip
            where = ShardRange(draw=row.draw, start=row.start, stop=row.stop)
            yield Shard(where=where, payload=payload, **{field: row._mapping[field] for field in fields})
