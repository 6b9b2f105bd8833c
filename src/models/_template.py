"""A model of your own. Copy this file into this folder under a name without `_`, or anywhere and name it with --plugin.

    python eval.py --models my-network --eval-settings digits --plugin my_network.py

What is registered here is built when it is asked for: a listing loads no network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.model_base import Model, StandardNormalization
from registry import registry

if TYPE_CHECKING:
    from torch import Tensor, nn


def load_network() -> nn.Module:
    """The network with its parameters."""
    from torch import nn

    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    # Read your parameters here. By name, from the folder `checkpoints`:
    #     from mldb.utils import load_model_state_dict
    #     load_model_state_dict(network, "my-network")
    # A loader that takes an argument `weights`, with weights=Path(...) below, gets the file; its bytes are then part of
    # a result's identity, and --weights my-network=FILE takes another.
    for parameter in network.parameters():
        nn.init.constant_(parameter, 0.1)
    return network


registry.add_model(
    Model(
        name="my-network",
        # PIL image -> tensor in [0, 1]: StandardTransform(256, 224), or any function. None: images as the data set has.
        transform=None,
        # Subtracted and divided by after all perturbations, so that noise and attacks are in [0, 1]. None for none.
        normalization=StandardNormalization(mean=[0.5], std=[0.25]),
        classifier_loader=load_network,
        eval_batch_size=64,
        # Whose classes the outputs are, in that order: 'imagenet-1k', 'cifar10', or a name of your own.
        label_space="digits",
        # For effective and relative robustness: what it was trained on, and the model without your intervention.
        training_data=("digits",),
        baseline="digits-linear",
        description="one line for listings",
    )
)


def vote(images: Tensor, model: nn.Module) -> Tensor:
    """Logits [n, classes] of normalized images: in place of calling the model, for one that is asked in its own way."""
    logits: Tensor = model(images) + model(images.flip(3))
    return logits


registry.add_model(
    Model(
        name="my-network-flipped",
        transform=None,
        normalization=StandardNormalization(mean=[0.5], std=[0.25]),
        classifier_loader=load_network,
        classify=vote,
        eval_batch_size=64,
        label_space="digits",
        baseline="my-network",
    )
)
