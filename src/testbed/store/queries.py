"""Look-ups by name: what models, settings and evaluations there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, case, func, select
from sqlalchemy.sql import FromClause

from testbed.class_subset import stored_sublist
from testbed.errors import TestbedError, UnknownNameError, suggestion
from testbed.run_split import RunSplit
from testbed.store import digests
from testbed.store.database import Database, pieces
from testbed.store.evaluation import Evaluation
from testbed.store.schema import datasets, eval_settings, evaluations, model_versions, models, setting_versions
from testbed.store.versions import id_in_force, is_superseded, shift_of
from testbed.store.views import ModelFacts, StoredModel, StoredSetting


def list_models(connection: Connection) -> list[StoredModel]:
    """The models in the store, in the versions whose results count, by name and label space."""
    version, is_shown = model_versions, model_versions.c.id == id_in_force(model_versions)
    wanted = (
        select(
            *models.c["name", "label_space", "hidden"], *version.c, *_counts(version, "model_id", "model_version_id")
        )
        .join_from(models, version)
        .where(is_shown)
        .order_by(models.c.name, models.c.label_space)
    )
    digests.check_models(connection, is_shown)
    return [_model(row) for row in connection.execute(wanted)]


def list_settings(connection: Connection) -> list[StoredSetting]:
    """The settings in the store, in the versions whose results count, by name."""
    version, is_shown = setting_versions, setting_versions.c.id == id_in_force(setting_versions)
    own = [column for column in version.c if column.name not in ("sample_indices", "class_sublist")]
    wanted = (
        select(
            *eval_settings.c["name", "hidden"],
            datasets.c.name.label("dataset"),
            datasets.c.split,
            func.coalesce(func.length(version.c.sample_indices) / 4, datasets.c.n).label("n"),
            *own,
            *_counts(version, "setting_id", "setting_version_id"),
        )
        .select_from(_settings_with_datasets())
        .where(is_shown)
        .order_by(eval_settings.c.name)
    )
    digests.check_settings(connection, is_shown)
    return [_setting(row) for row in connection.execute(wanted)]


def settings_with_results(connection: Connection) -> list[str]:
    """Names of the settings that any model has a complete evaluation of that counts."""
    version, mine = setting_versions.c, evaluations.c
    of_shown = select(model_versions.c.id).join(models).where(~models.c.hidden, ~is_superseded(model_versions))
    any_result = (
        select(mine.id)
        .where(mine.setting_version_id == version.id, mine.status == "complete", ~mine.hidden)
        .where(mine.model_version_id.in_(of_shown))
        .exists()
    )
    wanted = select(eval_settings.c.name).join(setting_versions).where(~eval_settings.c.hidden)
    wanted = wanted.where(~is_superseded(setting_versions)).distinct()
    return sorted(connection.scalars(wanted.where(any_result)))


def list_evaluations(database: Database, **criteria: Any) -> list[Evaluation]:
    """The evaluations that fit the criteria (see `_conditions`), by model, setting, seeds and age."""
    wanted = _evaluations().where(*_conditions(criteria))
    with database.reading() as connection:
        rows = connection.execute(wanted).all()
        digests.check_evaluations(connection, [row.id for row in rows])
        found = [_evaluation(database, row) for row in rows]
    numerics: Mapping[str, Any] = criteria.get("numerics") or {}
    return [one for one in found if all(one.numerics.get(name) == value for name, value in numerics.items())]


def one_evaluation(database: Database, *, model: str, setting: str, **criteria: Any) -> Evaluation:
    """The evaluation that is not superseded and fits the criteria.

    Raises:
        UnknownNameError: there is none.
        TestbedError: there are several.
    """
    found = list_evaluations(database, model=model, setting=setting, is_stale=False, **criteria)
    if len(found) == 1:
        return found[0]
    pair = f"model '{model}' on setting '{setting}'"
    if found:
        listed = "; ".join(_distinction(evaluation) for evaluation in found)
        raise TestbedError(
            f"There are {len(found)} evaluations of {pair}: {listed}. Say which by label_space, fit_seed, noise_seed "
            "or numerics, or take it by its id."
        )
    raise UnknownNameError(
        f"There is no such evaluation of {pair} in {database.url}. {_hint(database, model, setting)}"
    )


def evaluation_by_id(database: Database, evaluation_id: int) -> Evaluation:
    """The evaluation with this id.

    Raises: UnknownNameError: there is none.
    """
    return evaluations_by_id(database, [evaluation_id])[evaluation_id]


def evaluations_by_id(database: Database, evaluation_ids: Sequence[int]) -> dict[int, Evaluation]:
    """The evaluations with these ids, by id.

    Raises: UnknownNameError: there is none with one of them.
    """
    found: dict[int, Evaluation] = {}
    with database.reading() as connection:
        for some in pieces(evaluation_ids):
            rows = connection.execute(_evaluations().where(evaluations.c.id.in_(some))).all()
            digests.check_evaluations(connection, [row.id for row in rows])
            found |= {row.id: _evaluation(database, row) for row in rows}
    if (missing := next((id_ for id_ in evaluation_ids if id_ not in found), None)) is not None:
        raise UnknownNameError(f"There is no evaluation {missing} in {database.url}.")
    return found


def _counts(version: Any, owner: str, key: str) -> Sequence[ColumnElement[int]]:
    other = version.alias()
    num_versions = select(func.count()).where(other.c[owner] == version.c[owner]).scalar_subquery()
    is_its = (evaluations.c[key] == version.c.id) & ~evaluations.c.hidden
    num_evaluations = select(func.count()).where(is_its).scalar_subquery()
    return num_versions.label("num_versions"), num_evaluations.label("num_evaluations")


def _settings_with_datasets() -> FromClause:
    return eval_settings.join(setting_versions).join(datasets)


def _conditions(criteria: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    """What rows must fulfil: equality with each criterion that is given; numerics are compared after reading."""
    columns = {
        "model": models.c.name,
        "setting": eval_settings.c.name,
        "label_space": models.c.label_space,
        "fit_seed": evaluations.c.fit_seed,
        "noise_seed": evaluations.c.noise_seed,
        "status": evaluations.c.status,
    }
    conditions = [columns[name] == value for name, value in criteria.items() if name in columns and value is not None]
    if (seed := criteria.get("seed")) is not None:
        conditions.append(_seed() == seed)
    if (is_stale := criteria.get("is_stale")) is not None:
        conditions.append(_is_stale() if is_stale else ~_is_stale())
    if not criteria.get("with_removed"):
        conditions.append(~(evaluations.c.hidden | models.c.hidden | eval_settings.c.hidden))
    return conditions


def _seed() -> ColumnElement[int]:
    """The seed of the run, which what draws nothing at random does not have."""
    fit, noise = evaluations.c.fit_seed, evaluations.c.noise_seed
    return case((fit > noise, fit), else_=noise)


def _is_stale() -> ColumnElement[bool]:
    return is_superseded(model_versions) | is_superseded(setting_versions)


def _evaluations() -> Select[Any]:
    heavy = ("sample_indices", "spec", "id", "is_current", "fingerprint", "created_at")
    return (
        select(
            evaluations,
            models.c.name.label("model"),
            models.c.label_space,
            eval_settings.c.name.label("setting"),
            datasets.c.name.label("dataset"),
            datasets.c.split,
            datasets.c.id.label("dataset_id"),
            model_versions.c.fingerprint.label("model_fingerprint"),
            setting_versions.c.fingerprint.label("setting_fingerprint"),
            (model_versions.c.is_current & setting_versions.c.is_current).label("is_current"),
            _is_stale().label("is_stale"),
            *(column for column in setting_versions.c if column.name not in (*heavy, "dataset_id", "setting_id")),
        )
        .select_from(evaluations)
        .join(model_versions)
        .join(models)
        .join(setting_versions, evaluations.c.setting_version_id == setting_versions.c.id)
        .join(eval_settings)
        .join(datasets, setting_versions.c.dataset_id == datasets.c.id)
        .order_by(models.c.name, eval_settings.c.name, models.c.label_space)
        .order_by(evaluations.c.fit_seed, evaluations.c.noise_seed, evaluations.c.id)
    )


def _evaluation(database: Database, row: Any) -> Evaluation:
    return Evaluation(
        id=row.id,
        model=row.model,
        label_space=row.label_space,
        setting=row.setting,
        dataset=row.dataset,
        split=row.split,
        model_fingerprint=row.model_fingerprint,
        setting_fingerprint=row.setting_fingerprint,
        is_current=row.is_current,
        is_stale=row.is_stale,
        fit_seed=row.fit_seed,
        noise_seed=row.noise_seed,
        numerics=row.numerics,
        shift=shift_of(row),
        class_sublist=stored_sublist(row.class_sublist),
        status=row.status,
        reason=row.reason,
        n=row.n,
        num_draws=row.num_draws,
        run_id=row.run_id,
        created_at=row.created_at,
        completed_at=row.completed_at,
        _setting_version_id=row.setting_version_id,
        _dataset_id=row.dataset_id,
        _database=database,
    )


def _model(row: Any) -> StoredModel:
    return StoredModel(
        name=row.name,
        label_space=row.label_space,
        hidden=row.hidden,
        fingerprint=row.fingerprint,
        spec=row.spec,
        facts=ModelFacts(weights_sha256=row.weights_sha256, num_outputs=row.num_outputs),
        created_at=row.created_at,
        num_versions=row.num_versions,
        num_evaluations=row.num_evaluations,
    )


def _setting(row: Any) -> StoredSetting:
    split = RunSplit.of_spec(row.spec)
    return StoredSetting(
        name=row.name,
        hidden=row.hidden,
        fingerprint=row.fingerprint,
        spec=row.spec,
        dataset=row.dataset,
        split=row.split,
        n=row.n if split is None else split.num_test(row.n),
        shift=shift_of(row),
        created_at=row.created_at,
        num_versions=row.num_versions,
        num_evaluations=row.num_evaluations,
    )


def _distinction(evaluation: Evaluation) -> str:
    seeds = f"fit_seed {evaluation.fit_seed}, noise_seed {evaluation.noise_seed}"
    return f"id {evaluation.id} ({evaluation.label_space}, {seeds}, {dict(evaluation.numerics)})"


def _hint(database: Database, model: str, setting: str) -> str:
    if list_evaluations(database, model=model, setting=setting, is_stale=True):
        return "There are stale ones, of earlier definitions. Evaluate the pair again, or take one by its id."
    with database.reading() as connection:
        names = connection.scalars(select(models.c.name)).all(), connection.scalars(select(eval_settings.c.name)).all()
    hints = [suggestion(name, known) for name, known in zip((model, setting), names, strict=True) if name not in known]
    return " ".join(filter(None, hints)) or "List what there is: python db.py --list-models-db --list-eval-settings-db"
