"""Attacks against those of Foolbox, an independent library. Runs where Foolbox is installed: `pip install foolbox`.

Both attack the same trained networks with the same radius, steps and starts of their own; what they leave right differs
by the starts alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from registry import registry
from testbed.data.datasets import load_samples
from testbed.definitions import load_definitions
from testbed.errors import DataError
from testbed.perturbations.attacks import Fgsm, Pgd
from testbed.randomness import SampleKeys
from testbed.training.batches import images_tensor
from testbed.worker.classifier import Classifier, load_classifier

foolbox = pytest.importorskip("foolbox")

NUM_IMAGES, NUM_STEPS = 200, 20
NETWORKS = (("digits", "digits-resnet"), ("fashion-mnist", "fashion-mnist-cnn"))
LEVELS = {
    ("digits", "linf"): 0.08,
    ("digits", "l2"): 0.6,
    ("fashion-mnist", "linf"): 0.03,
    ("fashion-mnist", "l2"): 0.4,
}


@pytest.fixture(scope="module", params=NETWORKS, ids=[name for _, name in NETWORKS])
def attacked(request: Any) -> tuple[str, Classifier, Tensor, Tensor]:
    """A data set, a network, and images that it classifies right, with their classes."""
    load_definitions()
    dataset, name = request.param
    try:
        test = load_samples(registry.dataset(dataset), "test")
    except DataError as error:  # downloads are off in tests
        pytest.skip(str(error))
    classifier = load_classifier(registry.model(name, dataset), device="cpu", fit_seed=0, fit_samples=None)
    images, targets = images_tensor(test)[:NUM_IMAGES], torch.from_numpy(test.targets[:NUM_IMAGES]).long()
    with torch.no_grad():
        is_right = classifier(images).argmax(dim=1) == targets
    return dataset, classifier, images[is_right], targets[is_right]


def _success(classifier: Classifier, images: Tensor, targets: Tensor) -> float:
    with torch.no_grad():
        return float((classifier(images).argmax(dim=1) != targets).double().mean())


def _by_foolbox(attack: Any, classifier: Classifier, images: Tensor, targets: Tensor, epsilon: float) -> float:
    model = foolbox.PyTorchModel(classifier, bounds=(0, 1), device="cpu")
    _, clipped, _ = attack(model, images, targets, epsilons=epsilon)
    return _success(classifier, clipped, targets)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_pgd_succeeds_as_often_as_foolbox(attacked: tuple[str, Classifier, Tensor, Tensor], norm: Any) -> None:
    dataset, classifier, images, targets = attacked
    epsilon = LEVELS[dataset, norm]
    keys = SampleKeys(seed=0, purpose="eval", dataset=dataset, sample_indices=np.arange(len(images)), draw=0)
    ours = Pgd(norm=norm, epsilon=epsilon, step_size=epsilon / 8, num_steps=NUM_STEPS)
    own = _success(classifier, ours(images, classifier, targets=targets, keys=keys), targets)
    theirs = {"linf": foolbox.attacks.LinfPGD, "l2": foolbox.attacks.L2PGD}[norm]
    torch.manual_seed(0)
    other = _by_foolbox(theirs(rel_stepsize=1 / 8, steps=NUM_STEPS), classifier, images, targets, epsilon)
    print(f"{dataset} {norm} {epsilon}: ours {own:.3f}, Foolbox {other:.3f}, n = {len(images)}")
    assert 0.1 < own < 0.95  # where a difference would show
    assert abs(own - other) <= 0.03


def test_fgsm_succeeds_exactly_where_foolbox_does(attacked: tuple[str, Classifier, Tensor, Tensor]) -> None:
    dataset, classifier, images, targets = attacked
    epsilon = LEVELS[dataset, "linf"]
    keys = SampleKeys(seed=0, purpose="eval", dataset=dataset, sample_indices=np.arange(len(images)), draw=0)
    found = Fgsm(epsilon=epsilon)(images, classifier, targets=targets, keys=keys)
    attack = foolbox.attacks.LinfFastGradientAttack(random_start=False)
    other = _by_foolbox(attack, classifier, images, targets, epsilon)
    print(f"{dataset} fgsm {epsilon}: ours {_success(classifier, found, targets):.3f}, Foolbox {other:.3f}")
    assert abs(_success(classifier, found, targets) - other) <= 0.01
