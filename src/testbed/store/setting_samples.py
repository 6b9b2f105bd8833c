"""Which samples a stored setting evaluates, with their targets and names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from testbed.class_subset import names_in_subset, padded_label_sets, stored_sublist, targets_in_subset
from testbed.errors import DataError, StoreError, UnknownNameError, suggestion
from testbed.records import ClassSublist
from testbed.run_split import RunSplit
from testbed.store import digests
from testbed.store.columns import int32_bytes
from testbed.store.schema import datasets, eval_settings, setting_versions
from testbed.store.versions import is_as_written, label_bytes


@dataclass(frozen=True, kw_only=True)
class SettingSamples:
    """The samples of a stored setting, and the columns of the logits that count.

    Args:
        name, fingerprint: of the setting.
        dataset_id: within the store.
        targets: [n] over the setting's classes; -1 for a class that is not among them.
        label_sets: [n, labels] all classes that count as right, rows filled up with -1; None where only targets do.
        sample_ids: n strings.
        class_sublist: columns of the logits that count; None for all.
        num_classes: of the setting.
        is_perturbed: whether the setting changes its images, so that several draws can differ.
    """

    name: str
    fingerprint: str
    dataset_id: int
    targets: NDArray[np.int32]
    label_sets: NDArray[np.int32] | None
    sample_ids: Sequence[str]
    class_sublist: ClassSublist | None
    num_classes: int
    is_perturbed: bool


def setting_samples(connection: Connection, name: str) -> SettingSamples:
    """The samples of a setting in its current version.

    Raises:
        UnknownNameError: it is not stored.
        DataError: every run has other samples.
        StoreError: its targets are not those that were written.
    """
    is_it = (eval_settings.c.name == name) & setting_versions.c.is_current
    found = connection.execute(
        select(
            *setting_versions.c["fingerprint", "dataset_id", "class_sublist", "sample_indices", "spec"],
            *datasets.c["targets", "sample_ids", "sha256", "class_names", "label_sets"],
        )
        .join_from(setting_versions, eval_settings)
        .join(datasets)
        .where(is_it)
    ).one_or_none()
    if found is None:
        known = connection.scalars(select(eval_settings.c.name)).all()
        raise UnknownNameError(
            f"Setting '{name}' is not stored, so its samples are not known. {suggestion(name, known)} "
            f"Put it there first: python db.py --add-eval-setting {name}"
        )
    digests.check_settings(connection, setting_versions.c.fingerprint == found.fingerprint)
    if RunSplit.of_spec(found.spec) is not None:
        raise DataError(f"'{name}' has other samples in every run, so logits cannot be imported for it as a whole.")
    if not is_as_written(found.sha256, int32_bytes(found.targets), found.sample_ids, *label_bytes(found.label_sets)):
        raise StoreError(f"The stored targets of '{name}' are damaged. See python db.py --verify.")
    indices = np.arange(len(found.targets)) if found.sample_indices is None else found.sample_indices
    sublist = stored_sublist(found.class_sublist)
    positions = partial(targets_in_subset, sublist=sublist, num_classes=len(found.class_names))
    sets = None if found.label_sets is None else padded_label_sets([found.label_sets[index] for index in indices])
    ids = json.loads(found.sample_ids)
    return SettingSamples(
        name=name,
        fingerprint=found.fingerprint,
        dataset_id=found.dataset_id,
        targets=positions(found.targets[indices]),
        label_sets=None if sets is None else positions(sets),
        sample_ids=[ids[index] for index in indices],
        class_sublist=sublist,
        num_classes=len(names_in_subset(found.class_names, sublist)),
        is_perturbed=any(found.spec.get(f"perturbation_fn_{place}") is not None for place in ("cpu", "gpu")),
    )
