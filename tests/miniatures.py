"""Small images that bear their class in their colour, and a model that reads it: a set of them is answered exactly.

The colour survives JPEG, resizing and cropping, so that whatever is wrong with the accuracy is a fault of the mapping,
the order, the subset or the metric.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from models.model_base import Model, StandardTransform

STEP = 25  # grey levels between two digits of a class number
NUM_CLASSES = 1_000


def class_pixels(index: int, size: int = 32) -> NDArray[np.uint8]:
    """An image [size, size, 3] of one colour: the three digits of the class number."""
    colour = [STEP * digit + STEP // 2 for digit in (index // 100, index // 10 % 10, index % 10)]
    return np.full((size, size, 3), colour, np.uint8)


def write_class_image(path: Path, index: int, size: int = 32) -> None:
    """Writes the image of a class; the ending says how."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(class_pixels(index, size)).save(path)


class Oracle(nn.Module):
    """Reads the class numbers of images [n, 3, H, W] in [0, 1]: logits [n, num_classes], 1 at the class and else 0."""

    def __init__(self, num_classes: int = NUM_CLASSES) -> None:
        super().__init__()
        self.num_classes = num_classes

    def forward(self, images: Tensor) -> Tensor:
        digits = ((images.mean(dim=(2, 3)) * 255 - STEP // 2) / STEP).round().long()
        classes = (digits * torch.tensor([100, 10, 1])).sum(dim=1)
        return nn.functional.one_hot(classes.clamp(0, self.num_classes - 1), self.num_classes).float()


def oracle_model(name: str = "oracle", *, label_space: str = "imagenet-1k", num_classes: int = NUM_CLASSES) -> Model:
    """The oracle as a model that resizes to 40 px and crops 32 px."""
    return Model(
        name=name,
        transform=StandardTransform(40, 32),
        classifier_loader=lambda: Oracle(num_classes),
        eval_batch_size=16,
        label_space=label_space,
        version="1",
    )
