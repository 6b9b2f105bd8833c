"""What the families of published models share: how many images at once, and what is said of weights that do not fit."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError

from models._checkpoint import check_file, key_faults
from testbed.errors import DataError, DefinitionError

BATCH_SIZE = 64
_SHOWN = 300  # characters of what a library says
_MISSHAPEN = re.compile(r"size mismatch for (\S+): .*?\[(.*?)\]\) from checkpoint, .*?\[(.*?)\]\)")
_LARGE_SIDES = ((512, 8), (384, 16), (288, 32))  # from this many pixels on, fewer images at once


def batch_size(crop_size: tuple[int, int]) -> int:
    """Images per forward pass for images of this height and width."""
    return next((size for side, size in _LARGE_SIDES if max(crop_size) >= side), BATCH_SIZE)


@contextmanager
def reading_weights(name: str, path: Path) -> Iterator[None]:
    """Around a library that reads the parameters of a model: makes one line of whatever goes wrong.

    Raises:
        DataError: the file is missing, or is refused for holding more than tensors.
        DefinitionError: it does not fit the network.
    """
    check_file(path)
    try:
        yield
    except Exception as error:  # whatever a library raises for a file that is not what it takes it for
        if _is_refused(error):
            raise DataError(
                f"The weights of '{name}', {path}, are refused: the file is damaged, or holds pickled objects besides "
                "tensors, which could run code when they are loaded. Where you trust it, load it yourself and save its "
                "state dict, best with safetensors."
            ) from error
        raise DefinitionError(
            f"The weights of '{name}', {path}, do not fit it, {_faults(error)}. Check that they are of this model; a "
            "network with another number of outputs is evaluated as local:PATH with --arch and --num-classes."
        ) from error


def _faults(error: Exception) -> str:
    """What torch says of the keys in a file, counted; the beginning of what another library says."""
    said = " ".join(str(error).split()).rstrip(".")
    misshapen = [f"{key} [{found}] for [{taken}]" for key, found, taken in _MISSHAPEN.findall(said)]
    faults = key_faults(missing=_keys("Missing", said), unexpected=_keys("Unexpected", said), misshapen=misshapen)
    kind = type(error).__name__
    return faults or textwrap.shorten(f"{kind}: {said}" if said else kind, _SHOWN, placeholder=" ...")


def _keys(kind: str, said: str) -> list[str]:
    listed = re.search(rf"{kind} key\(s\) in state_dict: ((?:\"[^\"]*\",? ?)+)", said)
    return re.findall(r'"([^"]*)"', listed[1]) if listed else []


def _is_refused(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, is torch's refusal to unpickle."""
    return error is not None and (
        isinstance(error, UnpicklingError) or _is_refused(error.__cause__ or error.__context__)
    )
