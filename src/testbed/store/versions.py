"""Models, data sets and settings: a name each, and under it every definition it has had, by content fingerprint.

The last one that was put is the current one. It supersedes the others with its first complete evaluation, and not
before: a definition that failed or is still being evaluated hides no result.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, func, select, update

from testbed.errors import DataError, DefinitionError, StoreError
from testbed.records import DatasetVersion, ModelVersion, SettingVersion, Shift
from testbed.store import digests
from testbed.store.columns import int32_bytes, jsonable
from testbed.store.database import insert_new
from testbed.store.schema import datasets, eval_settings, evaluations, model_versions, models, setting_versions
from testbed.store.views import ModelFacts

# By table of versions: the column of their name, and that of evaluations which tells the version.
_NAMED_AND_EVALUATED = {
    "model_versions": ("model_id", "model_version_id"),
    "setting_versions": ("setting_id", "setting_version_id"),
}


def put_model(connection: Connection, model: ModelVersion) -> int:
    """Id of the model version, now the current one of its name; created where it is new."""
    key = {"name": model.name, "label_space": model.label_space}
    model_id = _put_name(connection, models, key)
    row = {"model_id": model_id, "fingerprint": model.fingerprint, "spec": jsonable(model.spec), "is_current": True}
    insert_new(connection, model_versions, [row])
    return _make_current(connection, model_versions, "model_id", row, what=f"model '{model.name}'")


def put_setting(connection: Connection, setting: SettingVersion) -> int:
    """Id of the setting version, now the current one of its name; created where it is new."""
    setting_id = _put_name(connection, eval_settings, {"name": setting.name})
    indices = setting.sample_indices
    row = {
        "setting_id": setting_id,
        "dataset_id": _dataset_id(connection, setting),
        "fingerprint": setting.fingerprint,
        "is_current": True,
        "spec": jsonable(setting.spec),
        "class_sublist": jsonable(setting.class_sublist),
        "sample_indices": indices,
        "sample_indices_sha256": None if indices is None else digest(int32_bytes(indices)),
        **_shift_row(setting.shift),
    }
    insert_new(connection, setting_versions, [row])
    return _make_current(connection, setting_versions, "setting_id", row, what=f"setting '{setting.name}'")


def put_dataset(connection: Connection, dataset: DatasetVersion) -> int:
    """Id of the data set's version; created where it is new."""
    targets, sample_ids = int32_bytes(dataset.targets), json.dumps(dataset.sample_ids).encode()
    label_sets = None if dataset.label_sets is None else [[int(c) for c in labels] for labels in dataset.label_sets]
    row = {
        "name": dataset.name,
        "split": dataset.split,
        "fingerprint": dataset.fingerprint,
        "n": len(dataset.targets),
        "class_names": list(dataset.class_names),
        "targets": dataset.targets,
        "sample_ids": sample_ids,
        "sha256": digest(targets, sample_ids, *label_bytes(label_sets)),
        "label_sets": label_sets,
    }
    insert_new(connection, datasets, [row])
    is_it = datasets.c.fingerprint == dataset.fingerprint
    digests.check(connection, datasets, is_it)
    columns = datasets.c["id", "name", "targets", "label_sets"]
    stored = connection.execute(select(*columns).where(is_it)).one()
    if int32_bytes(stored.targets) != targets or stored.label_sets != label_sets:
        raise DataError(
            f"Data set '{dataset.name}' ({dataset.split}) has the fingerprint of the stored '{stored.name}' but other "
            "targets or label sets. A fingerprint must cover both."
        )
    return int(stored.id)


def set_model_facts(connection: Connection, fingerprint: str, facts: ModelFacts) -> None:
    """Records what was found when the model was loaded; later calls must agree with the first."""
    is_it = model_versions.c.fingerprint == fingerprint
    joined = select(models.c.name, model_versions).join(models).where(is_it)
    digests.check_models(connection, is_it)
    stored = connection.execute(joined).one_or_none()
    if stored is None:
        raise StoreError(f"No model has the fingerprint {fingerprint}. Call put_model first.")
    found = {"weights_sha256": facts.weights_sha256, "num_outputs": facts.num_outputs}
    for column, value in found.items():
        before = getattr(stored, column)
        if None not in (before, value) and before != value:
            raise DataError(
                f"Model '{stored.name}' has changed while its definition has not: its {column} was {before} and is "
                f"now {value}. Give its definition another version=, so that its results are kept apart."
            )
    changes = {column: value for column, value in found.items() if value is not None}
    if changes:
        connection.execute(update(model_versions).where(is_it).values(changes))


