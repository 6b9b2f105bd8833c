"""The neural ODE and its residual twin: published size, exact Euler steps, and the one difference between the two."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from models._ode_network import Dynamics, NeuralODE, TiedResidual, TimeConv2d, euler, ode_network, residual_network

NETWORKS = pytest.mark.parametrize("build", [ode_network, residual_network])


def num_parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


class FakeDynamics(Dynamics):
    """f(t, z) = 1 + t, and a record of the times asked for."""

    def __init__(self) -> None:
        super().__init__(width=2)
        self.times: list[float] = []

    def forward(self, time: float, state: Tensor) -> Tensor:
        self.times.append(time)
        return torch.full_like(state, 1 + time)


@NETWORKS
@pytest.mark.parametrize(("num_channels", "published"), [(1, 142_410), (3, 143_562)])
def test_published_number_of_parameters(build, num_channels, published):
    assert num_parameters(build(num_channels=num_channels)) == published


def test_euler_of_exponential_growth_is_the_power_of_its_steps():
    grown = euler(lambda time, state: state, torch.ones(3, dtype=torch.float64), num_steps=10)
    torch.testing.assert_close(grown, torch.full((3,), 1.1**10, dtype=torch.float64), rtol=1e-14, atol=0)


def test_euler_sees_the_left_end_of_each_step():
    area = euler(lambda time, state: torch.full_like(state, time), torch.zeros(1, dtype=torch.float64), num_steps=10)
    assert area.item() == pytest.approx(0.45)  # the left sum of t over [0, 1]; exact is 0.5


@pytest.mark.parametrize(("body", "expected"), [(NeuralODE, 1.45), (TiedResidual, 14.5)])
def test_twins_ask_the_same_times_and_differ_by_the_step_alone(body, expected):
    dynamics = FakeDynamics()
    state = body(dynamics)(torch.zeros(1, 2, 3, 3))
    assert dynamics.times == [step / 10 for step in range(10)]
    torch.testing.assert_close(state, torch.full_like(state, expected))


def test_twins_have_the_same_layers():
    shapes = [
        {name: value.shape for name, value in build().state_dict().items()} for build in (ode_network, residual_network)
    ]
    assert shapes[0] == shapes[1]


def test_time_is_the_first_channel():
    layer = TimeConv2d(2)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    layer.weight.data[0, 0, 1, 1] = 1  # output channel 0 copies input channel 0
    out = layer(0.7, torch.full((1, 2, 3, 3), 5.0))
    assert torch.equal(out[0, 0], torch.full((3, 3), 0.7))
    assert torch.equal(out[0, 1], torch.zeros(3, 3))


def test_dynamics_are_never_negative():
    torch.manual_seed(0)
    assert Dynamics(8)(0.3, torch.randn(4, 8, 7, 7)).min() == 0


@NETWORKS
def test_groups_have_two_channels(build):
    for width in (16, 64):
        norms = [layer for layer in build(width=width).modules() if isinstance(layer, nn.GroupNorm)]
        assert [(norm.num_groups, norm.num_channels) for norm in norms] == [(width // 2, width)] * 4


@NETWORKS
def test_upsampling_happens_inside(build):
    network = build(width=4, num_classes=7, upsample=2).eval()
    seen: list[torch.Size] = []
    network.features.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0].shape))
    assert network(torch.rand(2, 1, 8, 8)).shape == (2, 7)
    assert seen == [(2, 1, 16, 16)]


def test_published_sizes_of_the_state():
    features = ode_network(width=64).features
    assert features(torch.rand(1, 1, 28, 28)).shape == (1, 64, 13, 13)
