"""Decoded images, once: each split of a data set under each transform is one array on disk that all workers map."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from models.model_base import StandardTransform
from testbed.data.bankfile import BankFile, Form
from testbed.data.banksamples import open_samples
from testbed.data.decoding import DECODING_VERSION
from testbed.data.imagepipeline import Pipeline
from testbed.data.pipelines import Recipe, recipe_pipeline
from testbed.errors import DataError
from testbed.fingerprint import fingerprint

_BANK_VERSION = 1


class SampleArray(Protocol):
    """Samples that can be asked for by position, like an array's rows."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def __getitem__(self, indices: Any) -> NDArray[Any]: ...


@dataclass(frozen=True, kw_only=True)
class Bank:
    """Where the decoded samples of a split lie; a plain value that can be sent to worker processes.

    Args:
        path: the .npy file, which has this name when all samples are in it.
        shape: [n, C, H, W], or [n, D] for rows of numbers; the index of a sample is its position in the split.
        dtype: 'uint8' for pixels 0..255, or 'float32': images in [0, 1], rows of any range.
        fingerprint: of the samples, the transforms and the decoder.
        recipe: where the samples come from, for any process; None where the plan's alone knows.
        samples_fingerprint: of the samples that were there when the plan was made.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    fingerprint: str
    recipe: Recipe | None = None
    samples_fingerprint: str = ""

    def open(self) -> SampleArray:
        """The samples, each of which is checked at its first use. Raises: DataError: the file is gone or damaged."""
        return open_samples(BankFile(Path(self.path)), Form(self.shape, self.dtype), self.pipeline)

    def pipeline(self) -> Pipeline:
        """What the samples are decoded by. Raises: DataError: the samples have changed, or are gone."""
        if self.recipe is None:
            raise DataError(f"The image bank {self.path} is damaged. Delete it and run again.")
        pipeline = recipe_pipeline(self.recipe)
        if pipeline.samples.fingerprint != self.samples_fingerprint:
            raise DataError(f"The samples of '{self.recipe.setting}' changed during the run. Run again.")
        return pipeline

    def is_complete(self) -> bool:
        """Whether all samples are decoded and on disk."""
        return Path(self.path).exists()


def bank_fingerprint(pipeline: Pipeline, transform_identity: str) -> str:
    """SHA-256 (hex) of all that decoded samples depend on.

    Args:
        pipeline: the samples and their transforms.
        transform_identity: content (e.g. SHA-256 of the source file) behind transforms other than StandardTransform.
    """
    return fingerprint(
        {
            "version": _BANK_VERSION,
            "decoding": DECODING_VERSION,
            "samples": pipeline.samples.fingerprint,
            "color_mode": pipeline.samples.color_mode,
            "canonical_size": pipeline.canonical_size,
            "setting_transform": _transform_spec(pipeline.setting_transform, transform_identity),
            "model_transform": _transform_spec(pipeline.model_transform, transform_identity),
            "libraries": {name: _installed(name) for name in ("pillow", "torchvision")},
        }
    )


@cache
def _installed(package: str) -> str:
    """The version of a library; it is looked for on disk, and a plan asks for each pair of model and setting."""
    return version(package)


def _transform_spec(transform: Callable[..., Any] | None, identity: str) -> Any:
    if transform is None:
        return None
    kind = transform if hasattr(transform, "__qualname__") else type(transform)
    spec = {"module": kind.__module__, "name": kind.__qualname__}
    if isinstance(transform, StandardTransform):
        return {**spec, "fields": asdict(transform)}
    without_address = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(transform))
    return {**spec, "fields": without_address, "identity": identity}
