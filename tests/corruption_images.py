"""What tests of corruptions corrupt: crops of a photograph at any size, and the keys of their random numbers."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_sample_image

from testbed.randomness import SampleKeys


def photo(height: int, width: int, channels: int = 3, n: int = 4) -> torch.Tensor:
    """Different crops of a photograph in whole grey levels, (n, channels, height, width) float32 in [0, 1]."""
    picture = _photograph()
    scale = 0.75 * min(picture.width / width, picture.height / height)
    crop_width, crop_height = scale * width, scale * height
    crops = []
    for index in range(n):
        left = (picture.width - crop_width) * (index * 0.618 % 1)  # no two steps of the golden ratio meet
        top = (picture.height - crop_height) * (index * 0.382 % 1)
        box = (left, top, left + crop_width, top + crop_height)
        crops.append(picture.resize((width, height), Image.Resampling.BILINEAR, box=box))
    if channels == 1:
        crops = [crop.convert("L") for crop in crops]
    levels: NDArray[np.uint8] = np.stack([np.asarray(crop).reshape(height, width, channels) for crop in crops])
    return torch.from_numpy(levels).movedim(3, 1).contiguous().float().div_(255)


@cache
def _photograph() -> Image.Image:
    return Image.fromarray(load_sample_image("china.jpg"))


def keys(n: int, seed: int = 0, draw: int = 0, start: int = 0) -> SampleKeys:
    """Keys of the samples `start` to `start + n` of a data set."""
    indices = np.arange(start, start + n)
    return SampleKeys(seed=seed, purpose="eval", dataset="photo", sample_indices=indices, draw=draw)
