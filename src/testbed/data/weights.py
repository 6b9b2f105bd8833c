"""Trained parameters that do not come with the testbed: under checkpoints/, or on the Hugging Face hub."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import DataError
from testbed.offline import NO_DOWNLOAD_VARIABLE, downloads_are_forbidden

FOLDER_VARIABLE = "TESTBED_CHECKPOINTS"
SUFFIXES = (".safetensors", ".pt", ".pth", ".pth.tar", ".bin", "")


def checkpoints_root() -> Path:
    """The folder of trained parameters: TESTBED_CHECKPOINTS, else `checkpoints` in the current folder."""
    return Path(os.environ.get(FOLDER_VARIABLE) or "checkpoints").expanduser()


def find_checkpoint(name: str) -> Path | None:
    """The file under `checkpoints_root` that is called `name`, with any usual ending; None where there is none."""
    candidates = (checkpoints_root() / f"{name}{suffix}" for suffix in SUFFIXES)
    return next((path for path in candidates if path.is_file()), None)


@dataclass(frozen=True, kw_only=True)
class HubFile:
    """A file on the Hugging Face hub.

    Args:
        repository: OWNER/NAME.
        revision: a whole commit hash: the file can then never change, and is asked for once.
        name: of the file.
    """

    repository: str
    revision: str
    name: str = "pytorch_model.bin"

    def path(self) -> Path:
        """Where the file lies in the hub's own cache, fetched if need be.

        Raises: DataError: it is not there and cannot be fetched.
        """
        is_forbidden = downloads_are_forbidden()
        try:
            from huggingface_hub import hf_hub_download

            found: str = hf_hub_download(
                self.repository, self.name, revision=self.revision, local_files_only=is_forbidden
            )
        except Exception as error:  # those of several libraries, which differ between their versions
            said = " ".join(str(error).split()).split(". ")[0].rstrip(".") or type(error).__name__
            reason = f"downloads are forbidden ({NO_DOWNLOAD_VARIABLE})" if is_forbidden else said
            raise DataError(f"'{self.repository}' cannot be fetched: {reason}.") from error
        return Path(found)


@dataclass(frozen=True, kw_only=True)
class FoundWeights:
    """The parameters of a model, looked for when they are needed: `weights` of a `Model`.

    Args:
        model, label_space: whose.
        hub: where they are fetched from, if they are not under checkpoints/; None where nobody publishes them.
    """

    model: str
    label_space: str
    hub: HubFile | None = None

    @property
    def name(self) -> str:
        """What the file is called under checkpoints/, without its ending."""
        return f"{self.model}-{self.label_space}"

    def __call__(self) -> Path:
        """The file under checkpoints/, else that of the hub.

        Raises: DataError: there is none; the message names the ways to get one.
        """
        if (path := find_checkpoint(self.name)) is not None:
            return path
        if self.hub is None:
            raise self._missing(f"train it: python train.py --model {self.model} --dataset {self.label_space}.")
        try:
            return self.hub.path()
        except DataError as error:
            raise self._missing(f"let it be fetched from the hub; but {error}") from error

    def _missing(self, third_way: str) -> DataError:
        file = checkpoints_root().absolute() / self.name
        return DataError(
            f"Model '{self.model}' (label space {self.label_space}) has no weights. There are three ways: name a file "
            f"with --weights {self.model}=FILE; put one at {file}.safetensors, .pt, .pth or .bin; or {third_way}"
        )
