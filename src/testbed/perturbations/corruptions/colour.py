"""Changes of colour: brightness, contrast, saturation, and none at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from testbed.perturbations.corruptions.chunks import chunks
from testbed.perturbations.corruptions.corruption import Corruption, severities

if TYPE_CHECKING:
    from torch import Tensor

_TINY = 1e-30  # a divisor for what is 0 / 0
_FIXED_POINT = 2.0**30


def brightness(images: Tensor, *, added: float) -> Tensor:
    """`images` with `added` to the value V of every pixel in HSV, up to 1; hue and saturation stay.

    As these are ratios of the channels, all channels are multiplied by what V is: x (V + added) / V with V the largest
    channel; black becomes grey. One channel is its own V.

    Args:
        images: (n, C, H, W) float32 in [0, 1].
        added: in [0, 1] pixel units.
    Returns: (n, C, H, W) float32 in [0, 1].
    Source: Hendrycks & Dietterich, ICLR 2019; so are contrast and saturate.
    """
    import torch

    if images.shape[1] == 1:
        return (images + added).clamp_(max=1)
    out = torch.empty_like(images, memory_format=torch.contiguous_format)
    for part in chunks(images):
        value = images[part].amax(1, keepdim=True)
        brighter = (value + added).clamp_(max=1)
        torch.div(images[part], value.clamp(min=_TINY), out=out[part]).mul_(brighter)
        out[part].add_(brighter.mul_(value == 0))
    return out


def saturate(images: Tensor, *, gain: float, offset: float) -> Tensor:
    """`images` with the saturation S of every pixel in HSV made gain S + offset, within [0, 1].

    With V the largest channel of a pixel and m its smallest, S = (V - m) / V. A channel x is V - V S (V - x) / (V - m),
    also with the new S. A grey pixel's hue is 0, red, as the published code has it: an offset reddens it. One channel
    is taken as grey in three, and comes back as their luma.

    Args:
        images: (n, C, H, W) float32 in [0, 1].
        gain: factor of the saturation.
        offset: added to it.
    Returns: (n, C, H, W) float32 in [0, 1].
    """
    import torch

    if images.shape[1] == 1:
        return luma(saturate(images.expand(-1, 3, -1, -1).contiguous(), gain=gain, offset=offset))
    out = torch.empty_like(images, memory_format=torch.contiguous_format)
    for part in chunks(images):
        value = images[part].amax(1, keepdim=True)
        spread = value - images[part].amin(1, keepdim=True)
        saturation = (spread / value.clamp(min=_TINY)).mul_(gain).add_(offset).clamp_(0, 1)
        wanted = saturation.mul_(value)
        torch.sub(value, images[part], out=out[part]).div_(spread.clamp(min=_TINY)).mul_(wanted)
        out[part, 1:].add_(wanted.mul_(spread == 0))
        torch.sub(value, out[part], out=out[part]).clamp_(0, 1)
    return out


def contrast(images: Tensor, *, gain: float) -> Tensor:
    """(x - m) gain + m, m the mean of each channel over its image.

    Args:
        images: (n, C, H, W) float32 in [0, 1].
        gain: in [0, 1].
    Returns: (n, C, H, W) float32 in [0, 1].
    """
    import torch

    out = torch.empty_like(images, memory_format=torch.contiguous_format)
    for part in chunks(images):
        means = _channel_means(images[part])
        torch.sub(images[part], means, out=out[part]).mul_(gain).add_(means).clamp_(0, 1)
    return out


def greyscale(images: Tensor) -> Tensor:
    """The luma of `images` (n, C, H, W) in every channel."""
    return luma(images).expand_as(images).clone()


def luma(images: Tensor) -> Tensor:
    """0.299 R + 0.587 G + 0.114 B of (n, 3, H, W), or `images` themselves of (n, 1, H, W), as (n, 1, H, W)."""
    if images.shape[1] == 1:
        return images
    grey = 0.299 * images[:, :1]
    grey += 0.587 * images[:, 1:2]
    grey += 0.114 * images[:, 2:]
    return grey


def _channel_means(images: Tensor) -> Tensor:
    """(n, C, 1, 1) float32. Integers are added up: their sum is the same in any order, so on any number of threads."""
    import torch

    height, width = images.shape[2:]
    totals = images.mul(_FIXED_POINT).to(torch.int32).sum((2, 3), keepdim=True, dtype=torch.int64)
    return totals.double().div_(_FIXED_POINT * height * width).float()


_BRIGHTNESS_224 = severities("added", 0.1, 0.2, 0.3, 0.4, 0.5)
_CONTRAST_224 = severities("gain", 0.4, 0.3, 0.2, 0.1, 0.05)
_SATURATE_224 = severities("gain offset", (0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2))

CORRUPTIONS = (
    Corruption(
        name="brightness",
        group="weather",
        function=brightness,
        parameters={
            "imagenet224": _BRIGHTNESS_224,
            "tinyimagenet64": _BRIGHTNESS_224,
            "cifar32": severities("added", 0.05, 0.1, 0.15, 0.2, 0.3),
            "mnist28": _BRIGHTNESS_224,
        },
        description="the value in HSV raised",
    ),
    Corruption(
        name="contrast",
        group="digital",
        function=contrast,
        parameters={
            "imagenet224": _CONTRAST_224,
            "tinyimagenet64": _CONTRAST_224,
            "cifar32": severities("gain", 0.75, 0.5, 0.4, 0.3, 0.15),
            "mnist28": _CONTRAST_224,
        },
        description="values drawn to their mean",
    ),
    Corruption(
        name="saturate",
        group="digital",
        function=saturate,
        parameters={
            "imagenet224": _SATURATE_224,
            "tinyimagenet64": severities("gain offset", (0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)),
            "cifar32": severities("gain offset", (0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
            "mnist28": _SATURATE_224,
        },
        description="the saturation in HSV lowered or raised",
    ),
    Corruption(
        name="greyscale",
        group="digital",
        function=greyscale,
        description="luma in place of colours, without severities",
    ),
)
