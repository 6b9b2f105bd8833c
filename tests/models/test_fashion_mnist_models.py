"""The small networks of Fashion-MNIST: trained weights as their cards say, and one network per seed."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import eval_settings.mnist  # noqa: F401  (registers the data set)
import models.fashion_mnist
from registry import registry
from testbed.data.datasets import load_samples
from testbed.errors import DataError, DefinitionError
from testbed.fingerprint import file_sha256
from testbed.perturbations.noise import UniformNoise
from testbed.randomness import SampleKeys
from testbed.training.batches import images_tensor
from testbed.training.card import card_path
from testbed.training.recipe import Recipe
from testbed.worker.classifier import load_classifier

NAMES = [name for name, _, _ in models.fashion_mnist.CNNS]
SIZE_LIMIT = 300_000  # bytes
TWINS = [name for name, _, _ in models.fashion_mnist.TWINS]
SEEDS = (0, 1, 2)
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


def top1(name, images, targets, *, seed=0):
    classifier = load_classifier(registry.model(name, "fashion-mnist"), device="cpu", fit_seed=seed, fit_samples=None)
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


# the neural ODE and its residual twin


def test_the_twins_have_three_trainings_each_that_differ_in_the_seed_alone():
    cards = [card_of(name) for name in TWINS]
    assert [[network["seed"] for network in card["networks"]] for card in cards] == [list(SEEDS)] * 2
    assert cards[0]["recipe"] == cards[1]["recipe"]
    assert cards[0]["recipe"]["epochs"] <= 10
    assert {card["num_parameters"] for card in cards} == {9_498}
    for name, card in zip(TWINS, cards, strict=True):
        assert card["sha256"] == file_sha256(registry.model(name, "fashion-mnist").weights)
        assert min(network["test"]["top1"] for network in card["networks"]) > 85


@pytest.mark.parametrize("name", TWINS)
def test_the_seed_of_the_run_says_which_training_is_evaluated(name, test_split):
    images, targets = images_tensor(test_split)[:1000], torch.from_numpy(test_split.targets)[:1000]
    reached = [top1(name, images, targets, seed=seed) for seed in SEEDS]
    assert len(set(reached)) == len(SEEDS)
    for value, network in zip(reached, card_of(name)["networks"], strict=True):
        assert value == pytest.approx(network["test"]["top1"], abs=3)  # of a tenth of the images


@pytest.mark.parametrize("name", TWINS)
def test_a_seed_that_was_not_trained_is_told(name):
    with pytest.raises(DefinitionError, match="holds seed0, seed1, seed2, not seed3"):
        load_classifier(registry.model(name, "fashion-mnist"), device="cpu", fit_seed=3, fit_samples=None)
