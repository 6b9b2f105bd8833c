"""How sure an interval is to be, and which samples belong together: what a user may ask of any comparison."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from testbed.errors import DataError, suggestion
from testbed.metrics.factors import Factors
from testbed.metrics.intervals import Side, tails
from testbed.records import IntArray
from testbed.store.evaluation import Evaluation

SHOWN = 3  # sample ids in a message


@dataclass(frozen=True, kw_only=True)
class Precision:
    """The intervals that are asked for.

    Args:
        confidence: of each.
        is_one_sided: one bound with the whole error on it, on the side that matters: accuracy at least, loss at most.
        cluster_by: what samples belong together by, such as a patient; empty for nothing.
        clusters: the label of each sample id, where there is such a thing.
    """

    confidence: float = 0.95
    is_one_sided: bool = False
    cluster_by: str = ""
    clusters: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tails(self.confidence)

    @classmethod
    def of_table(
        cls, file: Path, cluster_by: str, *, confidence: float = 0.95, is_one_sided: bool = False
    ) -> Precision:
        """Intervals over the clusters that a table of samples names.

        Args:
            file: CSV with a column `sample_id` and others.
            cluster_by: name of the column with the clusters.
        Raises: DataError: the file cannot be read, has no such column, or names a sample twice or without a cluster.
        """
        clusters = _read_clusters(file, cluster_by)
        return cls(confidence=confidence, is_one_sided=is_one_sided, cluster_by=cluster_by, clusters=clusters)

    def side(self, one_sided: Side) -> Side:
        """The side of an interval, which is `one_sided` where one bound is asked for."""
        return one_sided if self.is_one_sided else "both"

    def factors(self, fits: Sequence[Evaluation]) -> Factors:
        """What varies by chance in a model's runs on a setting; frames belong together by sequence, unless by more.

        Args:
            fits: one evaluation of each run that fits a model. They see the same samples or, where the setting splits
                its data set anew in every run, each another part of them.
        Raises: DataError: a sample is in no cluster.
        """
        plain = Factors(confidence=self.confidence)
        fraction = fits[0].test_fraction
        if fraction is None or len(fits) == 1:
            return plain.of(clusters=self._labels(fits[0].sample_ids()) if self.cluster_by else _sequences(fits[0]))
        indices: IntArray = np.array([fit.sample_indices() for fit in fits])
        distinct, samples = np.unique(indices, return_inverse=True)
        labels = None
        if self.cluster_by:
            names = {
                index: name for fit in fits for index, name in zip(fit.sample_indices(), fit.sample_ids(), strict=True)
            }
            labels = self._labels([names[index] for index in distinct])
        return plain.of(
            samples=samples.reshape(indices.shape), num_samples=len(distinct), resplit=fraction / (1 - fraction),
            clusters=labels,
        )  # fmt: skip

    def _labels(self, sample_ids: Sequence[str]) -> list[str]:
        missing = [name for name in sample_ids if name not in self.clusters]
        if missing:
            raise DataError(
                f"{len(missing)} of {len(sample_ids)} samples have no row in the table of samples, among them "
                f"{', '.join(missing[:SHOWN])}. --cluster-by {self.cluster_by} needs the column sample_id to name them "
                "all; the ids are in the files of db.py --save-logits."
            )
        labels = [self.clusters[name] for name in sample_ids]
        if len(set(labels)) < 2:
            raise DataError(
                f"All {len(labels)} samples have {self.cluster_by} {labels[0]}, and one cluster says nothing about how "
                "clusters differ. Choose a column with several values."
            )
        return labels


def _sequences(evaluation: Evaluation) -> IntArray | None:
    """The sequences that samples are frames of, where there are several."""
    found = evaluation.sequences()
    return None if found is None or found.max() == 0 else found


def _read_clusters(file: Path, cluster_by: str) -> dict[str, str]:
    try:
        with open(file, encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            columns = list(reader.fieldnames or ())
            for name in ("sample_id", cluster_by):
                if name not in columns:
                    told = f"{suggestion(name, columns)} Its columns: {', '.join(columns) or 'none'}.".strip()
                    raise DataError(f"{file} has no column '{name}'. {told}")
            rows = [(row["sample_id"], row[cluster_by]) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file} cannot be read as a CSV table: {error}. Give --sample-table a CSV file.") from error
    clusters: dict[str, str] = {}
    for name, label in rows:
        if not label:
            raise DataError(f"{file}: sample {name} has no {cluster_by}. Give every sample one, or leave its row out.")
        if clusters.setdefault(name, label) != label:
            raise DataError(f"{file}: sample {name} has {cluster_by} {clusters[name]} and {label}. Give it one.")
    return clusters
