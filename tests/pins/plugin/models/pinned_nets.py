"""Functions that another file of this plugin imports as `models.pinned_nets`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn


def first_pixels(images: Tensor, model: nn.Module) -> Tensor:
    """The first ten pixels of each image as logits: copies, so that their bytes are the same on every machine."""
    return images.flatten(1)[:, :10].contiguous()
