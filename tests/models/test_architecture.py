"""From the name of an architecture to a network."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import timm
import torchvision
from torch import nn

from models._architecture import build_architecture, find_architecture
from testbed.errors import DefinitionError

NET_FILE = """
from torch import nn

def small(num_classes=3):
    return nn.Sequential(nn.Flatten(), nn.Linear(12, num_classes))

def fixed():
    return nn.Linear(12, 5)

def broken():
    raise RuntimeError("no such size")

not_a_network = dict
"""


@pytest.fixture
def net_file(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(NET_FILE)
    yield path
    sys.modules.pop("architecture_net", None)


def test_bare_name_is_timms_where_both_have_it():
    network = build_architecture("resnet18", num_classes=4)
    assert type(network) is timm.models.resnet.ResNet
    assert network.fc.out_features == 4


def test_prefix_chooses_the_library():
    assert type(build_architecture("torchvision:resnet18", num_classes=4)) is torchvision.models.resnet.ResNet


def test_bare_name_falls_back_to_torchvision():
    assert not timm.is_model("squeezenet1_1")
    network = build_architecture("squeezenet1_1", num_classes=4)
    assert type(network) is torchvision.models.squeezenet.SqueezeNet


def test_function_of_a_file_gets_the_number_of_classes_where_it_takes_it(net_file):
    assert build_architecture(f"{net_file}:small", num_classes=7)[1].out_features == 7
    assert build_architecture(f"{net_file}:small")[1].out_features == 3
    assert build_architecture(f"{net_file}:fixed", num_classes=7).out_features == 5


def test_function_of_an_importable_module(net_file, monkeypatch):
    monkeypatch.syspath_prepend(str(net_file.parent))
    assert build_architecture("net:fixed").out_features == 5
    del sys.modules["net"]


def test_function_of_a_plugin_goes_by_its_file_name(monkeypatch, tmp_path):
    plugin = ModuleType("plugin_abc_mine")
    plugin.__file__ = str(tmp_path / "mine.py")
    plugin.build = lambda: nn.Linear(2, 2)
    monkeypatch.setitem(sys.modules, plugin.__name__, plugin)
    assert isinstance(build_architecture("mine:build"), nn.Linear)


@pytest.mark.parametrize(
    ("arch", "message"),
    [
        ("resnet5O", r"Unknown architecture 'resnet5O'\. Did you mean .*resnet50.*--arch"),
        ("timm:squeezenet1_1", r"Unknown architecture 'timm:squeezenet1_1'"),
        ("no_such_module:build", r"'no_such_module'.* cannot be imported \(ModuleNotFoundError.*PYTHONPATH"),
        ("missing.py:build", r"'missing\.py'.*no such file"),
    ],
)
def test_unknown_names_are_refused_with_a_remedy(arch, message):
    with pytest.raises(DefinitionError, match=message):
        find_architecture(arch)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("smal", r"has no function 'smal'.*Did you mean small"),
        ("broken", r"cannot be built: RuntimeError: no such size"),
        ("not_a_network", r"gives a dict\. It must return a torch module"),
    ],
)
def test_functions_that_give_no_network_are_refused(net_file, function, message):
    with pytest.raises(DefinitionError, match=message):
        build_architecture(f"{net_file}:{function}")


def test_a_file_that_exits_is_an_error_not_an_exit(tmp_path):
    path = tmp_path / "leaves.py"
    path.write_text("raise SystemExit(0)")
    with pytest.raises(DefinitionError, match="cannot be imported"):
        find_architecture(f"{path}:build")
