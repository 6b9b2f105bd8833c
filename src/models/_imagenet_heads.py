"""Classifiers of more than ImageNet's 1,000 classes: their columns for these, found by wnid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from testbed.data.timm_lists import wnids

if TYPE_CHECKING:
    from torch import Tensor

NUM_CLASSES = 1_000
_SUBSETS: Mapping[int, str] = {  # number of outputs -> timm's name of the list of wnids
    11_221: "imagenet-21k-miil",
    11_821: "imagenet-12k",
    21_841: "imagenet-22k",
    21_842: "imagenet-22k-ms",
    21_843: "imagenet-21k-goog",
}


@dataclass(frozen=True)
class ImageNetColumns:
    """The `classify` of a model with a larger head: the logits of ImageNet's 1,000 classes, in their order.

    Some heads lack a few of these classes. They get the smallest logit of the image and are so never answered, which is
    said before a setting runs that has one of them.
    """

    subset: str

    def __call__(self, images: Tensor, model: Any) -> Tensor:
        """Logits [n, 1000] of normalized images [n, C, H, W]."""
        import torch

        logits: Tensor = model(images)
        columns = torch.tensor(_columns(self.subset), device=logits.device)
        least = logits.min(dim=1, keepdim=True).values
        return torch.where(columns < 0, least, logits[:, columns.clamp(min=0)])

    @property
    def missing_classes(self) -> tuple[int, ...]:
        """Positions in imagenet-1k of the classes that the head lacks."""
        return tuple(index for index, column in enumerate(_columns(self.subset)) if column < 0)


def imagenet_columns(num_outputs: int) -> ImageNetColumns | None:
    """How a head of an ImageNet model is cut to the 1,000 classes; None where its classes are not known."""
    subset = _SUBSETS.get(num_outputs)
    return None if subset is None else ImageNetColumns(subset)


@lru_cache
def _columns(subset: str) -> tuple[int, ...]:
    """The column of every class of imagenet-1k; -1 where there is none."""
    positions = {wnid: column for column, wnid in enumerate(wnids(subset))}
    return tuple(positions.get(wnid, -1) for wnid in wnids("imagenet-1k"))
