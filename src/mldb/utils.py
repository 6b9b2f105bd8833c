"""Weights by name, for model files written for the ImageNet Testbed; its database of checkpoints is a folder here."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from testbed.data.weights import FOLDER_VARIABLE, checkpoints_root, find_checkpoint
from testbed.errors import DataError


def checkpoint_path(name: str) -> Path:
    """The file of the weights called `name`.

    Raises: DataError: there is none; the message says where to put it.
    """
    path = find_checkpoint(name)
    if path is None:
        raise DataError(
            f"No weights named '{name}' under {checkpoints_root().resolve()}. Put them there as {name}.safetensors, "
            f".pt or .pth, or name another folder with {FOLDER_VARIABLE}."
        )
    return path


def load_model_checkpoint_bytes(name: str) -> io.BytesIO:
    """The bytes of the weights called `name`, as an open buffer."""
    return io.BytesIO(load_model_checkpoint_raw(name))


def load_model_checkpoint_raw(name: str) -> bytes:
    """The bytes of the weights called `name`."""
    return checkpoint_path(name).read_bytes()


def load_model_state_dict(model: Any, name: str) -> None:
    """Loads the weights called `name` into `model`, a torch module. Only tensors are read, never code."""
    from models._checkpoint import load_checkpoint

    load_checkpoint(model, checkpoint_path(name))
