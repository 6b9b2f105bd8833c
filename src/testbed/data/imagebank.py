"""Decoded images, once: each split of a data set under each transform is one array on disk that all workers map."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from models.model_base import StandardTransform
from testbed.data.decoding import DECODING_VERSION
from testbed.data.imagepipeline import DamagedFile, Pipeline
from testbed.errors import DataError
from testbed.fingerprint import fingerprint
from testbed.paths import HOME_VARIABLE, cache_folder, replacing
from testbed.records import Samples

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

_BANK_VERSION = 1
_DISK_REMEDY = f"Free some space, or set {HOME_VARIABLE} to a folder on another disk."
_BLOCK = 128  # samples that are decoded before they are written together


@dataclass(frozen=True, kw_only=True)
class Bank:
    """Where the decoded samples of a split lie; a plain value that can be sent to worker processes.

    Args:
        path: the .npy file.
        shape: [n, C, H, W], or [n, D] for rows of numbers; the index of a sample is its position in the split.
        dtype: 'uint8' for pixels 0..255, or 'float32': images in [0, 1], rows of any range.
        fingerprint: of the samples, the transforms and the decoder.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    fingerprint: str

    def open(self) -> np.memmap[Any, Any]:
        """The samples, mapped read-only: pages are read when touched and shared between processes."""
        array = np.load(self.path, mmap_mode="r")
        if not isinstance(array, np.memmap):
            raise DataError(f"The image bank {self.path} is empty. Delete it and run again.")
        return array


def build_bank(
    samples: Samples,
    *,
    setting_transform: Callable[[Image], Image] | None,
    model_transform: Callable[[Image], Tensor] | None,
    canonical_size: int | None,
    cache_root: Path,
    progress: Callable[[int], None] | None = None,
    num_threads: int = 1,
    transform_identity: str = "",
) -> Bank:
    """The bank of a split under its transforms; built if it is not in the cache yet.

    Samples pass the canonical transform, then the setting's, then the model's. They are stored as uint8 where that
    ends in 8-bit pixels, which is exact, else as float32. Several processes may build the same bank at once.

    Args:
        samples: the whole split.
        setting_transform: PIL image -> PIL image, or None.
        model_transform: PIL image -> float tensor [C, H, W] in [0, 1], or None for the image's own pixels.
        canonical_size: side of the canonical space in pixels, where the images are to be brought there; or None.
        cache_root: see `testbed.paths.cache_root`.
        progress: is told how many more samples are done, n altogether.
        num_threads: threads that decode.
        transform_identity: content (e.g. SHA-256 of the source file) behind transforms other than StandardTransform.
    Raises:
        DataError: damaged files, counted and the first few named; samples of different shapes; too little disk space.
        DefinitionError: a transform that fails, or gives anything but [C, H, W] in [0, 1].
    """
    pipeline = Pipeline(
        samples=samples,
        canonical_size=canonical_size,
        setting_transform=setting_transform,
        model_transform=model_transform,
    )
    key = _bank_fingerprint(pipeline, transform_identity)
    path = cache_folder(cache_root, "bank") / f"{key}.npy"
    bank = _existing(path, key, len(samples))
    if bank is None:
        with ThreadPoolExecutor(max_workers=num_threads) as pool:
            _write(path, _blocks(pipeline, pool, progress), len(samples))
        bank = _existing(path, key, len(samples))
    elif progress is not None:
        progress(len(samples))
    if bank is None:
        raise DataError(f"The image bank {path} vanished while it was written. Run again.")
    return bank


def _bank_fingerprint(pipeline: Pipeline, transform_identity: str) -> str:
    return fingerprint(
        {
            "version": _BANK_VERSION,
            "decoding": DECODING_VERSION,
            "samples": pipeline.samples.fingerprint,
            "color_mode": pipeline.samples.color_mode,
            "canonical_size": pipeline.canonical_size,
            "setting_transform": _transform_spec(pipeline.setting_transform, transform_identity),
            "model_transform": _transform_spec(pipeline.model_transform, transform_identity),
            "libraries": {name: version(name) for name in ("pillow", "torchvision")},
        }
    )


def _transform_spec(transform: Callable[..., Any] | None, identity: str) -> Any:
    if transform is None:
        return None
    kind = transform if hasattr(transform, "__qualname__") else type(transform)
    spec = {"module": kind.__module__, "name": kind.__qualname__}
    if isinstance(transform, StandardTransform):
        return {**spec, "fields": asdict(transform)}
    without_address = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(transform))
    return {**spec, "fields": without_address, "identity": identity}


def _existing(path: Path, key: str, num_samples: int) -> Bank | None:
    """The bank in the cache; None where there is none, or a file that is not whole."""
    try:
        array = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return None
    if len(array) != num_samples:
        return None
    return Bank(path=str(path), shape=array.shape, dtype=array.dtype.name, fingerprint=key)


def _write(path: Path, blocks: Iterator[NDArray[Any]], num_samples: int) -> None:
    """Writes the blocks as one .npy file, in order: a full disk is then an error, where a mapped file would crash."""
    first = next(blocks)
    needed = num_samples * first[0].nbytes
    free = shutil.disk_usage(path.parent).free
    if needed > free:
        raise DataError(
            f"The decoded images need {needed / 1e9:.1f} GB but {path.parent} has {free / 1e9:.1f} GB free. "
            + _DISK_REMEDY
        )
    header = {
        "descr": np.lib.format.dtype_to_descr(first.dtype),
        "fortran_order": False,
        "shape": (num_samples, *first.shape[1:]),
    }
    try:
        with replacing(path) as temporary, open(temporary, "wb") as stream:
            np.lib.format.write_array_header_2_0(stream, header)
            for block in chain([first], blocks):
                stream.write(block.data)
    except OSError as error:
        raise DataError(f"Cannot write the image bank {path} ({error.strerror}). {_DISK_REMEDY}") from error


def _blocks(
    pipeline: Pipeline, pool: ThreadPoolExecutor, progress: Callable[[int], None] | None
) -> Iterator[NDArray[Any]]:
    """The transformed samples in order. Damage is reported when all samples have been tried, so that all of it is."""
    damaged: list[DamagedFile] = []
    first: tuple[int, NDArray[Any]] | None = None
    num_samples = len(pipeline.samples)
    for start in range(0, num_samples, _BLOCK):
        indices = range(start, min(start + _BLOCK, num_samples))
        results = list(pool.map(pipeline.sample, indices))
        damaged += [result for result in results if isinstance(result, DamagedFile)]
        arrays = {i: result for i, result in zip(indices, results, strict=True) if not isinstance(result, DamagedFile)}
        for index, array in arrays.items():
            first = first or (index, array)
            pipeline.check_same_shape(index, array, *first)
        if progress is not None:
            progress(len(indices))
        if not damaged:
            yield np.ascontiguousarray(np.stack(list(arrays.values())))
    if damaged:
        raise DataError(_damage_report(pipeline.samples, damaged))


def _damage_report(samples: Samples, damaged: list[DamagedFile]) -> str:
    named = " ".join(f"Index {damage.index}: {damage.reason}" for damage in damaged[:3])
    return (
        f"{len(damaged)} of the {len(samples)} files of data set '{samples.dataset}' ({samples.split}) cannot be "
        f"decoded. {named}{' ...' if len(damaged) > 3 else ''} Replace or remove the files: none is skipped silently."
    )
