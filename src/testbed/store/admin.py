"""Removing and restoring: what is removed is hidden from every listing and result, and stays until it is purged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Select, Table, delete, func, or_, select, update

from testbed.errors import UnknownNameError, suggestion
from testbed.records import EvaluationKey
from testbed.store import digests, findings, progress
from testbed.store.database import pieces
from testbed.store.reader import Reader
from testbed.store.schema import (
    datasets,
    eval_settings,
    evaluations,
    logit_payloads,
    logit_shards,
    metrics,
    model_versions,
    models,
    setting_versions,
)
from testbed.store.store import Store

Kind = Literal["model", "eval-setting"]
NAMED: dict[str, Table] = {"model": models, "eval-setting": eval_settings}


@dataclass(frozen=True, kw_only=True)
class Removed:
    """What has been removed and was not restored: names, and how many evaluations go with them.

    Args:
        num_bytes: of their logits, predictions and ranks.
    """

    models: tuple[str, ...]
    eval_settings: tuple[str, ...]
    num_evaluations: int
    num_bytes: int


def remove(store: Store, kind: Kind, *names: str) -> None:
    """Hides models or settings and all their evaluations, all of them or none.

    Raises: UnknownNameError: there is none of one of the names.
    """
    with store.writing() as connection:
        for name in names:
            check_known(connection, kind, name)
        _set_hidden(connection, NAMED[kind], NAMED[kind].c.name.in_(names), hidden=True)


def remove_evaluations(store: Store, *, model: str, setting: str) -> int:
    """Hides all evaluations of a model on a setting; returns how many. Raises: UnknownNameError: there is none."""
    with store.writing() as connection:
        check_known(connection, "model", model)
        check_known(connection, "eval-setting", setting)
        of_model = evaluations.c.model_version_id.in_(_of_models(models.c.name == model))
        of_setting = evaluations.c.setting_version_id.in_(_of_settings(eval_settings.c.name == setting))
        is_it = of_model & of_setting & ~evaluations.c.hidden
        num_hidden = _set_hidden(connection, evaluations, is_it, hidden=True)
        if num_hidden == 0:
            raise UnknownNameError(f"No evaluation of model '{model}' on setting '{setting}' is stored in {store.url}.")
        return num_hidden


def restore(store: Store, name: str) -> int:
    """Undoes the removal of a model or setting, and of its single evaluations; returns how many things are back.

    Raises: UnknownNameError: nothing of that name was removed.
    """
    with store.writing() as connection:
        of_model, of_setting = _of_models(models.c.name == name), _of_settings(eval_settings.c.name == name)
        is_its = evaluations.c.model_version_id.in_(of_model) | evaluations.c.setting_version_id.in_(of_setting)
        wanted = [(table, table.c.name == name) for table in NAMED.values()] + [(evaluations, is_its)]
        restored = sum(_set_hidden(connection, table, is_it, hidden=False) for table, is_it in wanted)
        if restored == 0:
            raise UnknownNameError(f"Nothing named '{name}' was removed from {store.url}, so nothing can be restored.")
        return restored


def restore_evaluations(store: Store, keys: Iterable[EvaluationKey]) -> None:
    """Shows evaluations again that were removed and are asked for now."""
    is_any_hidden = select(evaluations.c.id).where(evaluations.c.hidden).limit(1)
    with store.writing() as connection:
        if connection.scalar(is_any_hidden) is None:
            return
        states = progress.find_evaluations(connection, keys)
        is_it = evaluations.c.id.in_([state.id for state in states if state is not None])
        _set_hidden(connection, evaluations, is_it, hidden=False)


def _set_hidden(connection: Connection, table: Table, where: ColumnElement[bool], *, hidden: bool) -> int:
    """Hides or shows rows; returns how many. One that is damaged can be taken out of sight too, and stays damaged."""
    is_changed = where & (table.c.hidden != hidden)
    ids = connection.scalars(select(table.c.id).where(is_changed)).all()
    with digests.keeping_damage(connection, table, ids):
        for some in pieces(ids):
            connection.execute(update(table).where(table.c.id.in_(some)).values(hidden=hidden))
    return len(ids)


def removed(store: Reader) -> Removed:
    """What is removed and can be restored or purged."""
    with store.reading() as connection:
        return _removed(connection)


def purge(store: Store) -> Removed:
    """Deletes for good what was removed; returns what that was. Data sets that nothing refers to any more go too."""
    with store.writing() as connection:
        found = _removed(connection)
        ids = select(evaluations.c.id).where(_is_removed())
        findings.delete_metrics(
            connection, metrics.c.evaluation_id.in_(ids) | metrics.c.reference_evaluation_id.in_(ids)
        )
        connection.execute(delete(evaluations).where(_is_removed()))
        connection.execute(delete(model_versions).where(model_versions.c.id.in_(_of_models(models.c.hidden))))
        is_hidden = setting_versions.c.id.in_(_of_settings(eval_settings.c.hidden))
        connection.execute(delete(setting_versions).where(is_hidden))
        for table in NAMED.values():
            connection.execute(delete(table).where(table.c.hidden))
        connection.execute(delete(datasets).where(datasets.c.id.not_in(select(setting_versions.c.dataset_id))))
        return found


def check_known(connection: Connection, kind: Kind, name: str) -> None:
    """Raises: UnknownNameError: the store has no model, or setting, of that name."""
    known = connection.scalars(select(NAMED[kind].c.name)).all()
    if name not in known:
        hint = suggestion(name, known) or f"List what there is: python db.py --list-{kind}s-db"
        raise UnknownNameError(f"There is no {kind} '{name}' in the store. {hint}")


def _of_models(condition: ColumnElement[bool]) -> Select[Any]:
    """Ids of the versions of the models that fulfil a condition."""
    return select(model_versions.c.id).join(models).where(condition)


def _of_settings(condition: ColumnElement[bool]) -> Select[Any]:
    """Ids of the versions of the settings that fulfil a condition."""
    return select(setting_versions.c.id).join(eval_settings).where(condition)


def _is_removed() -> ColumnElement[bool]:
    return or_(
        evaluations.c.hidden,
        evaluations.c.model_version_id.in_(_of_models(models.c.hidden)),
        evaluations.c.setting_version_id.in_(_of_settings(eval_settings.c.hidden)),
    )


def _removed(connection: Connection) -> Removed:
    ids = select(evaluations.c.id).where(_is_removed())
    sizes = (
        (logit_shards, logit_shards.c.predictions),
        (logit_shards, logit_shards.c.target_ranks),
        (logit_payloads, logit_payloads.c.payload),
    )
    totals = [
        connection.scalar(select(func.coalesce(func.sum(func.length(column)), 0)).where(table.c.evaluation_id.in_(ids)))
        for table, column in sizes
    ]
    names = [connection.scalars(select(t.c.name).where(t.c.hidden).order_by(t.c.name)).all() for t in NAMED.values()]
    return Removed(
        models=tuple(dict.fromkeys(names[0])),
        eval_settings=tuple(dict.fromkeys(names[1])),
        num_evaluations=connection.scalar(select(func.count()).where(_is_removed())) or 0,
        num_bytes=sum(int(total or 0) for total in totals),
    )
