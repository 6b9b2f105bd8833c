"""Untrained networks for 28x28 grey images, 16 channels wide: a neural ODE and its residual twin, 9,498 parameters."""

from __future__ import annotations

from torch import nn

from models._ode_network import ode_network, residual_network

WIDTH = 16  # the published networks are 64 wide


def resnet() -> nn.Module:
    """The weight-tied residual network."""
    return residual_network(width=WIDTH)


def odenet() -> nn.Module:
    """The neural ODE."""
    return ode_network(width=WIDTH)
