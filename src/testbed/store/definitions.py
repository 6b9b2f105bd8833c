"""Many definitions into the store at once."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.records import DatasetVersion, ModelVersion, SettingVersion
from testbed.store import versions
from testbed.store.store import Store


def put_definitions(
    store: Store,
    *,
    models: Iterable[ModelVersion],
    datasets: Iterable[DatasetVersion],
    settings: Iterable[SettingVersion],
) -> None:
    """Puts all of them in one transaction, each once, however often it is given.

    Raises: DefinitionError, DataError: as `Store.put_model`, `put_dataset` and `put_setting` do.
    """
    with store.writing() as connection:
        for model in {model.fingerprint: model for model in models}.values():
            versions.put_model(connection, model)
        for dataset in {dataset.fingerprint: dataset for dataset in datasets}.values():
            versions.put_dataset(connection, dataset)
        for setting in {setting.fingerprint: setting for setting in settings}.values():
            versions.put_setting(connection, setting)
