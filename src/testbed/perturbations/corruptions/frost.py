"""Frost: a picture of ice crystals laid over the image."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from testbed.perturbations.corruptions.colour import luma
from testbed.perturbations.corruptions.corruption import Corruption, Severities, severities
from testbed.perturbations.corruptions.frost_textures import (
    NUM_TEXTURES,
    Picture,
    frost_texture,
    textures_fingerprint,
    textures_folder,
)
from testbed.randomness import SampleKeys

if TYPE_CHECKING:
    from torch import Tensor

Textures = Literal["published", "all"]
_NUM_TEXTURES = {"published": 5, "all": 6}


def frost(
    images: Tensor,
    *,
    keys: SampleKeys,
    image_weight: float,
    frost_weight: float,
    texture_scale: float,
    textures: Textures = "published",
) -> Tensor:
    """`images` under frost: image_weight x + frost_weight t, with t a random part of one of six textures.

    One-channel images are frosted as colour images and taken back by luma.

    Args:
        images: (n, C, H, W) float32 in [0, 1].
        keys: of the n samples.
        image_weight, frost_weight: of the sum, which is clipped.
        texture_scale: what the textures' sides are multiplied by; more where one would not cover the image.
        textures: 'published' picks among the first five, as the published code does by an off-by-one ('all' six).
            Like it, it never reaches a texture's last row and column.
    Returns: (n, C, H, W) float32 in [0, 1]; the same bits in any batch.
    Raises: DataError: the textures' files are not there, see `frost_textures`.
    Source: Hendrycks & Dietterich, ICLR 2019. Their textures 2 and 3 are one and the same picture.
    """
    height, width = images.shape[2:]
    folder, count = textures_folder(), _NUM_TEXTURES[textures]
    frosted = images.expand(-1, 3, -1, -1) * image_weight
    for index, (pick, down, across) in enumerate(keys.uniform("frost/crop", (3,)).tolist()):
        texture = _texture(folder, int(pick * count), texture_scale, height, width, str(images.device))
        top, left = int(down * (texture.shape[1] - height)), int(across * (texture.shape[2] - width))
        frosted[index] += texture[:, top : top + height, left : left + width] * frost_weight
    frosted.clamp_(0, 1)
    return frosted if images.shape[1] == 3 else luma(frosted)


@lru_cache(maxsize=4 * NUM_TEXTURES)
def _texture(folder: Path | None, number: int, scale: float, height: int, width: int, device: str) -> Tensor:
    """A texture as (3, h, w) float32 in [0, 1] that covers an image."""
    import torch

    picture = frost_texture(number, folder)
    scale = max(scale, height / picture.shape[0], width / picture.shape[1])
    levels = picture if scale == 1 else resized(picture, scale)
    return torch.from_numpy(levels).to(device).movedim(2, 0).float().div_(255).contiguous()


def resized(picture: Picture, scale: float) -> Picture:
    """`picture` (h, w, 3) with its sides multiplied by `scale` and rounded, each pixel from its nearest four.

    As in the published code nothing is smoothed before: at a scale of 0.2 every fifth pixel stays.
    """
    levels = picture.astype(np.float64)
    for axis in (0, 1):
        size = levels.shape[axis]
        places = ((np.arange(round(size * scale)) + 0.5) / scale - 0.5).clip(0, size - 1)
        before = np.minimum(places.astype(np.int64), size - 2)
        weights = (places - before).reshape(-1, *(1,) * (2 - axis))
        lower, upper = levels.take(before, axis), levels.take(before + 1, axis)
        levels = lower + (upper - lower) * weights
    return np.asarray(levels.round(), dtype=np.uint8)


def _rows(*weights: tuple[float, float], texture_scale: float) -> Severities:
    return severities("image_weight frost_weight texture_scale", *((*pair, texture_scale) for pair in weights))


_TABLE_224 = _rows((1.0, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75), texture_scale=1.0)

CORRUPTIONS = (
    Corruption(
        name="frost",
        group="weather",
        function=frost,
        parameters={
            "imagenet224": _TABLE_224,
            "tinyimagenet64": _rows((1.0, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55), texture_scale=0.3),
            "cifar32": _rows((1.0, 0.2), (1.0, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45), texture_scale=0.2),
            "mnist28": _TABLE_224,
        },
        options={"textures": get_args(Textures)},
        files=textures_fingerprint,
        description="ice crystals over the image",
    ),
)
