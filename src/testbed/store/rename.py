"""Renaming a model or a setting: another label, and the identity that the same definition has under that label.

A fingerprint covers the name (definitions of one file may differ in code alone). After a rename the stored versions
have the fingerprints that the registry computes for equal definitions under the new name. So a definition that is
renamed the same way finds its results, and one that keeps its old name is evaluated anew under that. A definition that
is identified by its file's content is another one as soon as the file is edited, also if that only renames it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, Table, select, update

from testbed.errors import DefinitionError
from testbed.fingerprint import model_fingerprint, setting_fingerprint
from testbed.signatures import check_name
from testbed.store import digests
from testbed.store.admin import NAMED, Kind, check_known
from testbed.store.schema import datasets, eval_settings, model_versions, models, setting_versions
from testbed.store.store import Store


def rename_model(store: Store, old: str, new: str) -> None:
    """Renames a model of the store, in all its label spaces and versions.

    Raises:
        UnknownNameError: there is no such model.
        DefinitionError: the new name cannot be one, or is taken.
    """
    with store.writing() as connection:
        _check(connection, "model", old, new)
        connection.execute(update(models).where(models.c.name == old).values(name=new))
        wanted = select(model_versions, models.c.label_space).join(models).where(models.c.name == new)
        for row in connection.execute(wanted).all():
            before, after = (model_fingerprint(name, row.label_space, row.spec) for name in (old, new))
            _set_fingerprint(connection, model_versions, row, before, after)


def rename_setting(store: Store, old: str, new: str) -> None:
    """Renames a setting of the store, in all its versions, and as the clean parent of others.

    Raises: as `rename_model`.
    """
    with store.writing() as connection:
        _check(connection, "eval-setting", old, new)
        connection.execute(update(eval_settings).where(eval_settings.c.name == old).values(name=new))
        is_touched = (eval_settings.c.name == new) | (setting_versions.c.clean_eval_setting == old)
        wanted = select(setting_versions, eval_settings.c.name, datasets.c.fingerprint.label("dataset"))
        wanted = wanted.join_from(setting_versions, eval_settings).join(datasets).where(is_touched)
        for row in connection.execute(wanted).all():
            name = old if row.name == new else row.name
            before = _setting_fingerprint(row, name, row.spec)
            changes = _with_parent(row, old, new)
            after = _setting_fingerprint(row, row.name, changes.get("spec", row.spec))
            _set_fingerprint(connection, setting_versions, row, before, after, **changes)


def _check(connection: Connection, kind: Kind, old: str, new: str) -> None:
    check_known(connection, kind, old)
    check_name(new, what=kind.capitalize())
    table, versions = NAMED[kind], {"model": digests.check_models, "eval-setting": digests.check_settings}
    versions[kind](connection)
    if connection.scalar(select(table.c.id).where(table.c.name == new).limit(1)) is not None:
        raise DefinitionError(
            f"The store has a {kind} '{new}' already, and results of two definitions are never mixed. Choose another "
            f"name for '{old}', or remove '{new}' and delete it with --purge --override."
        )


def _setting_fingerprint(row: Row[Any], name: str, spec: Any) -> str:
    return setting_fingerprint(
        name, spec, dataset=row.dataset, sample_indices=row.sample_indices, class_sublist=row.class_sublist
    )


def _with_parent(row: Row[Any], old: str, new: str) -> dict[str, Any]:
    """The columns of a setting that name its clean parent, where that is the one that was renamed."""
    if row.clean_eval_setting != old:
        return {}
    shift = row.spec.get("shift")
    spec = {**row.spec, "shift": {**shift, "clean_eval_setting": new}} if shift else row.spec
    return {"clean_eval_setting": new, "spec": spec}


def _set_fingerprint(
    connection: Connection, table: Table, row: Row[Any], before: str, after: str, **changes: Any
) -> None:
    """Stores the new identity. One that is not made of what is stored, such as that of an import, stays."""
    identity = {"fingerprint": after} if row.fingerprint == before else {}
    if changes | identity:
        connection.execute(update(table).where(table.c.id == row.id).values(**changes, **identity))
