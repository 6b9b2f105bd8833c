"""ResNets for images of 32 px: those of timm, with a first convolution of 3x3, stride 1, and no pooling after it.

Their parameters bear the names that timm and torchvision give them, so checkpoints of either fit.

Source: He et al., "Deep Residual Learning for Image Recognition", CVPR 2016.
"""

from __future__ import annotations

from torch import nn


def resnet18(*, num_classes: int = 10) -> nn.Module:
    """ResNet-18; 11,173,962 parameters with ten classes."""
    return _for_32_px("resnet18", num_classes)


def resnet34(*, num_classes: int = 10) -> nn.Module:
    """ResNet-34; 21,282,122 parameters with ten classes."""
    return _for_32_px("resnet34", num_classes)


def resnet50(*, num_classes: int = 10) -> nn.Module:
    """ResNet-50; 23,520,842 parameters with ten classes."""
    return _for_32_px("resnet50", num_classes)


def _for_32_px(name: str, num_classes: int) -> nn.Module:
    import timm

    network: nn.Module = timm.create_model(name, pretrained=False, num_classes=num_classes)
    network.conv1 = nn.Conv2d(3, 64, kernel_size=3, padding=1, bias=False)
    nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")  # as timm draws the others
    network.maxpool = nn.Identity()
    return network
