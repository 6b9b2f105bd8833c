"""The small networks of Fashion-MNIST: trained weights as their cards say."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import eval_settings.mnist  # noqa: F401  (registers the data set)
import models.fashion_mnist
from registry import registry
from testbed.data.datasets import load_samples
from testbed.engine.classifier import load_classifier
from testbed.errors import DataError
from testbed.fingerprint import file_sha256
from testbed.perturbations.noise import UniformNoise
from testbed.randomness import SampleKeys
from testbed.training.batches import images_tensor
from testbed.training.card import card_path
from testbed.training.recipe import Recipe

NAMES = [name for name, _ in models.fashion_mnist.NETWORKS]
SIZE_LIMIT = 300_000  # bytes
EPSILON = 81 / 510  # half the minimal class separation
LOWEST_TOP1 = {"fashion-mnist-cnn": 90.0, "fashion-mnist-cnn-mscr-linf": 85.0}  # clean


def card_of(name):
    return json.loads(card_path(registry.model(name, "fashion-mnist").weights).read_text())


@pytest.fixture(scope="module")
def test_split():
    try:
        return load_samples(registry.dataset("fashion-mnist"), "test")
    except DataError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_those_of_the_card(name):
    model, card = registry.model(name, "fashion-mnist"), card_of(name)
    assert model.weights.stat().st_size < SIZE_LIMIT
    assert card["sha256"] == file_sha256(model.weights)
    assert (card["model"], card["arch"], card["dataset"]) == (name, model.arch, "fashion-mnist")
    assert card["num_parameters"] == 24_058
    assert card["test"]["top1"] > LOWEST_TOP1[name]


@pytest.mark.parametrize("name", NAMES)
def test_card_names_the_command_that_made_the_file(name):
    command = card_of(name)["command"].split()
    assert command[:2] == ["python", "train.py"]
    assert command[command.index("--out") + 1] == f"src/models/weights/{name}.safetensors"


def test_a_tenth_of_the_train_split_was_held_out_to_choose_the_epoch_by():
    for card in map(card_of, NAMES):
        assert (card["num_fitted"], card["validation"]["n"], card["test"]["n"]) == (54_000, 6_000, 10_000)
        assert set(card["data_fingerprints"]) == {"train", "test"}


def test_the_twins_differ_in_their_training_noise_alone():
    clean, noisy = (card_of(name) for name in NAMES)
    differing = {name for name, value in clean["recipe"].items() if noisy["recipe"][name] != value}
    assert differing == {"noise", "epsilon"}
    assert (clean["recipe"]["noise"], noisy["recipe"]["noise"]) == ("none", "uniform-linf")
    assert noisy["recipe"]["epsilon"] == pytest.approx(EPSILON, abs=1e-6)
    assert clean["seed"] == noisy["seed"]
    assert set(clean["recipe"]) == set(Recipe.__dataclass_fields__)


def top1(name, images, targets):
    classifier = load_classifier(registry.model(name, "fashion-mnist"), device="cpu", fit_seed=0, fit_samples=None)
    with torch.inference_mode():
        return 100 * float((classifier(images).argmax(dim=1) == targets).float().mean())


@pytest.mark.parametrize("name", NAMES)
def test_accuracy_is_that_of_the_card(name, test_split):
    images, targets = images_tensor(test_split)[:2000], torch.from_numpy(test_split.targets)[:2000]
    card = card_of(name)
    assert top1(name, images, targets) == pytest.approx(card["test"]["top1"], abs=2)  # of a fifth of the images
    assert card["data_fingerprints"]["test"] == test_split.fingerprint


def test_only_the_twin_withstands_the_noise_that_it_was_trained_on(test_split):
    images, targets = images_tensor(test_split)[:1000], torch.from_numpy(test_split.targets)[:1000]
    keys = SampleKeys(seed=0, purpose="eval", dataset="fashion-mnist", sample_indices=np.arange(1000), draw=0)
    noisy = UniformNoise(norm="linf", epsilon=EPSILON)(images, keys=keys)
    plain, twin = (top1(name, noisy, targets) for name in NAMES)
    assert plain < 60 < 85 < twin
