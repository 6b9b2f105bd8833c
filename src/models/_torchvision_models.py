"""Models named `torchvision:NAME[.WEIGHTS]`: torchvision's classifiers, with the preprocessing of their weights."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models._checkpoint import read_state
from models._image_transform import ImageTransform
from models._published import batch_size, reading_weights
from models.model_base import Model, StandardNormalization
from testbed.data.weights import PublishedWeights, UrlFile
from testbed.errors import DefinitionError, UnknownNameError, suggestion

if TYPE_CHECKING:
    from torch import nn

VERSION = "1"
_INCEPTION = {"transform_input": True, "aux_logits": True, "init_weights": False}
_OPTIONS: dict[str, dict[str, Any]] = {"googlenet": _INCEPTION, "inception_v3": _INCEPTION}  # as with its own weights
_SIZED = {"maxvit": "input_size", "vit": "image_size"}  # networks that are made for one size, by family


class TorchvisionModels:
    """The family `torchvision:NAME.WEIGHTS`; without WEIGHTS, those that torchvision calls the default."""

    packages = ("torchvision",)  # that its names come from

    def names(self) -> list[str]:
        """Every set of weights that has a classifier."""
        from torchvision import models

        return [
            f"{name}.{weights.name}"
            for name in models.list_models(module=models)
            for weights in _weights_of(name)
            if _num_classes(weights)
        ]

    def build(self, rest: str) -> Model:
        """The model `torchvision:REST`.

        Raises:
            UnknownNameError: torchvision has no such model, or no such weights of it.
            DefinitionError: the weights have no classifier.
        """
        arch, weights = self._found(rest)
        if not _num_classes(weights):
            raise DefinitionError(f"Model 'torchvision:{rest}' has no classes: its outputs are features.")
        preset: Any = weights.transforms()
        (crop,), (resize,) = preset.crop_size, preset.resize_size
        categories = weights.meta["categories"]
        trained_on = ("instagram-3.6b", "imagenet-1k") if "SWAG" in weights.name else ("imagenet-1k",)
        return Model(
            name=f"torchvision:{rest}",
            arch=arch,
            transform=ImageTransform(
                crop_size=(crop, crop), resize_size=(resize, resize), interpolation=preset.interpolation.value
            ),
            normalization=StandardNormalization(mean=tuple(preset.mean), std=tuple(preset.std)),
            classifier_loader=partial(load_torchvision, arch, weights.name),
            weights=torchvision_weights(f"torchvision:{rest}", arch, weights.name),
            eval_batch_size=batch_size((crop, crop)),
            num_outputs=len(categories),
            version=VERSION,
            training_data=trained_on,
            description=f"torchvision's {arch} with its weights {weights.name}",
        )

    def _found(self, rest: str) -> tuple[str, Any]:
        """Name and weights enum of a model."""
        from torchvision import models

        arch, _, wanted = rest.partition(".")
        if arch in models.list_models(module=models):
            known = _weights_of(arch)
            if wanted in ("", "DEFAULT"):
                return arch, known.DEFAULT
            if wanted in known.__members__:
                return arch, known[wanted]
        near = suggestion(rest, self.names())
        raise UnknownNameError(" ".join(filter(None, (f"torchvision has no pretrained model '{rest}'.", near,
            "All names: python db.py --list-models-registry"))))  # fmt: skip


def torchvision_weights(model: str, arch: str, weights: str) -> PublishedWeights:
    """The weights of `model`, which are torchvision's for `arch` of that name; torchvision is imported when needed."""
    bare = () if ":" in model else (f"{model}-imagenet-1k",)
    names = (*bare, f"torchvision/{arch}.{weights}")
    return PublishedWeights(model=model, names=names, files=partial(_files, arch, weights))


def load_torchvision(arch: str, weights_name: str, *, weights: Path, weights_key: str | None = None) -> nn.Module:
    """torchvision's network as it is made for the weights of that name, with the parameters in the file `weights`."""
    from torchvision import models

    enum = _weights_of(arch)[weights_name]
    options = dict(_OPTIONS.get(arch, {}))
    if (argument := _SIZED.get(arch.split("_")[0])) is not None:
        size = enum.meta["min_size"]
        options[argument] = size if argument == "input_size" else size[0]
    network: nn.Module = models.get_model(arch, weights=None, **options)
    state = read_state(weights, weights_key)
    with reading_weights(f"torchvision:{arch}.{weights_name}", weights):
        network.load_state_dict(_adapted(arch, state))
    return network.eval()


def _adapted(arch: str, state: dict[str, Any]) -> Mapping[str, Any]:
    """The parameters as torchvision's loading of a network expects them."""
    if arch.startswith("densenet"):
        return _renamed(state)
    if not arch.startswith("mnasnet"):
        return state
    # early MNASNets had a stem of 32 channels at any width; the network is told by a number beside the parameters
    kept = OrderedDict(state)
    version = 1 if len(state.get("layers.0.weight", ())) == 32 else 2
    kept._metadata = {"": {"version": version}}  # type: ignore[attr-defined]
    return kept


def _renamed(state: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a DenseNet under the names that they have now: published ones say `norm.1` for `norm1`."""
    kinds = ("norm", "relu", "conv")
    new = {}
    for key, value in state.items():
        parts = key.split(".")
        for place, part in enumerate(parts[:-1]):
            if part in kinds and parts[place + 1] in ("1", "2"):
                parts[place : place + 2] = [part + parts[place + 1]]
                break
        new[".".join(parts)] = value
    return new


def _weights_of(arch: str) -> Any:
    from torchvision import models

    return models.get_model_weights(arch)


def _num_classes(weights: Any) -> int:
    return len(weights.meta.get("categories") or ())


def _files(arch: str, weights: str) -> list[UrlFile]:
    return [UrlFile(address=_weights_of(arch)[weights].url)]
