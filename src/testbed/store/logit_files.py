"""A directory of logits that were computed elsewhere: its index and its arrays, checked as they are read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.data.array_files import ArrayArchive, opened_arrays
from testbed.data.json_files import read_json
from testbed.errors import DataError, DefinitionError, reading, suggestion
from testbed.fingerprint import file_sha256
from testbed.signatures import check_name
from testbed.store.transfer import FORMAT, INDEX
from testbed.visible import visible

_README = "See 'Logits from elsewhere' in the README."
_MOST = 2**63 - 1  # that a database counts to


@dataclass(frozen=True, kw_only=True)
class LogitFile:
    """One entry of an index: what was evaluated, and the `.npz` with the answers.

    Args:
        path: of the `.npz`, with `logits` (draws, n, classes) or (n, classes), `targets` (n,) and `sample_ids` (n,); it
            may have `label_sets` (n, labels), as `--save-logits` writes them.
        model: name to enter it under.
        setting: name of a stored setting.
        label_space: of the model; None to take that of the models which were evaluated on the same data.
        version: tells two sets of answers of one model apart.
        fit_seed, noise_seed: of the run.
        numerics: how it was computed, such as dtype and device.
        origin: what else is known of the model: fingerprints, framework, anything that is JSON.
    """

    path: Path
    model: str
    setting: str
    label_space: str | None
    version: str
    fit_seed: int
    noise_seed: int
    numerics: Mapping[str, Any]
    origin: Mapping[str, Any] = field(default_factory=dict)

    def arrays(self) -> tuple[NDArray[Any], list[str]]:
        """The targets and the sample ids. Raises: DataError: they cannot be read, or are of another kind."""
        with self._opened() as archive:
            for name in ("logits", "targets", "sample_ids"):
                if name not in archive.names:
                    raise DataError(f"{self.path} has no array '{name}'. It needs logits, targets and sample_ids.")
            targets, ids = (archive.array(name) for name in ("targets", "sample_ids"))
        if targets.ndim != 1 or targets.dtype.kind not in "iu":
            raise DataError(f"{self.path}: targets are {_kind(targets)}. They must be (n,) whole numbers.")
        if ids.ndim != 1 or ids.dtype.kind != "U":
            raise DataError(
                f"{self.path}: sample_ids are {_kind(ids)}. They must be (n,) text: np.array([...]) of str."
            )
        return targets, ids.tolist()

    def label_sets(self) -> NDArray[Any] | None:
        """All right classes of each sample, where the file tells them. Raises: DataError: they are of another kind."""
        with self._opened() as archive:
            if "label_sets" not in archive.names:
                return None
            sets = archive.array("label_sets")
        if sets.ndim != 2 or sets.dtype.kind not in "iu":
            raise DataError(
                f"{self.path}: label_sets are {_kind(sets)}. They must be (n, labels) whole numbers, filled up with -1."
            )
        return sets

    def shape(self) -> tuple[int, int, int]:
        """Draws, samples and classes of the logits. Raises: DataError: they are something else."""
        with self._opened() as archive, archive.values("logits") as (header, _):
            size = archive.num_bytes("logits")
        shape, is_fortran, dtype = header
        if len(shape) not in (2, 3) or dtype.kind != "f" or is_fortran or not math.prod(shape):
            raise DataError(
                f"{self.path}: logits have the shape {shape} and the type {dtype}{', in Fortran order' * is_fortran}. "
                "They must be (draws, n, classes) or (n, classes) floating-point numbers in C order, and not empty."
            )
        if size != header.num_bytes:
            raise DataError(
                f"{self.path}: logits have the shape {shape} and the type {dtype}, which take {header.num_bytes:,} "
                f"bytes, but {size:,} follow. Write the file again."
            )
        draws, n, classes = (1, *shape) if len(shape) == 2 else shape
        return draws, n, classes

    def draws(self) -> Iterator[NDArray[np.float32]]:
        """The logits [n, classes] of one draw after the other; no more than one of them is in memory.

        Raises: DataError: the file is cut off or damaged, or a number is beyond float32.
        """
        num_draws, n, classes = self.shape()
        with self._opened() as archive, archive.values("logits") as (header, member):
            for _ in range(num_draws):
                content = member.read(n * classes * header.dtype.itemsize)
                with np.errstate(over="ignore"):
                    yield np.frombuffer(content, header.dtype).reshape(n, classes).astype(np.float32)

    def _opened(self) -> AbstractContextManager[ArrayArchive]:
        return opened_arrays(self.path, remedy="Write it with np.savez, without objects.")


def read_index(directory: Path) -> list[LogitFile]:
    """The entries of `index.json`, in its order.

    Raises: DataError: there is no index, or an entry lacks something or names a file that is not beside it.
    """
    path = directory / INDEX
    index = read_json(path, dict, remedy=_README)
    entries = index.get("models")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"{path} has no list 'models' with an object per file. {_README}")
    if index.get("format", FORMAT) != FORMAT:
        raise DataError(f"{path} has the format {index['format']}; this version of the testbed reads {FORMAT}.")
    return [_entry(path, entry) for entry in entries]


_TEXTS = ("model", "eval_setting", "file")
_ASKED = ("label_space", "version", "fit_seed", "noise_seed", "numerics", "sha256", "origin")
_WRITTEN = ("num_draws", "n", "num_classes", "class_names", "stored_as", "model_fingerprint", "setting_fingerprint")
_KNOWN = {*_TEXTS, *_ASKED, *_WRITTEN}  # the last ones are told by --save-logits, and not needed


def _entry(index: Path, entry: Mapping[str, Any]) -> LogitFile:
    if unknown := sorted(set(entry) - _KNOWN):
        raise DataError(f"{index}: an entry has the unknown '{unknown[0]}'. {suggestion(unknown[0], _KNOWN)}".rstrip())
    for name in _TEXTS:
        if not isinstance(entry.get(name), str):
            raise DataError(f"{index}: an entry has no '{name}'. Each needs {', '.join(_TEXTS)}.")
    checks: Sequence[tuple[str, type, Any]] = (
        ("label_space", str, None), ("version", str, ""), ("fit_seed", int, 0), ("noise_seed", int, 0),
        ("numerics", dict, {}),
    )  # fmt: skip
    values = {name: entry.get(name, default) for name, _, default in checks}
    for name, kind, default in checks:
        if not isinstance(values[name], kind) and values[name] is not default:
            raise DataError(f"{index}: '{name}' of '{entry['model']}' is {values[name]!r}. It must be {kind.__name__}.")
    for name in (*_TEXTS, "label_space", "version"):
        if visible(str(entry.get(name))) != str(entry.get(name)):
            raise DataError(f"{index}: '{name}' is {entry[name]!r}, with characters that are not for show. Change it.")
    if not all(0 <= values[name] <= _MOST for name in ("fit_seed", "noise_seed")):
        raise DataError(f"{index}: '{entry['model']}' has a seed that is none. Seeds count from 0 to {_MOST}.")
    try:
        check_name(entry["model"], what="Model")
    except DefinitionError as error:
        raise DataError(f"{index}: {error}") from error
    path = index.parent / entry["file"]
    with reading(path, kind="a file", remedy="Check its name and its permissions."):
        if Path(entry["file"]).name != entry["file"] or not path.is_file():
            raise DataError(f"{index}: there is no file '{entry['file']}' beside it.")
        sha256 = None if entry.get("sha256") is None else file_sha256(path)
    if entry.get("sha256") != sha256:
        raise DataError(f"{path} is not the file that the index describes (its sha256 differs). Write both again.")
    origin = {name: value for name, value in entry.items() if name.endswith("fingerprint") or name == "origin"}
    return LogitFile(path=path, model=entry["model"], setting=entry["eval_setting"], origin=origin, **values)


def _kind(array: NDArray[Any]) -> str:
    return f"of shape {array.shape} and type {array.dtype}"
