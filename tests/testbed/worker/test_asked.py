"""What an attack is given in a worker: a model of the images that it changes, targets that count that model's logits,
and gradients; and what a model that draws noise is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.workbench import Sums, Workbench, logits, unit, workbench
from torch import Tensor, nn

from models.model_base import StandardTransform
from testbed.engine.unit import UnitFailure
from testbed.perturbations.attacks import Fgsm, Pgd
from testbed.randomness import SampleKeys

__all__ = ["workbench"]  # a fixture


class Wide(nn.Module):
    """A network of six logits: the first six values of an image."""

    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1)[:, :6]


class Spy:
    """An attack that changes nothing and keeps what it was given."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []
        self.targets: list[int] = []
        self.was_differentiable = False

    def __call__(self, images: Tensor, model: Any, targets: Tensor) -> Tensor:
        answer = model(images.requires_grad_())
        self.was_differentiable = bool(answer.requires_grad)
        self.shapes.append(tuple(answer.shape[1:]))
        self.targets += targets.tolist()
        return images


def cut(images: Tensor, model: Any, class_sublist: Sequence[int] | None) -> Tensor:
    answer: Tensor = model(images)
    return answer if class_sublist is None else answer[:, list(class_sublist)]


@pytest.mark.parametrize(
    ("sublist", "classify", "width", "expected"),
    [
        (None, None, 6, [0, 1, 2]),
        ([5, 0, 2], None, 6, [5, 0, 2]),  # columns of all the model's logits
        ([5, 0, 2], cut, 3, [0, 1, 2]),  # positions among those that the model picks
        ([(5, 1), 0, (2, 3)], None, 3, [0, 1, 2]),  # a class of several columns is none of the model's
    ],
)
def test_targets_count_the_logits_of_the_model_that_is_attacked(
    workbench: Workbench, sublist: Any, classify: Any, width: int, expected: list[int]
) -> None:
    spy = Spy()
    model = workbench.model("wide", Wide, classify=classify)
    task = workbench.task(perturbation_fn_gpu=spy, class_sublist=sublist, adversarial_attack={})
    workbench.worker().run(unit(task, model, stop=6, batch_size=3))
    assert spy.shapes == [(width,)] * 2
    assert spy.targets == expected * 2


def test_gradients_are_there_for_attacks_only(workbench: Workbench) -> None:
    model = workbench.model("sums")
    for attack in ({"eps": 1}, None):
        spy = Spy()
        task = workbench.task(perturbation_fn_gpu=spy, adversarial_attack=attack)
        workbench.worker().run(unit(task, model))
        assert spy.was_differentiable == (attack is not None)


def test_an_attack_moves_the_class_of_the_setting_whatever_its_columns(workbench: Workbench) -> None:
    model = workbench.model("wide", Wide)
    for sublist in ([5, 0, 2], [(5, 1), 0, (2, 3)]):
        task = workbench.task(perturbation_fn_gpu=Fgsm(epsilon=0.5), class_sublist=sublist, adversarial_attack={})
        clean = workbench.task(class_sublist=sublist)
        workbench.tasks[clean] = workbench.tasks[task].__class__(
            **{**vars(workbench.tasks[clean]), "bank": workbench.tasks[task].bank}
        )
        worker = workbench.worker()
        outcomes = [worker.run(unit(number, model)).outcomes[model] for number in (clean, task)]
        right = [int((outcome.target_ranks == 0).sum()) for outcome in outcomes]  # type: ignore[union-attr]
        assert right[1] < right[0]


def test_an_attack_in_the_canonical_space_goes_through_the_models_resize(workbench: Workbench) -> None:
    spy = Spy()
    shapes = []

    class Eight(Sums):
        def forward(self, images: Tensor) -> Tensor:
            shapes.append(images.shape[-1])
            return super().forward(images)

    model = workbench.model("eight", Eight, transform=StandardTransform(8, 8))
    task = workbench.task(perturbation_fn_gpu=spy, adversarial_attack={}, space="canonical")
    workbench.worker().run(unit(task, model))
    assert set(shapes) == {8}
    assert spy.was_differentiable


@pytest.mark.parametrize("attack", [Fgsm(epsilon=0.1), Pgd(norm="l2", epsilon=0.5, step_size=0.2, num_steps=3)])
def test_an_attack_does_not_depend_on_the_batch(workbench: Workbench, attack: Any) -> None:
    model = workbench.model("sums")
    task = workbench.task(perturbation_fn_gpu=attack, adversarial_attack={})
    worker = workbench.worker()
    whole, parts = (logits(worker.run(unit(task, model, batch_size=size)), model) for size in (20, 3))
    np.testing.assert_allclose(whole, parts, atol=1e-5)


def test_a_model_without_gradients_fails_in_words(workbench: Workbench) -> None:
    def detached(images: Tensor, model: Any) -> Tensor:
        answer: Tensor = model(images).detach()
        return answer

    model = workbench.model("detached", classify=detached)
    task = workbench.task(perturbation_fn_gpu=Fgsm(epsilon=0.1), adversarial_attack={})
    outcome = workbench.worker().run(unit(task, model)).outcomes[model]
    assert isinstance(outcome, UnitFailure)
    assert outcome.reason.startswith("The model's logits have no gradient")


def test_a_model_that_draws_is_given_the_keys_of_its_samples(workbench: Workbench) -> None:
    given: list[SampleKeys] = []

    def drawing(images: Tensor, model: Any, keys: SampleKeys) -> Tensor:
        given.append(keys)
        answer: Tensor = model(images) + keys.uniform("noise", (3,))
        return answer

    model = workbench.model("drawing", classify=drawing, is_random=True)
    task = workbench.task(is_in_order=False)
    worker = workbench.worker()
    whole, parts, other = (
        logits(worker.run(unit(task, model, batch_size=size, noise_seed=seed, draw=2)), model)
        for size, seed in ((20, 4), (3, 4), (20, 5))
    )
    np.testing.assert_array_equal(whole, parts)
    assert not np.array_equal(whole, other)
    assert (given[0].seed, given[0].draw, given[0].dataset, given[0].purpose) == (4, 2, "workbench", "eval")
    assert given[0].sample_indices.tolist() == workbench.tasks[task].sample_indices.tolist()
