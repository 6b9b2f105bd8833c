"""Wide residual networks for 32 px images, in the variant of the paper on minimal separation and corruptions.

It differs from the original of Zagoruyko & Komodakis: every convolution has a bias, a block halves its image in the
second convolution instead of the first, and the running statistics of the last batch norm have momentum 0.9. Parameters
are drawn as PyTorch draws them, and images are in [0, 1], without normalization.

Source: Siedel et al., "Utilizing Class Separation Distance for the Evaluation of Corruption Robustness of Machine
Learning Classifiers", 2022, and their code; Zagoruyko & Komodakis, "Wide Residual Networks", BMVC 2016.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from testbed.errors import DefinitionError

STEM_WIDTH = 16
LAST_MOMENTUM = 0.9


class Block(nn.Module):
    """x + conv(dropout(conv(x))), each convolution behind batch norm and ReLU."""

    def __init__(self, before: int, after: int, *, stride: int, dropout: float) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(before)
        self.conv1 = nn.Conv2d(before, after, kernel_size=3, padding=1)
        self.dropout = nn.Dropout(dropout)
        self.bn2 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, kernel_size=3, stride=stride, padding=1)
        is_same_shape = stride == 1 and before == after
        self.shortcut = nn.Sequential(*([] if is_same_shape else [nn.Conv2d(before, after, 1, stride=stride)]))

    def forward(self, images: Tensor) -> Tensor:
        """[n, after, H / stride, W / stride] of [n, before, H, W]."""
        hidden = self.dropout(self.conv1(functional.relu(self.bn1(images))))
        output: Tensor = self.conv2(functional.relu(self.bn2(hidden))) + self.shortcut(images)
        return output


class WideResNet(nn.Module):
    """Three groups of (depth - 4) / 6 blocks, 16, 32 and 64 times `width` channels wide; logits [n, num_classes].

    Args:
        depth: number of layers, 6 m + 4.
        width: the factor by which it is wider than the narrowest one.
        num_classes: width of the logits.
        num_channels: of the images.
        dropout: probability of a zero between the convolutions of a block.
    """

    def __init__(
        self, *, depth: int, width: int, num_classes: int, num_channels: int = 3, dropout: float = 0.3
    ) -> None:
        super().__init__()
        num_blocks, remainder = divmod(depth - 4, 6)
        if remainder or num_blocks < 1:
            raise DefinitionError(f"A wide residual network of depth {depth} is not possible. Use 10, 16, 22, 28, ...")
        widths = [STEM_WIDTH, *(STEM_WIDTH * width * factor for factor in (1, 2, 4))]
        groups = (
            _group(before, after, num_blocks=num_blocks, stride=stride, dropout=dropout)
            for before, after, stride in zip(widths[:-1], widths[1:], (1, 2, 2), strict=True)
        )
        self.conv1 = nn.Conv2d(num_channels, STEM_WIDTH, kernel_size=3, padding=1)
        self.layer1, self.layer2, self.layer3 = groups
        self.bn1 = nn.BatchNorm2d(widths[-1], momentum=LAST_MOMENTUM)
        self.linear = nn.Linear(widths[-1], num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits [n, num_classes] of images [n, num_channels, H, W] in [0, 1]."""
        features = functional.relu(self.bn1(self.layer3(self.layer2(self.layer1(self.conv1(images))))))
        logits: Tensor = self.linear(features.mean(dim=(2, 3)))
        return logits


def _group(before: int, after: int, *, num_blocks: int, stride: int, dropout: float) -> nn.Sequential:
    first = Block(before, after, stride=stride, dropout=dropout)
    return nn.Sequential(first, *(Block(after, after, stride=1, dropout=dropout) for _ in range(num_blocks - 1)))


def wrn_28_10(*, num_classes: int = 10) -> nn.Module:
    """The network of the paper; 36,489,290 parameters with ten classes."""
    return WideResNet(depth=28, width=10, num_classes=num_classes)
