"""Models named `timm:NAME`: every classifier that timm publishes weights of, with their own preprocessing."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models._image_transform import ImageTransform
from models._imagenet_heads import NUM_CLASSES, imagenet_columns
from models._local import UNKNOWN_LABEL_SPACE
from models._published import batch_size, reading_weights
from models.model_base import Model, StandardNormalization
from testbed.data.weights import HubFile, PublishedWeights, UrlFile
from testbed.errors import DefinitionError, UnknownNameError, suggestion
from testbed.timm_tags import trained_on

if TYPE_CHECKING:
    from torch import nn

VERSION = "1"
_ALL_NAMES = "All names: python db.py --list-models-registry"
HUB_NAMES = ("model.safetensors", "pytorch_model.bin")  # what timm calls the file of a repository, preferred first


class TimmModels:
    """The family `timm:NAME`, by timm's names with the tag of the weights; a name without one takes timm's default."""

    packages = ("timm",)  # that its names come from

    def names(self) -> list[str]:
        """All whose outputs are ImageNet's classes, or classes among which these are."""
        from timm import list_models
        from timm.models import get_pretrained_cfg

        names: list[str] = list_models(pretrained=True, include_tags=True)
        configs: dict[str, Any] = {name: get_pretrained_cfg(name) for name in names}
        return [
            name
            for name, config in configs.items()
            if config.num_classes == NUM_CLASSES or imagenet_columns(config.num_classes) is not None
        ]

    def build(self, rest: str) -> Model:
        """The model `timm:REST`.

        Raises:
            UnknownNameError: timm has no such model, or no weights of that tag.
            DefinitionError: it is no classifier, or nobody publishes its weights.
        """
        config = _config(rest)
        name = f"timm:{rest}"
        if not config.has_weights:
            raise DefinitionError(f"timm publishes no weights of '{rest}'. Evaluate a file as local:PATH with --arch.")
        tag, arch = config.tag or "", config.architecture
        tagged = f"{arch}.{tag}" if tag else arch  # what the address of the weights is called
        names = dict.fromkeys((f"timm/{tagged}", f"timm/{rest}"))
        files = partial(_files, config.hf_hub_id, config.hf_hub_filename, config.url)
        return timm_model(
            name,
            arch,
            config.to_dict(),
            loader=partial(load_timm, rest),
            weights=PublishedWeights(model=name, names=tuple(names), files=files),
            is_imagenet=True,
            training_data=trained_on(tag),
            description=f"timm's {arch} with its weights {tag}; licence {config.license or 'not told'}",
        )


def timm_model(
    name: str,
    arch: str,
    config: dict[str, Any],
    *,
    loader: Callable[..., nn.Module],
    weights: Callable[[], Path],
    is_imagenet: bool,
    label_space: str | None = None,
    class_names: tuple[str, ...] | None = None,
    training_data: tuple[str, ...] = (),
    version: str = VERSION,
    description: str = "",
) -> Model:
    """A model with the preprocessing that a timm configuration of pretrained weights tells.

    Args:
        name, arch, weights, class_names, training_data, version, description: of the model.
        config: the configuration.
        loader: its classifier_loader.
        is_imagenet: whether 1,000 outputs are ImageNet's classes, and larger heads those of timm's lists.
        label_space: of its outputs where they are not ImageNet's; None where only their number is known.
    Raises: DefinitionError: it is no classifier, or its preprocessing is of a kind that is not known.
    """
    num_outputs = config.get("num_classes", NUM_CLASSES)
    if num_outputs < 1:
        raise DefinitionError(f"Model '{name}' has no classes: its outputs are features. Choose one with a classifier.")
    transform, normalization = _preprocessing(config)
    columns = imagenet_columns(num_outputs) if is_imagenet else None
    if is_imagenet and (num_outputs == NUM_CLASSES or columns is not None):
        label_space = "imagenet-1k"
    return Model(
        name=name,
        arch=arch,
        transform=transform,
        normalization=normalization,
        classifier_loader=loader,
        weights=weights,
        eval_batch_size=batch_size(transform.crop_size),
        classify=columns,
        label_space=label_space or UNKNOWN_LABEL_SPACE,
        num_outputs=num_outputs if columns is None else NUM_CLASSES,
        class_names=class_names,
        training_data=training_data,
        version=version if columns is None else f"{version}, {columns.subset} to imagenet-1k",
        description=description,
    )


def load_timm(name: str, *, weights: Path) -> nn.Module:
    """timm's model with the parameters in `weights`, through timm's own conversion of old and foreign checkpoints."""
    from timm import create_model

    with reading_weights(f"timm:{name}", weights):
        network: nn.Module = create_model(name, pretrained=True, pretrained_cfg_overlay=weights_in(weights))
    return network.eval()


def weights_in(file: Path) -> dict[str, Any]:
    """The part of a timm configuration that names a file: .npz files hold the parameters of another library."""
    return {"file": str(file), "custom_load": file.suffix == ".npz"}


def _config(name: str) -> Any:
    """timm's configuration of the weights `name`."""
    from timm import list_models
    from timm.models import get_pretrained_cfg, is_model

    arch, _, tag = name.partition(".")
    if not is_model(arch):
        near = suggestion(name, list_models(pretrained=True, include_tags=True))
        raise UnknownNameError(f"timm has no pretrained model '{name}'. {near} {_ALL_NAMES}".replace("  ", " "))
    try:
        config = get_pretrained_cfg(name)
    except RuntimeError as error:
        known = [other.partition(".")[2] for other in list_models(f"{arch}.*", pretrained=True, include_tags=True)]
        has = f"It has {', '.join(known)}." if known else "It has none."
        raise UnknownNameError(f"timm has no weights '{tag}' of '{arch}'. {has} {_ALL_NAMES}") from error
    if config is None:
        raise UnknownNameError(f"timm has no pretrained weights of '{name}'. {_ALL_NAMES}")
    return config


def _preprocessing(config: dict[str, Any]) -> tuple[ImageTransform, StandardNormalization]:
    """The transform and the normalization as `timm.data.create_transform` makes them for evaluation."""
    from timm import data as timm_data

    resolve: Any = timm_data.resolve_data_config  # type: ignore[attr-defined]
    data: dict[str, Any] = resolve(pretrained_cfg=config)
    channels, *size = data["input_size"]
    height, width = size
    transform = ImageTransform(
        crop_size=(height, width),
        resize_size=(math.floor(height / data["crop_pct"]), math.floor(width / data["crop_pct"])),
        crop_mode=data["crop_mode"],
        interpolation=data["interpolation"],
        fill=tuple(round(255 * value) for value in data["mean"]) if data["crop_mode"] == "border" else (0,) * channels,
        channels=channels,
    )
    return transform, StandardNormalization(mean=tuple(data["mean"]), std=tuple(data["std"]))


def _files(repository: str | None, file_name: str | None, url: str | None) -> list[HubFile | UrlFile]:
    """Where the weights are published, preferred first as by timm."""
    names = () if repository is None else (file_name,) if file_name else HUB_NAMES
    hub_files = [HubFile(repository=str(repository), name=name) for name in names]
    return [*hub_files, *([UrlFile(address=url)] if url else [])]