def model_facts(connection: Connection, fingerprint: str) -> ModelFacts | None:
    """What is known of a loaded model; None where the model is not in the store."""
    columns = (model_versions.c.weights_sha256, model_versions.c.num_outputs)
    is_it = model_versions.c.fingerprint == fingerprint
    digests.check_models(connection, is_it)
    stored = connection.execute(select(*columns).where(is_it)).one_or_none()
    return None if stored is None else ModelFacts(**stored._mapping)


def id_in_force(versions: Table) -> ColumnElement[int]:
    """Id of the version, of those with the name of a row of `versions`, whose results count.

    The current one, unless it has none and an earlier one has: then of these the one that was completed last.
    """
    owner, key = _NAMED_AND_EVALUATED[versions.name]
    version, evaluated = versions.alias(), evaluations.alias()
    with_results = (
        select(version.c.id)
        .join_from(version, evaluated, evaluated.c[key] == version.c.id)
        .where(version.c[owner] == versions.c[owner], evaluated.c.status == "complete", ~evaluated.c.hidden)
        .order_by(version.c.is_current.desc(), evaluated.c.completed_at.desc(), evaluated.c.id.desc())
        .limit(1)
    )
    current = select(version.c.id).where(version.c[owner] == versions.c[owner], version.c.is_current)
    return func.coalesce(*(found.correlate(versions).scalar_subquery() for found in (with_results, current)))


def is_superseded(versions: Table) -> ColumnElement[bool]:
    """Whether what is stored of a version counts no more. That of the current one does, failures included."""
    return ~(versions.c.is_current | (versions.c.id == id_in_force(versions)))


def label_bytes(label_sets: Sequence[Sequence[int]] | None) -> tuple[bytes, ...]:
    """The part of a data set's digest that stands for its label sets: none where it has none."""
    return () if label_sets is None else (json.dumps(label_sets, separators=(",", ":")).encode(),)


def digest(*parts: bytes) -> str:
    """SHA-256 (hex) of the parts, one after the other."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()


def is_as_written(sha256: str, *parts: Any) -> bool:
    """Whether the parts have the checksum; what is not bytes was never written by the store."""
    return all(isinstance(part, bytes) for part in parts) and digest(*parts) == sha256


def _put_name(connection: Connection, table: Table, key: dict[str, Any]) -> int:
    """Id of the name, made if need be; one that was removed is back."""
    insert_new(connection, table, [{**key, "hidden": False}])
    digests.check(connection, table, table.c.name == key["name"])
    connection.execute(update(table).filter_by(**key, hidden=True).values(hidden=False))
    return int(connection.execute(select(table.c.id).filter_by(**key)).scalar_one())


def _make_current(connection: Connection, table: Table, owner: str, row: dict[str, Any], *, what: str) -> int:
    """Id of the version with the row's fingerprint, which must belong to the row's owner."""
    is_it = table.c.fingerprint == row["fingerprint"]
    stored = connection.execute(select(table.c.id, table.c[owner]).where(is_it)).one()
    if stored[1] != row[owner]:
        raise DefinitionError(
            f"The {what} has the fingerprint of another stored definition ({row['fingerprint'][:12]}...). If it was "
            "renamed in the store, rename its definition too; else a fingerprint must cover the name."
        )
    digests.check(connection, table, table.c[owner] == row[owner])
    siblings = (table.c[owner] == row[owner]) & table.c.is_current
    connection.execute(update(table).where(siblings, ~is_it).values(is_current=False))
    connection.execute(update(table).where(is_it, ~table.c.is_current).values(is_current=True))
    return int(stored[0])


def _dataset_id(connection: Connection, setting: SettingVersion) -> int:
    is_it = datasets.c.fingerprint == setting.dataset_fingerprint
    dataset_id = connection.scalar(select(datasets.c.id).where(is_it))
    if dataset_id is None:
        raise StoreError(f"The data set of setting '{setting.name}' is not in the store. Call put_dataset first.")
    return int(dataset_id)


def _shift_row(shift: Shift | None) -> dict[str, Any]:
    return {
        "shift_family": shift.family if shift else None,
        "shift_name": shift.name if shift else None,
        "shift_severity": shift.severity if shift else None,
        "shift_norm": shift.norm if shift else None,
        "shift_epsilon": shift.epsilon if shift else None,
        "clean_eval_setting": shift.clean_eval_setting if shift else None,
    }


def shift_of(row: Any) -> Shift | None:
    """The shift in a row of setting_versions."""
    if row.shift_family is None:
        return None
    return Shift(
        family=row.shift_family,
        name=row.shift_name,
        clean_eval_setting=row.clean_eval_setting,
        severity=row.shift_severity,
        norm=row.shift_norm,
        epsilon=row.shift_epsilon,
    )
