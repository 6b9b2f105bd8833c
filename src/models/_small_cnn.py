"""A small convolutional network for small grey images: three convolutions, the third of which sees the whole shape."""

from __future__ import annotations

from collections import OrderedDict
from itertools import pairwise

from torch import nn


def small_cnn(*, num_classes: int = 10, num_channels: int = 1, width: int = 16) -> nn.Module:
    """Three 3x3 convolutions of width, 2 width and 4 width channels, each with batch norm, ReLU and 2x2 max pooling;
    then the mean over all positions and a linear layer.

    Args:
        num_classes: width of the logits.
        num_channels: of the images.
        width: channels after the first convolution.
    """
    widths = (num_channels, width, 2 * width, 4 * width)
    layers = [_layer(before, after) for before, after in pairwise(widths)]
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, num_classes))
    return nn.Sequential(OrderedDict(features=nn.Sequential(*layers), head=head))


def _layer(before: int, after: int) -> nn.Module:
    convolution = nn.Conv2d(before, after, kernel_size=3, padding=1, bias=False)  # batch norm adds a bias of its own
    return nn.Sequential(convolution, nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2))
