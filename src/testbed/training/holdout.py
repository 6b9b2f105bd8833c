"""What is learned from, and what decides which epoch is kept: never the split that is evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval_settings.dataset_base import Dataset
from testbed.data.datasets import load_samples
from testbed.errors import DataError
from testbed.randomness import permutation, stream_key
from testbed.records import Samples
from testbed.training.recipe import Recipe

VALIDATION_SPLIT = "validation"


@dataclass(frozen=True, kw_only=True)
class Learning:
    """What a network is trained with.

    Args:
        fit: the images to learn from.
        indices: [n] their positions in the whole fit split.
        validation: what decides which epoch is kept; None where the recipe keeps the last one.
    """

    fit: Samples
    indices: NDArray[np.int64]
    validation: Samples | None


def learning_samples(dataset: Dataset, recipe: Recipe, *, data_root: Path | None) -> Learning:
    """The fit split and the split 'validation'; without such a split a keyed part of the fit split is held out for it.

    The same images are held out for every network, whatever its seed. Where the recipe keeps the last epoch all of the
    fit split is learned from.

    Raises: DataError: data that cannot be loaded, or too few to hold any out.
    """
    fit = load_samples(dataset, dataset.fit_split or "", data_root=data_root)
    everything = np.arange(len(fit))
    if recipe.keep == "last":
        return Learning(fit=fit, indices=everything, validation=None)
    if VALIDATION_SPLIT in dataset.splits:
        validation = load_samples(dataset, VALIDATION_SPLIT, data_root=data_root)
        return Learning(fit=fit, indices=everything, validation=validation)
    held_out, rest = held_out_indices(fit, fraction=recipe.validation_fraction)
    return Learning(fit=fit.take(rest), indices=rest, validation=fit.take(held_out))


def held_out_indices(fit: Samples, *, fraction: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of the samples that are held out, and of the rest, both in ascending order.

    Raises: DataError: one of the two would be empty.
    """
    key = stream_key(0, purpose="split", dataset=fit.dataset, stream=VALIDATION_SPLIT)
    order, count = permutation(key, len(fit)), round(fraction * len(fit))
    if not 0 < count < len(fit):
        raise DataError(
            f"A part of {fraction:g} of the {len(fit)} samples of '{fit.dataset}' ({fit.split}) is {count}: nothing is "
            "left to choose an epoch by, or to learn from. Change --validation-fraction, or give --keep last."
        )
    return np.sort(order[:count]), np.sort(order[count:])
