"""The models of CIFAR-10 and CIFAR-100: networks, preprocessing, and weights that are looked for."""

from __future__ import annotations

import re

import pytest
import timm
import torch

import models.cifar
from models._architecture import build_architecture
from registry import registry
from testbed.data.weights import FoundWeights

NAMES = ("resnet18", "resnet34", "resnet50", "wrn-28-10")
SPACES = {"cifar10": 10, "cifar100": 100}


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", NAMES)
def test_every_network_is_there_for_both_label_spaces(name, space):
    model = registry.model(name, space)
    assert (model.label_space, model.transform) == (space, None)
    assert model.weights == FoundWeights(model=name, label_space=space, hub=models.cifar.HUB.get((name, space)))
    assert model.classifier_loader.args == (model.arch, SPACES[space])
    with torch.device("meta"):
        network = build_architecture(model.arch, num_classes=SPACES[space])
    assert network(torch.rand(1, 3, 32, 32, device="meta")).shape == (1, SPACES[space])


def test_the_papers_network_takes_pixels_as_they_are():
    assert registry.model("wrn-28-10", "cifar10").normalization is None


def test_resnets_are_normalized_as_the_checkpoints_on_the_hub_were():
    """config.json of edadaltocg/resnet50_cifar10 and edadaltocg/resnet50_cifar100."""
    ten, hundred = (registry.model("resnet50", space).normalization for space in SPACES)
    assert (ten.mean, ten.std) == ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.201))
    assert (hundred.mean, hundred.std) == ((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761))


def test_the_hub_is_asked_for_whole_commits():
    assert all(re.fullmatch("[0-9a-f]{40}", file.revision) for file in models.cifar.HUB.values())


@pytest.mark.parametrize(
    ("name", "count"), [("resnet18", 11_173_962), ("resnet34", 21_282_122), ("resnet50", 23_520_842)]
)
def test_resnets_differ_from_timms_in_their_first_layers_alone(name, count):
    with torch.device("meta"):
        ours = build_architecture(f"models._resnet_32px:{name}", num_classes=10)
        theirs = timm.create_model(name, num_classes=10)
    shapes = ({key: value.shape for key, value in network.state_dict().items()} for network in (ours, theirs))
    mine, known = shapes
    assert list(mine) == list(known)
    assert {key for key in mine if mine[key] != known[key]} == {"conv1.weight"}
    assert (ours.conv1.stride, ours.conv1.padding, tuple(mine["conv1.weight"])) == ((1, 1), (1, 1), (64, 3, 3, 3))
    assert ours.forward_features(torch.rand(1, 3, 32, 32, device="meta")).shape[2:] == (4, 4)
    assert sum(parameter.numel() for parameter in ours.parameters()) == count
