"""FGSM and PGD: worked by hand on a linear model, and their rules on a trained network."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from registry import registry
from testbed.data.datasets import load_samples
from testbed.definitions import load_definitions
from testbed.errors import DataError, DefinitionError
from testbed.perturbations.attacks import Fgsm, Pgd
from testbed.randomness import SampleKeys
from testbed.training.batches import images_tensor
from testbed.worker.classifier import Classifier, load_classifier

WEIGHTS = torch.tensor([3.0, -4.0, 0.0, 0.0])
PGD = Pgd(norm="linf", epsilon=0.1, step_size=0.03, num_steps=8)


class Linear(nn.Module):
    """Logits 3 a - 4 b and 0 of images of the four values a, b, c, d."""

    def forward(self, images: Tensor) -> Tensor:
        score = images.flatten(1) @ WEIGHTS
        return torch.stack([score, torch.zeros_like(score)], dim=1)


def keys(*indices: int, draw: int = 0) -> SampleKeys:
    return SampleKeys(seed=3, purpose="eval", dataset="toy", sample_indices=np.array(indices, np.int64), draw=draw)


def square(*values: float) -> Tensor:
    return torch.tensor(values).view(1, 1, 2, 2)


def run(attack: Fgsm | Pgd, images: Tensor, *targets: int, model: Any = None, **fields: Any) -> Tensor:
    return replace(attack, **fields)(
        images, model or Linear(), targets=torch.tensor(targets), keys=keys(*range(len(images)))
    )


@pytest.fixture(scope="module")
def digits() -> tuple[Classifier, Tensor, Tensor]:
    load_definitions()
    test = load_samples(registry.dataset("digits"), "test")
    model = registry.model("digits-resnet", "digits")
    classifier = load_classifier(model, device="cpu", fit_seed=0, fit_samples=None)
    return classifier, images_tensor(test)[:40], torch.from_numpy(test.targets[:40]).long()


def test_fgsm_moves_every_value_by_epsilon_against_the_target() -> None:
    clean = square(0.5, 0.5, 0.5, 0.5)
    fgsm = Fgsm(epsilon=0.125)
    assert run(fgsm, clean, 0).flatten().tolist() == [0.375, 0.625, 0.5, 0.5]
    assert run(fgsm, clean, 1).flatten().tolist() == [0.625, 0.375, 0.5, 0.5]


def test_pgd_ends_where_a_linear_model_loses_most() -> None:
    clean = square(0.5, 0.5, 0.5, 0.5)
    corner = run(PGD, clean, 0, epsilon=0.125, step_size=0.04).flatten()
    assert corner[:2].tolist() == [0.375, 0.625]
    assert corner[2:].sub(0.5).abs().max() <= 0.125  # nothing pulls at these: they stay where they started
    farthest = run(PGD, clean, 0, norm="l2", random_start=False).flatten()
    torch.testing.assert_close(farthest, torch.tensor([0.44, 0.58, 0.5, 0.5]))


def test_a_step_has_the_length_that_is_asked_for() -> None:
    clean = square(0.5, 0.5, 0.5, 0.5)
    first = {norm: run(PGD, clean, 0, norm=norm, num_steps=1, random_start=False).flatten() for norm in ("linf", "l2")}
    torch.testing.assert_close(first["linf"], torch.tensor([0.47, 0.53, 0.5, 0.5]))
    torch.testing.assert_close(first["l2"], torch.tensor([0.482, 0.524, 0.5, 0.5]))


def test_images_stay_in_the_unit_interval_only_where_asked() -> None:
    dark = square(0.0, 1.0, 0.0, 1.0)
    for attack in (Fgsm(epsilon=0.125), replace(PGD, epsilon=0.125, random_start=False)):
        assert run(attack, dark, 0).flatten().tolist() == dark.flatten().tolist()
        assert run(attack, dark, 0, clips=False).flatten()[:2].tolist() == [-0.125, 1.125]


def test_the_class_that_is_attacked_is_the_target_or_the_prediction() -> None:
    first = square(0.9, 0.1, 0.5, 0.5)  # is of class 0
    fgsm = Fgsm(epsilon=0.125)
    assert torch.equal(run(fgsm, first, 1, labels="predicted"), run(fgsm, first, 0))
    assert not torch.equal(run(fgsm, first, 1), run(fgsm, first, 0))
    assert torch.equal(run(fgsm, first, -1), run(fgsm, first, 0))  # without a class of its own


def test_an_l2_radius_grows_with_the_height_of_the_image_and_the_step_does_not() -> None:
    clean = square(0.5, 0.5, 0.5, 0.5)
    half = run(PGD, clean, 0, norm="l2", random_start=False, reference_side=4)
    torch.testing.assert_close(half, run(PGD, clean, 0, norm="l2", random_start=False, epsilon=0.05))
    one = {"norm": "l2", "random_start": False, "num_steps": 1, "step_size": 0.01}
    torch.testing.assert_close(run(PGD, clean, 0, reference_side=4, **one), run(PGD, clean, 0, **one))


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_a_start_depends_on_the_sample_alone(norm: Any) -> None:
    images = torch.rand(5, 1, 2, 2, generator=torch.Generator().manual_seed(0))
    start = Pgd(norm=norm, epsilon=0.1, step_size=1e-12, num_steps=1)  # the step is lost in rounding
    targets = torch.zeros(5, dtype=torch.int64)
    together = start(images, Linear(), targets=targets, keys=keys(4, 8, 0, 1, 9))
    parts = [start(images[i : i + 1], Linear(), targets=targets[:1], keys=keys(index)) for i, index in
             enumerate((4, 8, 0, 1, 9))]  # fmt: skip
    assert torch.equal(torch.cat(parts), together)
    other = start(images, Linear(), targets=targets, keys=keys(4, 8, 0, 1, 9, draw=1))
    assert not torch.isclose(other, together).flatten(1).all(dim=1).any()


@pytest.mark.parametrize(("norm", "epsilon"), [("linf", 0.1), ("linf", 8 / 255), ("l2", 0.8)])
def test_attacked_images_stay_in_the_ball_and_in_the_unit_interval(
    digits: tuple[Classifier, Tensor, Tensor], norm: Any, epsilon: float
) -> None:
    classifier, images, targets = digits
    kept = images.clone()
    attack = Pgd(norm=norm, epsilon=epsilon, step_size=epsilon / 2, num_steps=5)
    found = attack(images, classifier, targets=targets, keys=keys(*range(40)))
    assert torch.equal(images, kept)
    assert 0 <= found.min() <= found.max() <= 1
    if norm == "linf":
        assert (found - images).abs().max() <= np.float32(epsilon)
    else:
        lengths = (found.double() - images.double()).flatten(1).norm(dim=1)
        assert 0.9 * epsilon < lengths.max() <= epsilon * (1 + 1e-6)
    assert not found.requires_grad


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_a_larger_radius_leaves_less_accuracy(digits: tuple[Classifier, Tensor, Tensor], norm: Any) -> None:
    classifier, images, targets = digits
    scale = 1 if norm == "linf" else 8
    accuracies = [(classifier(images).argmax(1) == targets).double().mean()]
    for epsilon in (0.02 * scale, 0.05 * scale, 0.1 * scale, 0.2 * scale):
        attack = Pgd(norm=norm, epsilon=epsilon, step_size=epsilon / 4, num_steps=8)
        found = attack(images, classifier, targets=targets, keys=keys(*range(40)))
        accuracies.append((classifier(found).argmax(1) == targets).double().mean())
    assert accuracies == sorted(accuracies, reverse=True)
    assert accuracies[0] > 0.95
    assert accuracies[-1] < 0.1


def test_a_network_that_writes_into_its_images_is_attacked_alike() -> None:
    class Writer(Linear):
        def forward(self, images: Tensor) -> Tensor:
            answer = super().forward(images * 1)
            images.zero_()
            return answer

    clean = square(0.9, 0.1, 0.5, 0.5)
    assert torch.equal(run(PGD, clean, 0, model=Writer()), run(PGD, clean, 0))


def test_a_gradient_that_is_undefined_moves_nothing() -> None:
    def root(images: Tensor) -> Tensor:
        return torch.stack([images.sub(0.5).flatten(1).sum(1).pow(2).sqrt(), torch.zeros(len(images))], dim=1)

    flat = square(0.5, 0.5, 0.5, 0.5)
    assert torch.equal(run(Fgsm(epsilon=0.1), flat, 0, model=root), flat)


def test_a_model_without_gradients_and_one_of_other_classes_are_refused() -> None:
    flat = square(0.5, 0.5, 0.5, 0.5)
    with pytest.raises(DefinitionError, match="logits have no gradient"):
        run(PGD, flat, 0, model=lambda images: Linear()(images).detach())
    with pytest.raises(DefinitionError, match="on class 2, but the model has 2 outputs"):
        run(PGD, flat, 2)
    with pytest.raises(DataError, match="Pgd was asked for images with values from"):
        run(PGD, flat + 1, 0)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"norm": "l1"}, "norm 'l1'"),
        ({"epsilon": 0.0}, "epsilon 0.0"),
        ({"step_size": float("inf")}, "step_size inf"),
        ({"num_steps": 0}, "num_steps 0"),
        ({"labels": "true"}, "labels 'true'"),
        ({"reference_side": 224}, "reference_side 224 in linf"),
    ],
)
def test_an_attack_that_makes_no_sense_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        replace(PGD, **fields)
