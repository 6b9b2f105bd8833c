"""Published corrupted copies of a data set's samples, such as CIFAR-10-C: loaded, and compared with the clean ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eval_settings.dataset_base import CorruptedCopies, Dataset
from testbed import paths
from testbed.data.published_files import read_bytes
from testbed.errors import DataError, DefinitionError, UnknownNameError, suggestion
from testbed.metrics.corruption import COMMON, EXTRA
from testbed.records import Samples
from testbed.users_code import asked

# What CIFAR-10-C, CIFAR-100-C, Tiny-ImageNet-C and ImageNet-C are published with.
COMMON_CORRUPTIONS: Mapping[str, tuple[int, ...]] = dict.fromkeys((*COMMON, *EXTRA), (1, 2, 3, 4, 5))


def corrupted_samples(
    dataset: Dataset,
    clean: Samples,
    corruption: str,
    severity: int | None,
    *,
    suffix: str = "c",
    data_root: Path | None = None,
) -> Samples:
    """The published copies of `clean` under a corruption: as many samples, in the same order, under the same ids.

    Args:
        dataset: whose copies they are (`Dataset.corrupted`).
        clean: the samples that they are copies of.
        corruption, severity: which; None for one without severities.
        suffix: of the set of copies, where there are several.
        data_root: folder that holds data sets; TESTBED_DATA, or `data`, if None.
    Raises:
        UnknownNameError, DefinitionError: there is no such corruption or severity.
        DataError: missing or damaged, of other samples than the clean ones, or not corrupted at all.
    """
    copies = check_published(dataset, corruption, severity, suffix=suffix)
    what = f"{copies.title} ({_spelled(corruption, severity)})"
    root = data_root or paths.data_root()
    load = partial(copies.load, clean=clean, corruption=corruption, severity=severity, data_root=root)
    samples = asked(load, what=f"The loader of {what}")
    if not isinstance(samples, Samples) or samples.sample_ids != clean.sample_ids:
        raise DefinitionError(f"{what}: its loader must return Samples with the ids of the clean ones, in their order.")
    if not np.array_equal(samples.targets, clean.targets):
        raise DataError(f"{what}: its labels are not those of '{clean.dataset}' ({clean.split}). Get it again.")
    if _are_equal(samples, clean):
        raise DataError(
            f"{what}: all {len(clean):,} images equal the clean ones, so nothing was corrupted. It was made or "
            "unpacked wrongly: get it again."
        )
    return replace(samples, split=f"{copies.title}/{_spelled(corruption, severity)}")


def check_published(dataset: Dataset, corruption: str, severity: int | None, *, suffix: str = "c") -> CorruptedCopies:
    """The copies; raises an error unless the corruption is published at the severity, which says what is."""
    copies = dataset.copies.get(suffix)
    if copies is None:
        raise DefinitionError(
            f"Data set '{dataset.name}' has no published corrupted copies. Simulate the corruption: "
            f"{dataset.name}-c.{_spelled(corruption, severity)}_in-memory."
        )
    severities = copies.severities.get(corruption)
    if severities is None:
        hint = suggestion(corruption, copies.severities) or f"It has {', '.join(copies.severities)}."
        raise UnknownNameError(f"{copies.title} has no corruption '{corruption}'. {hint}")
    if severity in severities or (severity is None and not severities):
        return copies
    wanted = "without a severity" if severity is None else f"at severity {severity}"
    stem = f"{dataset.name}-{suffix}"
    names = [f"{stem}.{_spelled(corruption, published)}_on-disk" for published in severities or (None,)]
    raise DefinitionError(f"{copies.title} has no '{corruption}' {wanted}. It has {', '.join(names)}.")


def _spelled(corruption: str, severity: int | None) -> str:
    return corruption if severity is None else f"{corruption}.{severity}"


def _are_equal(samples: Samples, clean: Samples) -> bool:
    """Whether every sample is the clean one: the same pixels, or the same file. Stops at the first that is not."""
    copies, originals = samples.items, clean.items
    if isinstance(copies, np.ndarray) and isinstance(originals, np.ndarray):
        return np.array_equal(copies, originals)
    if isinstance(copies, np.ndarray) or isinstance(originals, np.ndarray):
        return False
    return all(_content(copy) == _content(original) for copy, original in zip(copies, originals, strict=True))


def _content(item: Any) -> bytes:
    return read_bytes(item) if isinstance(item, Path) else bytes(item.tobytes())
