"""Which samples a stored evaluation has: their classes, ids and order, read from its data set and verified."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Row, select

from testbed.class_subset import columns_of, names_in_subset, padded_label_sets, targets_in_subset
from testbed.errors import StoreError
from testbed.metrics.frames import sequences
from testbed.records import ClassSublist, IntArray
from testbed.run_split import RunSplit
from testbed.store.columns import int32_bytes
from testbed.store.database import Database
from testbed.store.schema import datasets, setting_versions
from testbed.store.versions import digest, is_as_written, label_bytes


@dataclass(frozen=True, kw_only=True)
class EvaluatedSamples:
    """The samples of a setting in one run; nothing larger than these fields is read before it is asked for.

    Args:
        setting, dataset, split: names.
        class_sublist: columns of the logits that count, several in a tuple being one class; None for all.
        n: samples per draw.
        fit_seed: of the run, which draws the samples where every run has others.
    """

    setting: str
    dataset: str
    split: str
    class_sublist: ClassSublist | None
    n: int
    fit_seed: int
    _setting_version_id: int = field(repr=False)
    _dataset_id: int = field(repr=False)
    _database: Database = field(repr=False, compare=False)

    def targets(self) -> NDArray[np.int32]:
        """Targets [n] int32 over the setting's classes; -1 where the class is not among them."""
        return self._positions(self.dataset_targets())

    def label_sets(self) -> NDArray[np.int32] | None:
        """All classes that count as right [n, labels] int32 over the setting's classes, rows filled up with -1.

        None where only the target does.
        """
        if (sets := self._dataset.label_sets) is None:
            return None
        return self._positions(padded_label_sets([sets[index] for index in self.sample_indices()]))

    def _positions(self, classes: IntArray) -> NDArray[np.int32]:
        return targets_in_subset(classes, self.class_sublist, num_classes=len(self._dataset_classes))

    def dataset_targets(self) -> NDArray[np.int32]:
        """Targets [n] int32 over the data set's classes, whatever the setting looks at."""
        return np.asarray(self._dataset.targets[self.sample_indices()], np.int32)

    def folder_targets(self) -> NDArray[np.int32]:
        """Targets [n] int32 as one counts class folders: over the setting's classes where the data set has samples of
        these alone, else over the data set's."""
        present = set(np.unique(self._dataset.targets).tolist())
        return self.targets() if present == set(self.class_sublist or ()) else self.dataset_targets()

    def label_fault(self) -> str:
        """Why the targets are not classes that the setting counts, where not all of them are; else empty."""
        targets, sublist = self.targets(), self.class_sublist
        if self.n and (self.dataset_targets() < 0).all():
            return "the samples have no labels"
        num_classes = len(self._dataset_classes)
        if sublist is not None and len(sublist) != num_classes and max(columns_of(sublist)) >= num_classes:
            return f"targets count the {num_classes} classes of '{self.dataset}', and class_sublist other columns"
        if num_others := int(np.count_nonzero(targets < 0)):
            return f"{num_others} of {self.n} targets are none of the setting's {len(self.class_names)} classes"
        return ""

    def sample_ids(self) -> list[str]:
        """Ids of the samples, n strings."""
        names = json.loads(self._dataset.sample_ids)
        return [names[index] for index in self.sample_indices()]

    def sequences(self) -> NDArray[np.int64] | None:
        """The number of the sequence that each sample is a frame of, [n]; None where samples are no frames."""
        if b"#" not in self._dataset.sample_ids:  # names of millions of samples are not read for that
            return None
        found = sequences(self.sample_ids())
        return None if found is None else found[0]

    def sample_indices(self) -> NDArray[np.int32]:
        """Positions of the samples in the whole data set, [n] int32."""
        if (split := self._run_split) is not None:
            return split.test_indices(len(self._dataset.targets), seed=self.fit_seed).astype(np.int32)
        columns = setting_versions.c["sample_indices", "sample_indices_sha256"]
        with self._database.reading() as connection:
            wanted = select(*columns).where(setting_versions.c.id == self._setting_version_id)
            row = connection.execute(wanted).one()
        if row.sample_indices is None:
            return np.arange(self.n, dtype=np.int32)
        if digest(int32_bytes(row.sample_indices)) != row.sample_indices_sha256:
            raise StoreError(f"The sample indices of setting '{self.setting}' are not those that were written.")
        return np.array(row.sample_indices)

    def has_samples_of(self, other: EvaluatedSamples) -> bool:
        """Whether the samples are those of another evaluation of this store, in the same order; no id is read."""
        is_one_set = self._dataset_id == other._dataset_id and self.n == other.n
        return is_one_set and np.array_equal(self.sample_indices(), other.sample_indices())

    @property
    def test_fraction(self) -> float | None:
        """The part of the data that a run evaluates, drawn by its `fit_seed`; None where all runs evaluate the same."""
        return None if self._run_split is None else self._run_split.test_fraction

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the setting's classes, which predictions and targets count."""
        return names_in_subset(self._dataset_classes, self.class_sublist)

    @cached_property
    def _dataset_classes(self) -> list[str]:
        wanted = select(datasets.c.class_names).where(datasets.c.id == self._dataset_id)
        with self._database.reading() as connection:
            return list(connection.execute(wanted).scalar_one())

    @cached_property
    def setting_spec(self) -> dict[str, Any]:
        """The definition of the setting, as it was when it was evaluated."""
        is_its = setting_versions.c.id == self._setting_version_id
        with self._database.reading() as connection:
            return dict(connection.execute(select(setting_versions.c.spec).where(is_its)).scalar_one())

    @cached_property
    def _run_split(self) -> RunSplit | None:
        return RunSplit.of_spec(self.setting_spec)

    @cached_property
    def _dataset(self) -> Row[Any]:
        columns = datasets.c["targets", "sample_ids", "label_sets", "sha256"]
        with self._database.reading() as connection:
            row = connection.execute(select(*columns).where(datasets.c.id == self._dataset_id)).one()
        if not is_as_written(row.sha256, int32_bytes(row.targets), row.sample_ids, *label_bytes(row.label_sets)):
            raise StoreError(
                f"Targets, sample ids or label sets of data set '{self.dataset}' are not those that were written."
            )
        return row
