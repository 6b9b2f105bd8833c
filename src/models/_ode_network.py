"""A neural ODE for small images and its discrete twin, a weight-tied residual network: equal but for the step.

Source: ODENet of Yan et al., "On Robustness of Neural Ordinary Differential Equations", ICLR 2020; the residual twin
of "Noisy Learning for Neural ODEs Acts as a Robustness Locus Widening", arXiv 2206.08237.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import torch
from torch import Tensor, nn

NUM_STEPS = 10
CHANNELS_PER_GROUP = 2  # 32 groups at the published width of 64


def euler(derivative: Callable[[float, Tensor], Tensor], state: Tensor, *, num_steps: int) -> Tensor:
    """State at time 1 of dz/dt = derivative(t, z), z(0) = `state`, by `num_steps` equal explicit Euler steps."""
    for step in range(num_steps):
        state = state + derivative(step / num_steps, state) / num_steps
    return state


class TimeConv2d(nn.Conv2d):
    """A 3x3 convolution that keeps the size and sees the time as a constant plane before the first channel."""

    def __init__(self, width: int) -> None:
        super().__init__(width + 1, width, kernel_size=3, padding=1)

    def forward(self, time: float, state: Tensor) -> Tensor:  # type: ignore[override]
        """[n, width, H, W] float from a state of the same shape at `time` in [0, 1)."""
        plane = torch.full_like(state[:, :1], time)
        return super().forward(torch.cat([plane, state], dim=1))


class Dynamics(nn.Module):
    """f(t, z): time convolution, group norm, ReLU, twice; so f is never negative."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = TimeConv2d(width), _group_norm(width)
        self.conv2, self.norm2 = TimeConv2d(width), _group_norm(width)

    def forward(self, time: float, state: Tensor) -> Tensor:
        """f at `time` in [0, 1) and `state` [n, width, H, W]; same shape."""
        hidden = torch.relu(self.norm1(self.conv1(time, state)))
        return torch.relu(self.norm2(self.conv2(time, hidden)))


class NeuralODE(nn.Module):
    """z(1) of dz/dt = f(t, z), by Euler's method."""

    def __init__(self, dynamics: Dynamics) -> None:
        super().__init__()
        self.dynamics = dynamics

    def forward(self, state: Tensor) -> Tensor:
        """[n, width, H, W] at time 1 from the same at time 0."""
        return euler(self.dynamics, state, num_steps=NUM_STEPS)


class TiedResidual(nn.Module):
    """z + f(t, z), ten blocks that share one f, with t = 0, 0.1, ... 0.9 and no step size before f."""

    def __init__(self, dynamics: Dynamics) -> None:
        super().__init__()
        self.dynamics = dynamics

    def forward(self, state: Tensor) -> Tensor:
        """[n, width, H, W] after the last block."""
        for block in range(NUM_STEPS):
            state = state + self.dynamics(block / NUM_STEPS, state)
        return state


def ode_network(*, width: int = 64, num_channels: int = 1, num_classes: int = 10, upsample: int = 1) -> nn.Module:
    """The neural ODE between feature extractor and classifier; 142,410 parameters with the published sizes.

    Args:
        width: channels of the state, an even number; GroupNorm has width / 2 groups.
        num_channels: channels of the images.
        num_classes: width of the logits.
        upsample: factor by which images are enlarged (bilinear) inside the network; 1 for none.
    """
    return _network(NeuralODE(Dynamics(width)), width, num_channels, num_classes, upsample)


def residual_network(*, width: int = 64, num_channels: int = 1, num_classes: int = 10, upsample: int = 1) -> nn.Module:
    """The weight-tied residual twin of `ode_network`: same arguments, layers and parameters."""
    return _network(TiedResidual(Dynamics(width)), width, num_channels, num_classes, upsample)


def _network(body: nn.Module, width: int, num_channels: int, num_classes: int, upsample: int) -> nn.Module:
    enlarge = nn.Upsample(scale_factor=upsample, mode="bilinear") if upsample > 1 else nn.Identity()
    features = nn.Sequential(
        nn.Conv2d(num_channels, width, kernel_size=3), _group_norm(width), nn.ReLU(),
        nn.Conv2d(width, width, kernel_size=4, stride=2, padding=1), _group_norm(width), nn.ReLU(),
    )  # fmt: skip
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, num_classes))
    return nn.Sequential(OrderedDict(enlarge=enlarge, features=features, body=body, head=head))


def _group_norm(width: int) -> nn.GroupNorm:
    return nn.GroupNorm(width // CHANNELS_PER_GROUP, width)
