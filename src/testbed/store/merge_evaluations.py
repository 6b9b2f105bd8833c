"""Merging evaluations: matched by their key, completed piece by piece, with the metrics that go with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from testbed.store import digests, findings, progress
from testbed.store.merge_overview import Held
from testbed.store.merge_pieces import Piece, Place, conflict, copy_pieces, stored_pieces, wanted_places
from testbed.store.merge_report import MergeReport
from testbed.store.reader import Reader
from testbed.store.schema import evaluations, metrics, model_versions, runs, setting_versions
from testbed.store.store import Store
from testbed.store.views import planned_ranges

_UNFINISHED = ("pending", "running", "partial", "failed")  # the later one says more, and stands after a merge


def merge_evaluation(
    ours: Store, theirs: Reader, known: Held | None, found: Held, report: MergeReport, *, is_dry_run: bool
) -> int | None:
    """Takes over what is missing of one evaluation; returns its id here, None where it could or should not be merged.

    Args:
        known, found: the evaluation in ours and in theirs.
    """
    before: Mapping[Place, Piece] = {}
    with ours.reading() as here, theirs.reading() as there:
        pieces = stored_pieces(there, found.row.id)
        if known is not None:
            before = stored_pieces(here, known.row.id)
            if reason := conflict(here, there, known.row, found.row, before, pieces):
                report.conflicts.append(f"{found.name}: {reason}")
                return None
    wanted = wanted_places(before, pieces)
    report.add("evaluations", int(known is None))
    report.add("pieces", len(wanted))
    report.same += int(known is not None and not wanted)
    if is_dry_run:
        return None
    target_id = _create(ours, theirs, found.row) if known is None else int(known.row.id)
    report.conflicts += copy_pieces(
        ours, theirs, source=found.row, target_id=target_id, places=set(wanted), name=found.name
    )
    with ours.writing() as here, theirs.reading() as there:
        _settle(here, there, None if known is None else known.row, found.row, target_id, report)
    return target_id


def fill_metrics(ours: Store, theirs: Reader, merged: Mapping[int, int], references: Mapping[int, int]) -> None:
    """Takes over the metrics and comparisons that are missing here, of evaluations that are complete on both sides.

    Args:
        merged: ids here by the ids there, of the evaluations to look at.
        references: the same for all evaluations that may have been compared with.
    """
    for found_id, known_id in merged.items():
        with ours.reading() as here, theirs.reading() as there:
            draws = _complete_draws(here, known_id)
            is_same = draws is not None and draws == _complete_draws(there, found_id)
            rows = _missing_metrics(here, there, known_id, found_id, references) if is_same else []
        if rows:
            with ours.writing() as here:
                here.execute(insert(metrics), rows)


def _version_ids(here: Connection, found: Row[Any]) -> tuple[int | None, int | None]:
    marks = ((model_versions, found.model_fingerprint), (setting_versions, found.setting_fingerprint))
    model, setting = (here.scalar(select(table.c.id).where(table.c.fingerprint == mark)) for table, mark in marks)
    return model, setting


def _create(ours: Store, theirs: Reader, found: Row[Any]) -> int:
    with ours.writing() as here, theirs.reading() as there:
        model, setting = _version_ids(here, found)
        own = {"id", "model_version_id", "setting_version_id", "run_id", "status", "completed_at", "digest"}
        row = {column.name: found._mapping[column.name] for column in evaluations.c if column.name not in own}
        row |= {"model_version_id": model, "setting_version_id": setting, "status": "pending"}
        row["run_id"] = _run(here, there, found.run_id)
        return int(here.execute(insert(evaluations).values(row).returning(evaluations.c.id)).scalar_one())


def _run(here: Connection, there: Connection, run_id: int | None) -> int | None:
    """Id here of the run that made an evaluation there."""
    run = there.execute(select(runs).where(runs.c.id == run_id)).one_or_none()
    if run is None:
        return None
    known = here.scalar(select(runs.c.id).where(runs.c.uuid == run.uuid))
    if known is None:
        row = {column.name: run._mapping[column.name] for column in runs.c if column.name not in ("id", "digest")}
        known = here.execute(insert(runs).values(row).returning(runs.c.id)).scalar_one()
    return int(known)


def _settle(
    here: Connection,
    there: Connection,
    known: Row[Any] | None,
    found: Row[Any],
    evaluation_id: int,
    report: MergeReport,
) -> None:
    """Gives a merged evaluation its number of draws, its status and its metrics."""
    before = [row for row in (known, found) if row is not None]
    whole = _whole_draws(here, evaluation_id)
    planned = max(row.num_draws for row in before)
    completed = [row.num_draws for row in before if row.status == "complete"]
    is_whole = whole >= planned or (bool(completed) and whole >= max(completed))
    changes: dict[str, Any] = {"num_draws": whole if is_whole else planned}
    changes["hidden"] = all(row.hidden for row in before)
    source = next((row for row in before if row.status == "complete" and row.num_draws == changes["num_draws"]), None)
    if is_whole and source is not None:
        changes |= {"status": "complete", "reason": "", "completed_at": source.completed_at}
    elif is_whole:
        changes |= {"status": "running", "reason": "", "completed_at": None}
        report.to_complete.append(evaluation_id)
    else:
        changes |= _unfinished(here, before, evaluation_id)
    is_it = evaluations.c.id == evaluation_id
    here.execute(update(evaluations).where(is_it).values(changes))
    if source is found:
        findings.forget_metrics(here, evaluation_id)
        if rows := _missing_metrics(here, there, evaluation_id, found.id, {}):
            here.execute(insert(metrics), rows)


def _whole_draws(here: Connection, evaluation_id: int) -> int:
    """How many draws, from the first on, are stored as a whole."""
    state = progress.evaluation_state(here, evaluation_id)
    most = 1 + max((draw for draw, _, _ in state.stored), default=-1)
    planned = planned_ranges(num_draws=most, num_samples=state.num_samples, shard_size=state.shard_size)
    missing = [where.draw for where in planned if (where.draw, where.start, where.stop) not in state.stored]
    return min(missing, default=most)


def _unfinished(here: Connection, before: Sequence[Row[Any]], evaluation_id: int) -> dict[str, Any]:
    states = [(_UNFINISHED.index(row.status), row.reason) for row in before if row.status in _UNFINISHED]
    rank, reason = max(states, default=(0, ""))
    has_pieces = bool(progress.evaluation_state(here, evaluation_id).stored)
    return {"status": _UNFINISHED[max(rank, int(has_pieces))], "reason": reason, "completed_at": None}


def _complete_draws(connection: Connection, evaluation_id: int) -> int | None:
    """How many draws its metrics are of; None where it is not complete."""
    row = connection.execute(select(evaluations).where(evaluations.c.id == evaluation_id)).one()
    return row.num_draws if row.status == "complete" else None


def _missing_metrics(
    here: Connection, there: Connection, known_id: int, found_id: int, references: Mapping[int, int]
) -> list[dict[str, Any]]:
    """Rows of metrics that are only there; comparisons only with what was merged."""
    names = set(here.scalars(select(metrics.c.name).where(metrics.c.evaluation_id == known_id)))
    rows = []
    digests.check(there, metrics, metrics.c.evaluation_id == found_id)
    for row in there.execute(select(metrics).where(metrics.c.evaluation_id == found_id)).mappings():
        reference = row["reference_evaluation_id"]
        if row["name"] not in names and (reference is None or reference in references):
            new = {"evaluation_id": known_id, "reference_evaluation_id": references.get(reference), "digest": None}
            rows.append({**row, **new})
    return rows
