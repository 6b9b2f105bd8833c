"""Whether a store holds what was written to it, and the repair of what can be computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, LargeBinary, Row, Select, Table, delete, func, inspect, select, type_coerce, update

from testbed.codec import CODECS, decode
from testbed.errors import StoreError
from testbed.logit_policy import NO_LOGITS, keeps_all, read_top
from testbed.store import digests, progress, sqlite
from testbed.store.reader import Reader
from testbed.store.schema import (
    datasets,
    eval_settings,
    evaluations,
    logit_payloads,
    logit_shards,
    metadata,
    metrics,
    model_versions,
    models,
    separations,
    setting_versions,
)
from testbed.store.store import Store
from testbed.store.versions import is_as_written, label_bytes
from testbed.store.views import planned_ranges

AT_ONCE = 8  # shards in memory
_SHARD_COLUMNS = ("draw", "start", "stop", "codec", "num_outputs", "sha256", "labels_sha256")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that is not as it was written.

    Args:
        text: a sentence for the user.
        evaluation_id: that can be completed by evaluating what is missing; None where nothing can be computed again.
        shard: (draw, start) of the piece that is damaged; None where pieces are missing.
        metrics_of: the evaluation whose metrics are to be computed again from what is stored; else None.
        separation_id: a row of separations that is damaged, and is computed again once it is gone; else None.
    """

    text: str
    evaluation_id: int | None = None
    shard: tuple[int, int] | None = None
    metrics_of: int | None = None
    separation_id: int | None = None

    @property
    def can_be_mended(self) -> bool:
        """Whether what is wrong can be computed again."""
        return any(of is not None for of in (self.evaluation_id, self.metrics_of, self.separation_id))


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What was looked at and what was found."""

    num_evaluations: int
    num_shards: int
    findings: tuple[Finding, ...]


def verify(store: Reader) -> Verification:
    """Reads every piece in the store: the file's structure, references, checksums, payloads, planned against stored.

    Raises: StoreError: a table or a column is missing, so that nothing can be looked at.
    """
    _check_tables(store)
    checks = (_structure, _rows, _data, _settings, _shards, _planned)
    found = [finding for check in checks for finding in _gathered(store, check)]
    with store.reading() as connection:
        counts = [
            connection.scalar(select(func.count()).select_from(table)) or 0 for table in (evaluations, logit_shards)
        ]
    return Verification(num_evaluations=counts[0], num_shards=counts[1], findings=tuple(found))


def repair(store: Store, findings: Iterable[Finding]) -> int:
    """Deletes damaged pieces and opens their evaluations again; returns how many evaluations are to be run again.

    Damaged separations are deleted too: what asks for one computes it again. The same `eval.py` command then computes
    just what is missing.
    """
    findings = list(findings)
    damaged = [finding.separation_id for finding in findings if finding.separation_id is not None]
    repairable = [finding for finding in findings if finding.evaluation_id is not None]
    ids = {finding.evaluation_id for finding in repairable}
    with store.writing() as connection:
        connection.execute(delete(separations).where(separations.c.id.in_(damaged)))
        for finding in repairable:
            if finding.shard is not None:
                key = (logit_shards.c.evaluation_id, logit_shards.c.draw, logit_shards.c.start)
                is_it = [c == v for c, v in zip(key, (finding.evaluation_id, *finding.shard), strict=True)]
                connection.execute(delete(logit_shards).where(*is_it))
        changes = {"status": "running", "completed_at": None, "reason": "damaged pieces were taken out by a repair"}
        is_done = evaluations.c.id.in_(ids) & (evaluations.c.status == "complete")
        connection.execute(update(evaluations).where(is_done).values(changes))
    return len(ids)


def _check_tables(store: Reader) -> None:
    with store.reading() as connection:
        there = inspect(connection)
        names = set(there.get_table_names())
        missing = [f"table '{name}'" for name in metadata.tables if name not in names]
        for table in metadata.tables.values():
            if table.name in names:
                columns = {column["name"] for column in there.get_columns(table.name)}
                missing += [f"column '{table.name}.{name}'" for name in {c.name for c in table.c} - columns]
    if missing:
        raise StoreError(f"The database {store.url} has no {', no '.join(missing)}. Restore it from a copy.")


def _gathered(store: Reader, check: Callable[[Connection], Iterator[Finding]]) -> list[Finding]:
    """The findings of one check, up to where the database cannot be read any further."""
    found: list[Finding] = []
    try:
        with store.reading() as connection:
            found.extend(check(connection))
    except StoreError as error:
        found.append(Finding(text=str(error)))
    except (TypeError, ValueError) as error:  # a column holds what its type cannot be: SQLite lets it
        found.append(Finding(text=f"A value in the database cannot be read ({error}). Restore it from a copy."))
    return found


def _structure(connection: Connection) -> Iterator[Finding]:
    for problem in sqlite.problems(connection):
        yield Finding(text=problem)


def _rows(connection: Connection) -> Iterator[Finding]:
    """Rows against their digests, but for the pieces of evaluations, which are looked at as a whole."""
    for table in digests.DIGESTED:
        if table is not logit_shards:
            for row in digests.damaged_rows(connection, table):
                yield _of_row(table, row)
    for evaluation_id in connection.scalars(select(evaluations.c.id).where(digests.miscounts_metrics())):
        text = f"Metrics of evaluation {evaluation_id} are gone, or were not written by the testbed."
        yield Finding(text=f"{text} {digests.REMEDIES[metrics]}", metrics_of=evaluation_id)


def _of_row(table: Table, row: Row[Any] | str) -> Finding:
    text = digests.sentence(table, row)
    if isinstance(row, str):
        return Finding(text=text)
    if table is metrics:
        return Finding(text=text, metrics_of=row.evaluation_id)
    return Finding(text=text, separation_id=row.id if table is separations else None)


def _data(connection: Connection) -> Iterator[Finding]:
    columns = datasets.c["name", "split", "n", "sample_ids", "sha256", "label_sets"]
    for row in _stream(connection, select(*columns, type_coerce(datasets.c.targets, LargeBinary).label("targets"))):
        parts = (row.targets, row.sample_ids, *label_bytes(row.label_sets))
        if not is_as_written(row.sha256, *parts) or len(row.targets) != 4 * row.n:
            yield Finding(
                text=f"Targets, sample ids or label sets of data set '{row.name}' ({row.split}) are not those that "
                "were written. Restore the database from a copy."
            )


def _settings(connection: Connection) -> Iterator[Finding]:
    indices = type_coerce(setting_versions.c.sample_indices, LargeBinary).label("indices")
    wanted = select(eval_settings.c.name, setting_versions.c.sample_indices_sha256.label("sha256"), indices)
    for row in _stream(connection, wanted.join_from(eval_settings, setting_versions).where(indices.is_not(None))):
        if not is_as_written(row.sha256, row.indices):
            yield Finding(
                text=f"The sample indices of setting '{row.name}' are not those that were written. "
                "Restore the database from a copy."
            )


def _shards(connection: Connection) -> Iterator[Finding]:
    labels = [type_coerce(logit_shards.c[name], LargeBinary).label(name) for name in ("predictions", "target_ranks")]
    wanted = (
        _named(select(*logit_shards.c[_SHARD_COLUMNS], *labels))
        .add_columns(logit_payloads.c.payload)
        .join(logit_shards, logit_shards.c.evaluation_id == evaluations.c.id)
        .outerjoin(
            logit_payloads,
            (logit_payloads.c.evaluation_id == logit_shards.c.evaluation_id)
            & (logit_payloads.c.draw == logit_shards.c.draw)
            & (logit_payloads.c.start == logit_shards.c.start),
        )
    )
    damaged = {
        (row.evaluation_id, row.draw, row.start)
        for row in digests.damaged_rows(connection, logit_shards)
        if not isinstance(row, str)
    }
    for row in _stream(connection, wanted):
        try:
            what = _damage(row)
            if what is None and (row.id, row.draw, row.start) in damaged:
                what = "facts about the logits"
        except StoreError as error:  # sound, but a package that reads it is not installed
            yield Finding(text=f"{_name(row)}: {error}")
            continue
        if what is not None:
            text = f"{_name(row)}: {what} of draw {row.draw}, samples {row.start} to {row.stop}, are damaged."
            yield Finding(text=text, evaluation_id=row.id, shard=(row.draw, row.start))


def _damage(row: Any) -> str | None:
    """What of a shard is not as it was written; None where all is."""
    count = row.stop - row.start
    if not is_as_written(row.labels_sha256, row.predictions, row.target_ranks):
        return "predictions or ranks"
    if {len(row.predictions), len(row.target_ranks)} != {4 * count}:
        return f"predictions or ranks (they are not {count})"
    if row.codec not in CODECS and keeps_all(row.codec):
        return f"logits (unknown codec '{row.codec}')"
    if row.payload is None:
        return None if row.codec == NO_LOGITS else "logits (they are gone)"
    if not is_as_written(row.sha256, row.payload):
        return "logits (checksum)"
    return _undecodable(row, count)


def _undecodable(row: Any, count: int) -> str | None:
    """Why a payload that is as it was written is not the logits that its shard says; None where it is.

    Raises: StoreError: the package that decodes it is not installed.
    """
    try:
        found = _num_decoded(row)
    except StoreError:
        raise
    except Exception as error:  # each decoder has errors of its own
        return f"logits ({row.num_outputs} outputs as '{row.codec}': {' '.join(str(error).split())})"
    return None if found == count else f"logits (of {found} samples with {row.num_outputs} outputs)"


def _num_decoded(row: Any) -> int:
    """Samples in a payload."""
    if keeps_all(row.codec):
        return len(decode(row.payload, codec=row.codec, num_outputs=row.num_outputs))
    top = read_top(row.payload, codec=row.codec, num_outputs=row.num_outputs)
    if top.classes.size and top.classes.max() >= row.num_outputs:
        raise ValueError(f"there is a class {top.classes.max()}")
    return len(top.values)


def _planned(connection: Connection) -> Iterator[Finding]:
    """Stored and planned against each other, both ways."""
    for row in connection.execute(_named(select(evaluations.c.status))).all():
        state = progress.state_as_it_is(connection, row.id)
        num_draws = max((draw for draw, _, _ in state.stored), default=-1) + 1
        grid = planned_ranges(num_draws=num_draws, num_samples=state.num_samples, shard_size=state.shard_size)
        for draw, start, stop in sorted(state.stored - {(piece.draw, piece.start, piece.stop) for piece in grid}):
            text = f"{_name(row)}: samples {start} to {stop} of draw {draw} are no piece of what was planned."
            yield Finding(text=text, evaluation_id=row.id, shard=(draw, start))
        if row.status != "complete":
            continue
        if missing := state.missing():
            text = f"{_name(row)} is marked complete, but {len(missing)} of its planned pieces are not stored."
            yield Finding(text=text, evaluation_id=row.id)
        # An interrupted draw may outlive a later wish for fewer draws; a whole one cannot.
        broken = {piece.draw for piece in state.missing(num_draws=num_draws)}
        if beyond := set(range(state.num_draws, num_draws)) - broken:
            text = f"{_name(row)} has {state.num_draws} planned draw(s), but {len(beyond)} more are stored as a whole."
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
