"""Models named `hf-hub:OWNER/NAME[@REVISION]`: what a repository of the Hugging Face hub tells timm of its weights."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models._local import UNKNOWN_LABEL_SPACE
from models._published import reading_weights
from models._timm_models import HUB_NAMES, timm_model, weights_in
from models.model_base import Model
from testbed.data.class_order import LABEL_SPACES, label_space_names
from testbed.data.weights import HubFile, PublishedWeights, UrlFile, checkpoints_root
from testbed.errors import DataError, DefinitionError
from testbed.fingerprint import file_sha256

if TYPE_CHECKING:
    from torch import nn

CONFIG = "config.json"
TIMMS_OWN = "timm/"  # the owner whose heads of 1,000 and more classes are known to be ImageNet's
_NAME = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")


class HubModels:
    """The family `hf-hub:OWNER/NAME[@REVISION]`: repositories that hold a timm configuration and its weights.

    A branch (main, where none is named) is what it was when it was first fetched; the commit is part of what a model
    is. A folder checkpoints/hf-hub/OWNER/NAME[@REVISION] with the two files goes before the hub.
    """

    def names(self) -> tuple[str, ...]:
        """None: the hub is not listed."""
        return ()

    def build(self, rest: str) -> Model:
        """The model `hf-hub:REST`; its configuration is fetched if need be.

        Raises:
            DefinitionError: that is no name of a repository, or the repository holds no timm model.
            DataError: the configuration is not there and cannot be fetched.
        """
        name = f"hf-hub:{rest}"
        if (named := _NAME.fullmatch(rest)) is None:
            raise DefinitionError(f"'{name}' names no repository. Write hf-hub:OWNER/NAME or hf-hub:OWNER/NAME@COMMIT.")
        repository, revision = named["repository"], named["revision"] or "main"
        folder = _config_folder(rest, HubFile(repository=repository, revision=revision, name=CONFIG))
        config, arch, arguments = _read_config(name, folder)
        commit = folder.name if _COMMIT.fullmatch(folder.name) else None
        licence = config.get("license") or "not told"
        class_names = _class_names(config)
        return timm_model(
            name,
            arch,
            config,
            loader=partial(load_from_hub, name, arch, config, arguments),
            weights=_weights(name, rest, repository=repository, commit=commit or revision),
            is_imagenet=repository.startswith(TIMMS_OWN),
            label_space=_label_space(class_names),
            class_names=class_names,
            version=f"commit {commit}" if commit else f"config {file_sha256(folder / CONFIG)}",
            description=f"{repository} at {commit[:8] if commit else revision}; licence {licence}",
        )


def load_from_hub(
    name: str, arch: str, config: dict[str, Any], arguments: dict[str, Any], *, weights: Path
) -> nn.Module:
    """timm's network `arch`, made with `arguments`, with the parameters in the file `weights`."""
    from timm import create_model

    source = {"source": None, "hf_hub_id": None, **weights_in(weights)}
    with reading_weights(name, weights):
        network: nn.Module = create_model(arch, pretrained=True, pretrained_cfg={**config, **source}, **arguments)
    return network.eval()


def _config_folder(rest: str, file: HubFile) -> Path:
    """The folder that holds the configuration: under checkpoints/, or the commit in the hub's own cache.

    Raises: DataError: it is not there and cannot be fetched.
    """
    local = checkpoints_root() / "hf-hub" / rest
    if (local / CONFIG).is_file():
        return local
    try:
        found = file.cached() or file.fetched()
    except DataError as error:
        raise DataError(
            f"Model 'hf-hub:{rest}' is not on this machine and cannot be fetched: {str(error).rstrip('.')}. Get "
            f"{file.address} and the weights beside it, and put both in {local.absolute()}."
        ) from error
    if found is None:
        raise DataError(f"'{file.repository}' has no file {CONFIG} at {file.revision}: it is no model for timm.")
    return found.parent


def _read_config(name: str, folder: Path) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """A timm configuration, the architecture, and the arguments that it is made with."""
    from timm.models import is_model
    from timm.models._hub import load_model_config_from_path

    try:
        config, arch, arguments = load_model_config_from_path(folder)
    except Exception as error:  # of a damaged file, whatever the reader happens to meet
        raise DefinitionError(
            f"Model '{name}': {folder / CONFIG} is no timm configuration ({type(error).__name__}: {error}). Only "
            "models that timm can build are read from the hub; others can be registered in a file of their own."
        ) from error
    if not is_model(arch):
        raise DefinitionError(f"Model '{name}' has the architecture '{arch}', which this version of timm lacks.")
    return config, arch, arguments


def _weights(name: str, rest: str, *, repository: str, commit: str) -> PublishedWeights:
    names = tuple(f"hf-hub/{rest}{stem}" for stem in ("", "/model", "/pytorch_model"))
    return PublishedWeights(model=name, names=names, files=partial(_files, repository, commit))


def _files(repository: str, commit: str) -> list[HubFile | UrlFile]:
    return [HubFile(repository=repository, revision=commit, name=name) for name in HUB_NAMES]


def _class_names(config: dict[str, Any]) -> tuple[str, ...] | None:
    """Names of the outputs, if the configuration tells one for each."""
    names = config.get("label_names")
    if isinstance(names, dict):
        names = [names.get(str(index), names.get(index)) for index in range(len(names))]
    if not isinstance(names, list | tuple) or len(names) != config.get("num_classes", len(names)):
        return None
    return tuple(map(str, names)) if None not in names else None


def _label_space(class_names: tuple[str, ...] | None) -> str:
    """The label space whose classes these are, in whatever order: that is checked before a run."""
    if class_names is None:
        return UNKNOWN_LABEL_SPACE
    known = (*LABEL_SPACES, *(("imagenet-1k",) if len(class_names) == 1_000 else ()))
    found = (space for space in known if set(label_space_names(space) or ()) == set(class_names))
    return next(found, UNKNOWN_LABEL_SPACE)
