"""Blocks of samples through their transforms, and one report of all files that cannot be decoded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.data.bankfile import Form
from testbed.data.imagepipeline import DamagedFile, Pipeline
from testbed.errors import DataError
from testbed.records import Samples


def bank_form(pipeline: Pipeline) -> Form:
    """Shape and dtype of all samples, from the first that can be decoded.

    Raises: DataError: none can. DefinitionError: a transform fails on it.
    """
    _, sample = _first_sample(pipeline)
    return Form((len(pipeline.samples), *sample.shape), sample.dtype.name)


def decode_block(pipeline: Pipeline, indices: Iterable[int], form: Form) -> NDArray[Any] | list[DamagedFile]:
    """The samples at `indices` as one array; or the files among them that cannot be decoded.

    Raises: DataError: samples of different shapes. DefinitionError: a transform that fails.
    """
    samples, damaged = [], []
    for index in indices:
        sample = pipeline.sample(index)
        if isinstance(sample, DamagedFile):
            damaged.append(sample)
            continue
        if sample.shape != form.shape[1:]:
            pipeline.check_same_shape(index, sample, *_first_sample(pipeline))
        samples.append(sample)
    return damaged or np.stack(samples)


def decode_all(pipeline: Pipeline, *, num_threads: int) -> NDArray[Any]:
    """All samples in memory. Raises: as `decode_block`; DataError: damaged files, counted and the first few named."""
    form = bank_form(pipeline)
    with ThreadPoolExecutor(num_threads) as pool:
        decoded = pool.map(lambda number: decode_block(pipeline, form.block(number), form), range(form.num_blocks))
        blocks = list(decoded)
    if damaged := [each for block in blocks if isinstance(block, list) for each in block]:
        raise DataError(damage_report(pipeline.samples, damaged))
    return np.concatenate([block for block in blocks if not isinstance(block, list)])


def damage_report(samples: Samples, damaged: Sequence[DamagedFile]) -> str:
    """How many files cannot be decoded, and why the first few cannot."""
    first = sorted(damaged, key=lambda each: each.index)[:3]
    named = " ".join(f"Index {each.index}: {each.reason}" for each in first)
    return (
        f"{len(damaged)} of the {len(samples)} files of data set '{samples.dataset}' ({samples.split}) cannot be "
        f"decoded. {named}{' ...' if len(damaged) > 3 else ''} Replace or remove the files: none is skipped silently."
    )


def _first_sample(pipeline: Pipeline) -> tuple[int, NDArray[Any]]:
    damaged = []
    for index in range(len(pipeline.samples)):
        sample = pipeline.sample(index)
        if not isinstance(sample, DamagedFile):
            return index, sample
        damaged.append(sample)
    raise DataError(damage_report(pipeline.samples, damaged))
