"""Untrained networks for the 8x8 digits, each under a megabyte and thousands of images per second on one core."""

from __future__ import annotations

from torch import nn

from models._ode_network import ode_network, residual_network

SIZE = {"width": 16, "upsample": 2}  # the feature extractor needs more than 8x8 pixels; 9,498 parameters


def resnet() -> nn.Module:
    """The weight-tied residual network, 16 channels wide, images enlarged to 16x16."""
    return residual_network(**SIZE)


def odenet() -> nn.Module:
    """The neural ODE, 16 channels wide, images enlarged to 16x16."""
    return ode_network(**SIZE)


def linear() -> nn.Module:
    """One linear layer on the 64 pixels: multinomial logistic regression."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
