"""The Wide ResNet of the paper, layer by layer."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from eval_settings.dataset_base import Dataset
from models._wide_resnet import WideResNet, wrn_28_10
from models.model_base import Model
from testbed.data.arrays import array_samples
from testbed.errors import DefinitionError
from testbed.training.recipe import recipe_named
from testbed.training.train import train


@pytest.fixture(scope="module")
def published():
    with torch.device("meta"):  # shapes without memory
        return wrn_28_10()


def test_number_of_parameters_is_the_published_one(published):
    """Siedel et al. 2022, their code: 36,489,290."""
    assert sum(parameter.numel() for parameter in published.parameters()) == 36_489_290


def test_layers_are_those_of_the_published_network(published):
    convolutions = [layer for layer in published.modules() if isinstance(layer, nn.Conv2d)]
    norms = {name: layer for name, layer in published.named_modules() if isinstance(layer, nn.BatchNorm2d)}
    dropouts = [layer for layer in published.modules() if isinstance(layer, nn.Dropout)]
    assert len(convolutions) == 1 + 3 * 4 * 2 + 3  # stem, three groups of four blocks of two, three shortcuts
    assert all(layer.bias is not None for layer in convolutions)
    assert [layer.p for layer in dropouts] == [0.3] * 12
    assert {name for name, layer in norms.items() if layer.momentum == 0.9} == {"bn1"}
    assert all(layer.momentum == 0.1 for name, layer in norms.items() if name != "bn1")
    widths = [group[-1].conv2.out_channels for group in (published.layer1, published.layer2, published.layer3)]
    assert widths == [160, 320, 640]


def test_a_group_halves_its_images_in_the_second_convolution_of_its_first_block(published):
    strides = [(block.conv1.stride[0], block.conv2.stride[0]) for group in (published.layer1, published.layer2)
               for block in group]  # fmt: skip
    assert strides == [(1, 1)] * 4 + [(1, 2)] + [(1, 1)] * 3
    assert [len(group[0].shortcut) for group in (published.layer1, published.layer2, published.layer3)] == [1, 1, 1]
    assert len(published.layer1[1].shortcut) == 0


def test_parameters_have_the_names_of_the_published_code(published):
    names = set(published.state_dict())
    expected = {"conv1.bias", "layer1.0.bn1.weight", "layer1.0.conv1.bias", "layer1.0.shortcut.0.bias",
                "layer3.3.conv2.weight", "bn1.running_mean", "linear.weight"}  # fmt: skip
    assert expected <= names
    assert {name.split(".")[0] for name in names} == {"conv1", "layer1", "layer2", "layer3", "bn1", "linear"}


def test_a_block_adds_its_convolutions_to_its_shortcut():
    torch.manual_seed(0)
    block = WideResNet(depth=10, width=1, num_classes=2).layer2[0].eval()
    images = torch.rand(2, 16, 8, 8)
    hidden = block.conv1(torch.relu(block.bn1(images)))
    expected = block.conv2(torch.relu(block.bn2(hidden))) + block.shortcut[0](images)
    torch.testing.assert_close(block(images), expected)
    assert expected.shape == (2, 32, 4, 4)


def test_dropout_works_between_the_convolutions_in_training_alone():
    torch.manual_seed(0)
    network = WideResNet(depth=10, width=1, num_classes=3, dropout=0.3)
    images = torch.rand(4, 3, 8, 8)
    assert not torch.equal(network(images), network(images))
    network.eval()
    assert torch.equal(network(images), network(images))


@pytest.mark.parametrize(("channels", "classes", "side"), [(3, 10, 32), (1, 7, 28)])
def test_logits_for_any_number_of_channels_and_classes(channels, classes, side):
    network = WideResNet(depth=10, width=1, num_classes=classes, num_channels=channels)
    assert network(torch.rand(2, channels, side, side)).shape == (2, classes)


def test_it_can_be_trained_by_the_published_recipe():
    """Four classes of plain colours, told apart after a few epochs."""
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]], dtype=np.uint8)
    targets = np.arange(32) % 4
    pixels = np.broadcast_to(colours[targets][:, None, None], (32, 8, 8, 3)).copy()
    dataset = Dataset(
        name="colours", splits=("train", "test"), fit_split="train",
        loader=lambda split: array_samples(pixels, targets, dataset="colours", split=split, class_names="rgbw"),
    )  # fmt: skip
    model = Model(name="net", arch="models._wide_resnet:wrn_28_10", transform=None, classifier_loader=lambda: None,
                  eval_batch_size=64)  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("models._wide_resnet.wrn_28_10", partial(WideResNet, depth=10, width=1))
        trained = train(model, dataset, recipe_named("mscr-cifar10", epochs=9, batch_size=8, max_shift=1), seed=0)
    assert (trained.epoch, trained.validation, trained.num_fitted) == (9, None, 32)
    assert trained.test.top1 > 50


@pytest.mark.parametrize("depth", [4, 12, 27])
def test_impossible_depths_are_refused(depth):
    with pytest.raises(DefinitionError, match=f"depth {depth} is not possible. Use 10, 16"):
        WideResNet(depth=depth, width=1, num_classes=2)
