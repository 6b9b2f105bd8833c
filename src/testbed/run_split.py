"""The part of a data set that one run evaluates, where every run splits the data anew."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.errors import DefinitionError


@dataclass(frozen=True, kw_only=True)
class RunSplit:
    """A random split of the data set in every run, from the run's seed alone.

    It is scikit-learn's `train_test_split(x, y, test_size=test_fraction, random_state=seed)`, not stratified, so that
    published runs can be repeated seed by seed.

    Args:
        test_fraction: part of the samples that is evaluated, rounded up; models are fitted on the rest.
        limit: evaluate only so many of these; None for all.
    Source: Siedel et al. 2022, their code for the two-dimensional data sets (test_size=0.2).
    """

    test_fraction: float
    limit: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.test_fraction < 1:
            raise DefinitionError(f"test_fraction is {self.test_fraction}. It must be between 0 and 1.")

    def num_test(self, num_samples: int) -> int:
        """How many samples a run evaluates."""
        num_test = math.ceil(self.test_fraction * num_samples)
        return num_test if self.limit is None else min(self.limit, num_test)

    def test_indices(self, num_samples: int, *, seed: int) -> NDArray[np.int64]:
        """Positions of the evaluated samples among `num_samples`, in the order of the split; [num_test] int64."""
        return self._order(num_samples, seed)[: self.num_test(num_samples)]

    def fit_indices(self, num_samples: int, *, seed: int) -> NDArray[np.int64]:
        """Positions of the samples that models are fitted on, whatever the limit; [num_samples - num_test] int64."""
        return self._order(num_samples, seed)[math.ceil(self.test_fraction * num_samples) :]

    @staticmethod
    def _order(num_samples: int, seed: int) -> NDArray[np.int64]:
        if seed >= 1 << 32:
            raise DefinitionError(f"Seed {seed} is too large to split a data set by. Use seeds below 2**32.")
        # numpy keeps the stream of this generator for good (NEP 19), so a stored run always has the same samples
        return np.random.RandomState(seed).permutation(num_samples).astype(np.int64)

    @classmethod
    def of_spec(cls, spec: Any) -> RunSplit | None:
        """The split in the definition of a stored setting; None where all runs evaluate the same samples."""
        return cls(**spec["run_split"]) if "run_split" in spec else None
