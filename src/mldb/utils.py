"""Weights by name, for model files written for the ImageNet Testbed; its database of checkpoints is a folder here."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from testbed.errors import DataError

FOLDER_VARIABLE = "TESTBED_CHECKPOINTS"
SUFFIXES = (".safetensors", ".pt", ".pth", ".pth.tar", ".bin", "")


def checkpoint_path(name: str) -> Path:
    """The file of the weights called `name`.

    Raises: DataError: there is none; the message says where to put it.
    """
    folder = Path(os.environ.get(FOLDER_VARIABLE) or "checkpoints")
    candidates = [folder / f"{name}{suffix}" for suffix in SUFFIXES]
    for path in candidates:
        if path.is_file():
            return path
    raise DataError(
        f"No weights named '{name}' under {folder.resolve()}. Put them there as {name}.safetensors, .pt or .pth, or "
        f"name another folder with {FOLDER_VARIABLE}."
    )


def load_model_checkpoint_bytes(name: str) -> io.BytesIO:
    """The bytes of the weights called `name`, as an open buffer."""
    return io.BytesIO(checkpoint_path(name).read_bytes())


def load_model_state_dict(model: Any, name: str) -> None:
    """Loads the weights called `name` into `model`, a torch module. Only tensors are read, never code."""
    from models._checkpoint import load_checkpoint

    load_checkpoint(model, checkpoint_path(name))
