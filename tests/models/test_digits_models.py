"""The built-in models of `digits`: trained weights as their cards say, and estimators fitted in a run."""

from __future__ import annotations

import json

import pytest
import torch

import eval_settings.digits
import models.digits
from models._estimators import random_forest
from registry import registry
from testbed.fingerprint import file_sha256
from testbed.training.batches import images_tensor
from testbed.training.card import card_path
from testbed.training.train import NUM_THREADS
from testbed.worker.classifier import load_classifier

TRAINED = pytest.mark.parametrize("name", [name for name, _, _ in models.digits.NETWORKS])
ALL = [name for name, _, _ in (*models.digits.NETWORKS, *models.digits.ESTIMATORS)]
LOWEST_TOP1 = {"digits-resnet": 97.0, "digits-odenet": 97.0, "digits-linear": 93.0, "digits-random-forest": 95.0,
               "digits-1nn": 97.0}  # fmt: skip


@pytest.fixture(scope="module")
def logits():
    """Logits of every model on the test split."""
    fit = eval_settings.digits.load_digits_split("train")
    images = images_tensor(eval_settings.digits.load_digits_split("test"))
    with torch.inference_mode():
        return {
            name: load_classifier(registry.model(name, "digits"), device="cpu", fit_seed=0, fit_samples=fit)(images)
            for name in ALL
        }


@pytest.mark.parametrize("name", ALL)
def test_accuracy_and_shape(name, logits):
    targets = torch.from_numpy(eval_settings.digits.load_digits_split("test").targets)
    assert logits[name].shape == (597, 10)
    assert 100 * (logits[name].argmax(dim=1) == targets).float().mean() > LOWEST_TOP1[name]


@TRAINED
def test_weights_are_those_of_the_card(name, logits):
    weights = registry.model(name, "digits").weights
    card = json.loads(card_path(weights).read_text())
    targets = torch.from_numpy(eval_settings.digits.load_digits_split("test").targets)
    assert weights.stat().st_size < 1_000_000
    assert card["sha256"] == file_sha256(weights)
    assert card["arch"] == registry.model(name, "digits").arch
    assert card["test"]["correct"] == int((logits[name].argmax(dim=1) == targets).sum())
    assert card["num_threads"] == NUM_THREADS


@TRAINED
def test_weights_were_trained_on_the_splits_of_today(name):
    card = json.loads(card_path(registry.model(name, "digits").weights).read_text())
    for split, fingerprint in card["data_fingerprints"].items():
        assert eval_settings.digits.load_digits_split(split).fingerprint == fingerprint


@TRAINED
def test_card_names_the_command_that_made_the_file(name):
    card = json.loads(card_path(registry.model(name, "digits").weights).read_text())
    command = card["command"].split()
    assert command[:2] == ["python", "train.py"]
    assert command[command.index("--out") + 1] == f"src/models/weights/{name}.safetensors"


def test_all_models_share_their_batches():
    shared = {(model.transform, model.eval_batch_size, model.normalization) for model in map(registry.model, ALL)}
    assert shared == {(None, 128, None)}


def test_forest_depends_on_its_seed_alone():
    fit = eval_settings.digits.load_digits_split("train")
    images = images_tensor(eval_settings.digits.load_digits_split("validation"))
    loader, classify = random_forest, models.digits.classify
    first, again, other = (classify(images, loader(seed=seed, dataset=fit)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("name", [name for name, _, _ in models.digits.ESTIMATORS])
def test_estimators_give_the_same_bits_for_any_batching(name, logits):
    fit = eval_settings.digits.load_digits_split("train")
    images = images_tensor(eval_settings.digits.load_digits_split("test"))
    classifier = load_classifier(registry.model(name, "digits"), device="cpu", fit_seed=0, fit_samples=fit)
    assert torch.equal(torch.cat([classifier(part) for part in images.split(100)]), logits[name])
