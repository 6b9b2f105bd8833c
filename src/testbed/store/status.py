"""What is done: how many evaluations of each model are complete, failed or on their way, and who works on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, Integer, Select, cast, false, func, select

from testbed.store.lock import Holder, holder
from testbed.store.reader import Reader
from testbed.store.schema import eval_settings, evaluations, metrics, model_versions, models, runs, setting_versions
from testbed.store.versions import is_superseded
from testbed.store.views import FAILED_METRICS

STATES = ("complete", "partial", "failed", "running", "interrupted", "stale")


@dataclass(frozen=True, kw_only=True)
class ModelStatus:
    """Evaluations of one model by their state; those that were removed do not count.

    Args:
        counts: by each of `STATES`. Stale are those of earlier definitions, whatever became of them; of the others,
            running are those of the program that holds the database, and interrupted those that nobody works on.
    """

    model: str
    label_space: str
    counts: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """An evaluation that is not complete, or lacks its setting's metrics: its state, why, where and how it was run."""

    model: str
    eval_setting: str
    state: str
    reason: str
    host: str | None
    pid: int | None
    numerics: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Status:
    """The state of a whole store.

    Args:
        writer: who writes to it now; None for nobody.
        models: by name and label space.
        unfinished: no more than were asked for.
        without_metrics: complete, but the `metrics_fn` of their setting failed; no more than were asked for.
    """

    writer: str | None
    models: tuple[ModelStatus, ...]
    unfinished: tuple[Unfinished, ...]
    without_metrics: tuple[Unfinished, ...]

    def total(self, state: str) -> int:
        """Evaluations in one of `STATES`, over all models."""
        return sum(model.counts[state] for model in self.models)


def status(store: Reader, *, limit: int = 1000) -> Status:
    """The state of all evaluations: one indexed query counts them, another names the first that are not complete.

    Args:
        limit: of the unfinished evaluations that are named.
    """
    with store.reading() as connection:
        writer = holder(connection)
        active = None if writer is None else _active_run(connection, writer)
        counts = connection.execute(_counts(active)).all()
        versions = {row.id: row for row in connection.execute(_model_versions())}
        unfinished = [_unfinished(row, active) for row in connection.execute(_open_evaluations().limit(limit))]
        failed = connection.execute(_without_metrics().limit(limit)).all()
    return Status(
        writer=writer.owner if writer else None,
        models=tuple(_by_model(counts, versions)),
        unfinished=tuple(unfinished),
        without_metrics=tuple(_unfinished(row, active) for row in failed),
    )


def _active_run(connection: Connection, writer: Holder) -> int | None:
    is_its = (runs.c.host == writer.host) & (runs.c.pid == writer.pid) & runs.c.finished_at.is_(None)
    latest: int | None = connection.scalar(select(func.max(runs.c.id)).where(is_its))
    return latest


def _counts(active: int | None) -> Select[Any]:
    """Evaluations of each model version and status: all, those of today's settings, and those in the active run."""
    is_current, run = ~is_superseded(setting_versions), evaluations.c.run_id
    removed = select(setting_versions.c.id).join(eval_settings).where(eval_settings.c.hidden)
    is_active = is_current & (run == active) if active is not None else false()
    return (
        select(
            *evaluations.c["model_version_id", "status"],
            func.count().label("all"),
            func.sum(cast(is_current, Integer)).label("current"),
            func.sum(cast(func.coalesce(is_active, false()), Integer)).label("active"),
        )
        .join_from(evaluations, setting_versions, evaluations.c.setting_version_id == setting_versions.c.id)
        .where(evaluations.c.hidden == false(), evaluations.c.setting_version_id.not_in(removed))
        .group_by(*evaluations.c["status", "model_version_id"])
    )


def _model_versions() -> Select[Any]:
    columns = (model_versions.c.id, models.c.name, models.c.label_space)
    is_current = (~is_superseded(model_versions)).label("is_current")
    return select(*columns, is_current).join_from(model_versions, models).where(models.c.hidden == false())


def _by_model(counts: Sequence[Any], versions: dict[int, Any]) -> Iterable[ModelStatus]:
    found: dict[tuple[str, str], Counter[str]] = {(row.name, row.label_space): Counter() for row in versions.values()}
    for row in counts:
        if (version := versions.get(row.model_version_id)) is None:
            continue  # of a model that was removed
        counter = found[version.name, version.label_space]
        current = int(row.current) if version.is_current else 0
        active = int(row.active) if version.is_current else 0
        counter["stale"] += row.all - current
        if row.status in ("pending", "running"):
            counter["running"] += active
            counter["interrupted"] += current - active
        else:
            counter[row.status] += current
    for (name, label_space), counter in sorted(found.items()):
        yield ModelStatus(model=name, label_space=label_space, counts={state: counter[state] for state in STATES})


def _open_evaluations() -> Select[Any]:
    return _evaluations(evaluations.c.reason).where(
        evaluations.c.status.in_(("pending", "running", "partial", "failed"))
    )


def _without_metrics() -> Select[Any]:
    has_failed = (metrics.c.name == FAILED_METRICS) & metrics.c.value.is_(None)
    found = _evaluations(metrics.c.reason).join(metrics, metrics.c.evaluation_id == evaluations.c.id)
    return found.where(evaluations.c.status == "complete", has_failed)


def _evaluations(reason: Column[str]) -> Select[Any]:
    shown = (table.c.hidden == false() for table in (evaluations, models, eval_settings))
    return (
        select(
            models.c.name.label("model"),
            eval_settings.c.name.label("eval_setting"),
            *evaluations.c["status", "run_id", "numerics"],
            reason.label("reason"),
            *runs.c["host", "pid"],
        )
        .select_from(evaluations)
        .join(model_versions)
        .join(models)
        .join(setting_versions, evaluations.c.setting_version_id == setting_versions.c.id)
        .join(eval_settings)
        .outerjoin(runs, evaluations.c.run_id == runs.c.id)
        .where(*shown)
        .where(~is_superseded(model_versions), ~is_superseded(setting_versions))
        .order_by(evaluations.c.id)
    )


def _unfinished(row: Any, active: int | None) -> Unfinished:
    state = row.status
    if state in ("pending", "running"):
        state = "running" if active is not None and row.run_id == active else "interrupted"
    return Unfinished(
        model=row.model, eval_setting=row.eval_setting, state=state, reason=row.reason, host=row.host, pid=row.pid,
        numerics=row.numerics,
    )  # fmt: skip
