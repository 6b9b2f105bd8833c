"""A model whose logits depend on no arithmetic, written as a file for the ImageNet Testbed is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.pinned_nets import first_pixels

from models.model_base import Model
from registry import registry

if TYPE_CHECKING:
    from torch import nn


def load_nothing() -> nn.Module:
    """A network without parameters, which is not called."""
    from torch import nn

    return nn.Identity()


registry.add_model(
    Model(
        name="pinned-pixels",
        transform=None,
        classifier_loader=load_nothing,
        classify=first_pixels,
        eval_batch_size=16,
        label_space="digits",
    )
)
