"""Dictionaries of arrays in .npz and .npy files, as CIFAR-10.2 is published.

numpy pickles a dictionary into an .npy file, and pickles may run any code: these are read by an unpickler that knows
arrays of numbers and text, lists and dictionaries, and nothing else.
"""

from __future__ import annotations

import re
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np

from testbed.data.cifar import ArrayUnpickler
from testbed.errors import DataError

_PLAIN = re.compile(r"[<>|=]?([biuf][1248]|[US]\d+|O8?)")


def read_dictionary(path: Path) -> dict[str, Any]:
    """The entries of an .npz file, or of the dictionary in an .npy file.

    Raises: DataError: it cannot be read, or holds something else than a dictionary of plain values.
    """
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        return dict(_unpickled(path))
    except Exception as error:  # damaged files make numpy and pickle raise nearly anything
        raise DataError(f"Cannot read {path} as a dictionary of arrays ({error}). Get the file again.") from error


def _unpickled(path: Path) -> Any:
    with open(path, "rb") as stream:
        version = np.lib.format.read_magic(stream)
        is_first = version == (1, 0)
        read_header = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        if dtype != np.dtype("O") or shape:
            raise UnpicklingError(f"an array of {dtype} and shape {shape}")
        return _PlainUnpickler(stream).load().item()


def _dtype(code: bytes | str, *_: object) -> np.dtype[Any]:
    text = code.decode() if isinstance(code, bytes) else code
    if not _PLAIN.fullmatch(text):
        raise UnpicklingError(f"an array of {text!r}")
    return np.dtype(text, copy=True)  # a new one, for the pickle writes into it


class _PlainUnpickler(ArrayUnpickler):
    """Reads arrays of numbers, text and plain values too."""

    def find_class(self, module: str, name: str) -> Any:
        return _dtype if (module, name) == ("numpy", "dtype") else super().find_class(module, name)
