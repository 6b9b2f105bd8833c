"""The file of a model's parameters: which it is, what takes one, and that it is told where it is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from models._checkpoint import load_trained
from models.model_base import Model
from models.smoothed import Smoothed
from registry import Registry
from testbed.engine.identity import model_version
from testbed.errors import DataError, DefinitionError, UnknownNameError
from testbed.worker.classifier import load_classifier


def linear(*, weights):
    return load_trained("models._digits_networks:linear", None, weights=weights)


def model(weights, loader=linear, **changes):
    return Model(name="net", transform=None, classifier_loader=loader, eval_batch_size=4, weights=weights,
                 version="1", **changes)  # fmt: skip


@pytest.fixture
def files(tmp_path):
    """Two files of parameters that differ in one number."""
    paths = []
    for number in (1.0, 2.0):
        paths.append(tmp_path / f"{number}.safetensors")
        save_file({"1.weight": torch.full((10, 64), number), "1.bias": torch.zeros(10)}, paths[-1])
    return paths


def logit(of):
    return float(load_classifier(of, device="cpu", fit_seed=0, fit_samples=None)(torch.ones(1, 1, 8, 8))[0, 0])


def test_the_loader_is_given_the_file(files):
    assert [logit(model(file)) for file in files] == [64.0, 128.0]


def test_a_function_finds_the_file_when_it_is_needed(files):
    found = model(lambda: files[1])
    assert found.weights_file() == files[1]
    assert logit(found) == 128.0


def test_another_file_is_another_model_and_the_same_bytes_are_not(files, tmp_path):
    first, second = (model_version(model(file)).fingerprint for file in files)
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(files[0].read_bytes())
    assert first != second
    assert model_version(model(copy)).fingerprint == first
    assert model_version(model(lambda: files[0])).fingerprint == first


def test_a_file_that_changes_is_another_model(files):
    before = model_version(model(files[0])).fingerprint
    files[0].write_bytes(files[1].read_bytes())
    assert model_version(model(files[0])).fingerprint == model_version(model(files[1])).fingerprint != before


def test_missing_file_is_told_by_name():
    with pytest.raises(DataError, match=r"Model 'net' needs its weights at nowhere\.pt, which is not there"):
        model_version(model(Path("nowhere.pt")))


def test_a_loader_that_takes_weights_needs_some():
    with pytest.raises(DefinitionError, match=r"Model 'net': classifier_loader takes `weights`, but .* names none"):
        model(None)


def test_weights_are_set_for_every_label_space_of_a_name(files):
    registry = Registry()
    for space in ("a", "b"):
        registry.add_model(model(files[0], label_space=space))
    registry.set_weights("net", files[1])
    assert [registry.model("net", space).weights for space in ("a", "b")] == [files[1]] * 2
    registry.set_weights("net", files[1])  # a worker in the driver's own process does it once more
    assert logit(registry.model("net", "a")) == 128.0


def test_weights_of_an_unknown_model_are_an_error(files):
    registry = Registry()
    registry.add_model(model(files[0]))
    with pytest.raises(UnknownNameError, match=r"Unknown model 'nett'\. Did you mean net\?"):
        registry.set_weights("nett", files[0])


def test_weights_that_are_given_to_a_variant_are_an_error_that_names_the_model_to_give_them_to(files):
    registry = Registry()
    registry.add_model(model(files[0]))
    registry.add_model_variants(Smoothed())
    with pytest.raises(DefinitionError, match=r"'net-smoothed-0\.25' has the weights of 'net'.* --weights net=FILE"):
        registry.set_weights("net-smoothed-0.25", files[1])
    with pytest.raises(UnknownNameError, match=r"Unknown model 'other-smoothed-0\.25'"):
        registry.set_weights("other-smoothed-0.25", files[1])


def test_a_model_that_loads_itself_takes_no_file(files):
    registry = Registry()
    registry.add_model(model(None, loader=lambda: None))
    with pytest.raises(DefinitionError, match=r"'net' takes no file of weights: .* no argument `weights`"):
        registry.set_weights("net", files[0])
