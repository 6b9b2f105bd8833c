"""Whether a store holds what was written to it, and the repair of what can be computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, LargeBinary, Select, delete, func, select, type_coerce, update

from testbed.codec import checksum
from testbed.errors import StoreError
from testbed.logit_policy import NO_LOGITS
from testbed.store import progress, sqlite
from testbed.store.reader import Reader
from testbed.store.schema import (
    datasets,
    eval_settings,
    evaluations,
    logit_payloads,
    logit_shards,
    model_versions,
    models,
    setting_versions,
)
from testbed.store.store import Store
from testbed.store.versions import digest

AT_ONCE = 8  # shards in memory


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that is not as it was written.

    Args:
        text: a sentence for the user.
        evaluation_id: that can be completed by evaluating what is missing; None where nothing can be computed again.
        shard: (draw, start) of the piece that is damaged; None where pieces are missing.
    """

    text: str
    evaluation_id: int | None = None
    shard: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What was looked at and what was found."""

    num_evaluations: int
    num_shards: int
    findings: tuple[Finding, ...]


def verify(store: Reader) -> Verification:
    """Reads everything in the store: the file's own structure, references, checksums, planned against stored."""
    checks = (_structure, _data, _settings, _shards, _complete)
    found = [finding for check in checks for finding in _gathered(store, check)]
    with store.reading() as connection:
        counts = [
            connection.scalar(select(func.count()).select_from(table)) or 0 for table in (evaluations, logit_shards)
        ]
    return Verification(num_evaluations=counts[0], num_shards=counts[1], findings=tuple(found))


def repair(store: Store, findings: Iterable[Finding]) -> int:
    """Deletes damaged pieces and opens their evaluations again; returns how many evaluations are to be run again.

    The same `eval.py` command then computes just what is missing.
    """
    repairable = [finding for finding in findings if finding.evaluation_id is not None]
    ids = {finding.evaluation_id for finding in repairable}
    with store.writing() as connection:
        for finding in repairable:
            if finding.shard is not None:
                key = (logit_shards.c.evaluation_id, logit_shards.c.draw, logit_shards.c.start)
                is_it = [c == v for c, v in zip(key, (finding.evaluation_id, *finding.shard), strict=True)]
                connection.execute(delete(logit_shards).where(*is_it))
        changes = {"status": "running", "completed_at": None, "reason": "damaged pieces were taken out by a repair"}
        is_done = evaluations.c.id.in_(ids) & (evaluations.c.status == "complete")
        connection.execute(update(evaluations).where(is_done).values(changes))
    return len(ids)


def _gathered(store: Reader, check: Callable[[Connection], Iterator[Finding]]) -> list[Finding]:
    """The findings of one check, up to where the database cannot be read any further."""
    found: list[Finding] = []
    try:
        with store.reading() as connection:
            found.extend(check(connection))
    except StoreError as error:
        found.append(Finding(text=str(error)))
    return found


def _structure(connection: Connection) -> Iterator[Finding]:
    for problem in sqlite.problems(connection):
        yield Finding(text=problem)


def _data(connection: Connection) -> Iterator[Finding]:
    columns = datasets.c["name", "split", "n", "sample_ids", "sha256"]
    for row in _stream(connection, select(*columns, type_coerce(datasets.c.targets, LargeBinary).label("targets"))):
        if digest(row.targets, row.sample_ids) != row.sha256 or len(row.targets) != 4 * row.n:
            yield Finding(
                text=f"Targets or sample ids of data set '{row.name}' ({row.split}) are not those that were written. "
                "Restore the database from a copy."
            )


def _settings(connection: Connection) -> Iterator[Finding]:
    indices = type_coerce(setting_versions.c.sample_indices, LargeBinary).label("indices")
    wanted = select(eval_settings.c.name, setting_versions.c.sample_indices_sha256.label("sha256"), indices)
    for row in _stream(connection, wanted.join_from(eval_settings, setting_versions).where(indices.is_not(None))):
        if digest(row.indices) != row.sha256:
            yield Finding(
                text=f"The sample indices of setting '{row.name}' are not those that were written. "
                "Restore the database from a copy."
            )


def _shards(connection: Connection) -> Iterator[Finding]:
    labels = [type_coerce(logit_shards.c[name], LargeBinary).label(name) for name in ("predictions", "target_ranks")]
    wanted = (
        _named(select(*logit_shards.c["draw", "start", "stop", "codec", "sha256", "labels_sha256"], *labels))
        .add_columns(logit_payloads.c.payload)
        .join(logit_shards, logit_shards.c.evaluation_id == evaluations.c.id)
        .outerjoin(
            logit_payloads,
            (logit_payloads.c.evaluation_id == logit_shards.c.evaluation_id)
            & (logit_payloads.c.draw == logit_shards.c.draw)
            & (logit_payloads.c.start == logit_shards.c.start),
        )
    )
    for row in _stream(connection, wanted):
        what = None
        if digest(row.predictions, row.target_ranks) != row.labels_sha256:
            what = "predictions or ranks"
        elif row.payload is None and row.codec != NO_LOGITS:
            what = "logits (they are gone)"
        elif row.payload is not None and checksum(row.payload) != row.sha256:
            what = "logits (checksum)"
        if what is not None:
            text = f"{_name(row)}: {what} of draw {row.draw}, samples {row.start} to {row.stop}, are damaged."
            yield Finding(text=text, evaluation_id=row.id, shard=(row.draw, row.start))


def _complete(connection: Connection) -> Iterator[Finding]:
    for row in connection.execute(_named(select()).where(evaluations.c.status == "complete")).all():
        if missing := progress.evaluation_state(connection, row.id).missing():
            text = f"{_name(row)} is marked complete, but {len(missing)} of its planned pieces are not stored."
            yield Finding(text=text, evaluation_id=row.id)


def _named(wanted: Select[Any]) -> Select[Any]:
    """Adds the id of the evaluation and the names of its model and setting."""
    return (
        wanted.add_columns(evaluations.c.id, models.c.name.label("model"), eval_settings.c.name.label("setting"))
        .select_from(evaluations)
        .join(model_versions)
        .join(models)
        .join(setting_versions, evaluations.c.setting_version_id == setting_versions.c.id)
        .join(eval_settings)
    )


def _stream(connection: Connection, wanted: Select[Any]) -> Iterator[Any]:
    with connection.execute(wanted.execution_options(yield_per=AT_ONCE)) as rows:
        yield from rows


def _name(row: Any) -> str:
    return f"Evaluation {row.id} ('{row.model}' on '{row.setting}')"
