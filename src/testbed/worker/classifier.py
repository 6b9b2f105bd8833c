"""A loaded model as one function: images in [0, 1] to logits. Imports torch: only workers load this file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from models.model_base import Model, StandardNormalization
from testbed.class_subset import columns_of
from testbed.engine.arithmetic import Arithmetic
from testbed.errors import ShapeError
from testbed.randomness import SampleKeys, seeded_globals, stream_key
from testbed.records import Samples
from testbed.signatures import argument_names
from testbed.worker.apply_arithmetic import adapted, autocast, laid_out, padded


class Normalize(nn.Module):
    """StandardNormalization as a module, so that gradients pass through it."""

    mean: Tensor
    std: Tensor

    def __init__(self, normalization: StandardNormalization) -> None:
        super().__init__()
        self.is_bgr = normalization.input_space == "BGR"
        self.register_buffer("mean", torch.tensor(normalization.mean, dtype=torch.float32).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(normalization.std, dtype=torch.float32).view(-1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        if self.is_bgr:
            images = images.flip(1)
        return (images - self.mean).div_(self.std)  # in place: one copy of the batch, not two


class Classifier(nn.Module):
    """A model ready to run: normalization, then its network or its own `classify`.

    Attributes:
        takes_class_sublist: `classify` picks the classes itself, so its logits must not be cut again.
        attacks_itself: `classify` takes `adversarial_attack` and perturbs the images itself.
        takes_keys: `classify` draws noise from the keys of the samples.
        transform: of the model, from images to what it takes.
        adapts: it changes with what it is shown, and is left in the mode that its loader gave it.
        num_bytes: memory of its parameters and buffers.
    """

    def __init__(self, model: Model, network: Any, *, device: str, arithmetic: Arithmetic) -> None:
        super().__init__()
        self.arithmetic = arithmetic
        self._device_type = torch.device(device).type
        self.network = adapted(network, arithmetic)  # an nn.Module becomes a sub-module, else a plain attribute
        self.normalize = Normalize(model.normalization) if model.normalization else nn.Identity()
        self.classify = model.classify
        arguments = argument_names(model.classify) if model.classify else ()
        self.takes_class_sublist = "class_sublist" in arguments
        self.attacks_itself = "adversarial_attack" in arguments
        self.takes_keys = "keys" in arguments
        self.transform = model.transform
        self.to(device)
        self.adapts = model.adapts is not None
        if not self.adapts:
            self.eval().requires_grad_(False)
        self.num_bytes = sum(tensor.nbytes for tensors in (self.parameters(), self.buffers()) for tensor in tensors)

    def forward(
        self,
        images: Tensor,
        class_sublist: Sequence[int | Sequence[int]] | None = None,
        adversarial_attack: Mapping[str, Any] | None = None,
        pads_to: int | None = None,
        keys: SampleKeys | None = None,
    ) -> Tensor:
        """Logits [n, classes] float32 of images [n, C, H, W] in [0, 1].

        `pads_to` is the number of images that a compiled network was compiled for. A model that draws noise is given
        `keys` of the n samples; without any, those of the first n of no data set.

        Raises: ShapeError: the model answered with anything but one row of numbers per image.
        """
        normalized = laid_out(padded(self.normalize(images), pads_to), self.arithmetic)
        with autocast(self.arithmetic, self._device_type):
            if self.classify is None:
                logits = self.network(normalized)
            else:
                extras: dict[str, Any] = {}
                if self.takes_class_sublist:  # groups of columns are merged afterwards
                    extras["class_sublist"] = None if class_sublist is None else columns_of(class_sublist)
                if self.attacks_itself:
                    extras["adversarial_attack"] = adversarial_attack
                if self.takes_keys:
                    extras["keys"] = keys or _first_keys(len(images))
                logits = self.classify(images=normalized, model=self.network, **extras)
        return _checked(logits, num_images=len(normalized))[: len(images)].float()

    @property
    def is_compiled(self) -> bool:
        """Whether its network runs compiled, for one number of images."""
        return self.arithmetic.is_compiled and isinstance(self.network, nn.Module)

    @property
    def may_change_images(self) -> bool:
        """Whether the network gets the very images that it is given: normalized ones are a copy."""
        return isinstance(self.normalize, nn.Identity)


def load_classifier(
    model: Model,
    *,
    device: str,
    fit_seed: int,
    fit_samples: Samples | None,
    arithmetic: Arithmetic = Arithmetic(),  # noqa: B008 (frozen)
) -> Classifier:
    """The classifier behind a definition, on its device, in evaluation mode.

    Loading runs with all global generators seeded from `fit_seed`, so that weights that are drawn at random are the
    same in every worker.
    """
    arguments = argument_names(model.classifier_loader)
    given = {
        "seed": fit_seed,
        "dataset": fit_samples,
        "weights": model.weights_file(),
        "weights_key": model.weights_key,
    }
    with seeded_globals(stream_key(fit_seed, purpose="train", dataset=model.label_space, stream="load")):
        network = model.classifier_loader(**{name: given[name] for name in arguments if name in given})
    return Classifier(model, network, device=device, arithmetic=arithmetic)


def weights_sha256(classifier: Classifier) -> str | None:
    """SHA-256 over names, types, shapes and bytes of all parameters and buffers; None where there are none."""
    state = classifier.network.state_dict() if isinstance(classifier.network, nn.Module) else {}
    digest = hashlib.sha256()
    for name, value in state.items():
        array = value.detach().cpu().contiguous()
        digest.update(f"{name}:{array.dtype}:{tuple(array.shape)};".encode())
        digest.update(array.flatten().view(torch.uint8).numpy())
    return digest.hexdigest() if state else None


def _first_keys(num_images: int) -> SampleKeys:
    return SampleKeys(seed=0, purpose="eval", dataset="", sample_indices=np.arange(num_images), draw=0)


def _checked(logits: Any, *, num_images: int) -> Tensor:
    if isinstance(logits, np.ndarray):
        logits = torch.from_numpy(logits)
    if not isinstance(logits, Tensor):
        raise ShapeError(
            f"The model returned a {type(logits).__name__}, not a tensor of logits [n, classes]. "
            "Give the Model a classify function that picks the logits."
        )
    if logits.ndim != 2 or len(logits) != num_images:
        raise ShapeError(
            f"The model returned logits of shape {tuple(logits.shape)} for {num_images} images. "
            f"Expected ({num_images}, classes)."
        )
    return logits
