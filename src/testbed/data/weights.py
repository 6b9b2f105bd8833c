"""Trained parameters that do not come with the testbed: under checkpoints/, in libraries' caches, or published."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from testbed.data.download import retrieve
from testbed.errors import DataError
from testbed.offline import why_hub_is_offline, why_nothing_is_downloaded

FOLDER_VARIABLE = "TESTBED_CHECKPOINTS"
SUFFIXES = (".safetensors", ".pt", ".pth", ".pth.tar", ".bin", "")
_SHA256_DIGITS = re.compile(r"-([0-9a-f]{8,64})\.")  # as torch.hub reads them in the name of a file
_TIMEOUT = 10  # seconds without an answer
_FROM_HUB = "let it be fetched from the hub"


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
        revision: a whole commit hash, of which the file can never change; or a branch, of which the file is kept that
            was fetched first.
        name: of the file.
    """

    repository: str
    revision: str = "main"
    name: str = "pytorch_model.bin"

    @property
    def address(self) -> str:
        """Where people get it."""
        from huggingface_hub import hf_hub_url

        return hf_hub_url(self.repository, self.name, revision=self.revision)

    def cached(self) -> Path | None:
        """Where the file lies in the hub's own cache; None where it does not. Asks no network."""
        try:
            return self._download(local_files_only=True)
        except Exception:  # those of several libraries, which differ between their versions
            return None

    def fetched(self) -> Path | None:
        """The file, fetched; None where the repository has no such file. Tried once, without waiting for a network.

        Raises: DataError: it cannot be fetched; the message is a reason.
        """
        if (reason := why_hub_is_offline()) is not None:
            raise DataError(reason)
        try:
            from huggingface_hub import get_hf_file_metadata

            get_hf_file_metadata(
                self.address, timeout=_TIMEOUT
            )  # fails at once, where a download tries again and again
            print(f"Downloading {self.address}", file=sys.stderr, flush=True)
            return self._download(local_files_only=False)
        except Exception as error:
            if type(error).__name__ in ("EntryNotFoundError", "RemoteEntryNotFoundError"):
                return None
            said = " ".join(str(error).split()).split(". ")[0].rstrip(".") or type(error).__name__
            raise DataError(said) from error

    def path(self) -> Path:
        """Where the file lies in the hub's own cache, fetched if need be.

        Raises: DataError: it is not there and cannot be fetched.
        """
        try:
            found = self.cached() or self.fetched()
        except DataError as error:
            raise DataError(f"'{self.repository}' cannot be fetched: {error}.") from error
        if found is None:
            raise DataError(f"'{self.repository}' cannot be fetched: it has no file {self.name}.")
        return found

    def _download(self, *, local_files_only: bool) -> Path:
        from huggingface_hub import hf_hub_download

        return Path(
            hf_hub_download(self.repository, self.name, revision=self.revision, local_files_only=local_files_only)
        )


@dataclass(frozen=True, kw_only=True)
class UrlFile:
    """A file at an address, kept where torch.hub keeps it; its name may end in the first digits of its SHA-256."""

    address: str

    @property
    def name(self) -> str:
        """Of the file."""
        return PurePosixPath(urlsplit(self.address).path).name

    @property
    def target(self) -> Path:
        """Where it is kept: under TORCH_HOME."""
        from torch import hub

        return Path(hub.get_dir()) / "checkpoints" / self.name

    def cached(self) -> Path | None:
        """Where the file lies: under checkpoints/ by its own name, or in torch.hub's cache; None for neither."""
        return next((path for path in (checkpoints_root() / self.name, self.target) if path.is_file()), None)

    def fetched(self) -> Path:
        """The file, downloaded.

        Raises: DataError: forbidden or failed; the message is a reason.
        """
        if (reason := why_nothing_is_downloaded()) is not None:
            raise DataError(reason)
        digits = _SHA256_DIGITS.search(self.name)
        print(f"Downloading {self.address} to {self.target}", file=sys.stderr, flush=True)
        try:
            retrieve(self.address, self.target, sha256=digits[1] if digits else "")
        except (OSError, HTTPException) as error:
            raise DataError(" ".join(str(error).split()) or type(error).__name__) from error
        return self.target


@dataclass(frozen=True, kw_only=True)
class PublishedWeights:
    """The parameters of a model that somebody publishes, looked for when they are needed: `weights` of a `Model`.

    Args:
        model: whose.
        names: what the file may be called under checkpoints/, without its ending.
        files: a function that names the published files, the preferred one first.
    """

    model: str
    names: tuple[str, ...]
    files: Callable[[], Sequence[HubFile | UrlFile]]

    def __call__(self) -> Path:
        """The file under checkpoints/, else in the caches of the libraries, else fetched.

        Raises: DataError: there is none and none can be fetched; one line names the file and where to put it.
        """
        return self.found() or self._fetched(self.files())

    def found(self) -> Path | None:
        """The file under checkpoints/, else in the caches of the libraries; None where there is none yet."""
        if (path := next(filter(None, map(find_checkpoint, self.names)), None)) is not None:
            return path
        return next((path for file in self.files() if (path := file.cached()) is not None), None)

    def remedy(self) -> str:
        """What is to be done where none is found."""
        return f"It is fetched when the model is evaluated, if that is allowed. Or: {self._by_hand(self.files())}"

    def _fetched(self, files: Sequence[HubFile | UrlFile]) -> Path:
        reason = "nobody publishes them"
        for index, file in enumerate(files):
            try:
                if (path := file.fetched()) is not None:
                    return path
            except DataError as error:  # the next one would wait for the same network
                raise self._missing(files[index:], str(error)) from error
            reason = f"there is no {file.name} any more"
        raise self._missing(files, reason)

    def _missing(self, files: Sequence[HubFile | UrlFile], reason: str) -> DataError:
        return DataError(
            f"Model '{self.model}' has no weights on this machine, and none can be fetched: {reason.rstrip('.')}. "
            f"{self._by_hand(files)}"
        )

    def _by_hand(self, files: Sequence[HubFile | UrlFile]) -> str:
        ending = PurePosixPath(files[0].name).suffix if files else ".pth"
        place = f"{checkpoints_root().absolute() / self.names[0]}{ending}"
        source = f"Get {files[0].address} and put it" if files else "Put the file"
        return f"{source} at {place}, or name a file with --weights {self.model}=FILE."


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
            raise DataError(self.remedy())
        try:
            return self.hub.path()
        except DataError as error:
            raise DataError(self._three_ways(f"{_FROM_HUB}; but {error}")) from error

    def found(self) -> Path | None:
        """The file under checkpoints/, else in the hub's own cache; None where there is none yet."""
        return find_checkpoint(self.name) or (self.hub.cached() if self.hub else None)

    def remedy(self) -> str:
        """What is to be done where none is found."""
        training = f"train it: python train.py --model {self.model} --dataset {self.label_space}"
        return self._three_ways(f"{_FROM_HUB if self.hub else training}.")

    def _three_ways(self, third_way: str) -> str:
        file = checkpoints_root().absolute() / self.name
        return (
            f"Model '{self.model}' (label space {self.label_space}) has no weights. There are three ways: name a file "
            f"with --weights {self.model}=FILE; put one at {file}.safetensors, .pt, .pth or .bin; or {third_way}"
        )
