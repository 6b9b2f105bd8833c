"""Smoothed models: what they vote, under which names, and what is stored of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import torch
from tests.workbench import Workbench, logits, unit, workbench
from torch import Tensor, nn

from models._imagenet_heads import imagenet_columns
from models.model_base import Model, StandardNormalization
from registry import registry
from testbed.definitions import Sources, load_definitions
from testbed.engine.devices import choose_devices
from testbed.engine.evaluate import run_evaluations
from testbed.engine.identity import model_version
from testbed.engine.place import Place
from testbed.engine.plan import Request
from testbed.engine.planned import plan_evaluations
from testbed.errors import DefinitionError
from testbed.perturbations.attacks import Pgd
from testbed.progress import PlanProgress
from testbed.randomness import SampleKeys
from testbed.store.store import Store

__all__ = ["workbench"]  # a fixture

load_definitions()
SUMMER = torch.tensor([[1.0, 0.5, -1.0], [-1.0, 0.25, 0.5], [0.0, 0.0, 0.0]])


def scores(images: Tensor) -> Tensor:
    """Three logits from the means of three channels."""
    return (images - 0.5).mean(dim=(2, 3)) @ SUMMER.T


def model(**fields: Any) -> Model:
    fields = {"transform": None, "classifier_loader": lambda: scores, "eval_batch_size": 64, "version": "4"} | fields
    return Model(name="base", label_space="toy", **fields)


def smoothed(base: Model, name: str = "base-smoothed-0.25") -> Model:
    variants = next(v for v in registry._model_variants if v.base_name(name))
    return variants.build(base, name)


def keys(*indices: int) -> SampleKeys:
    return SampleKeys(seed=0, purpose="eval", dataset="toy", sample_indices=np.array(indices, np.int64), draw=0)


def votes(
    base: Model, images: Tensor, network: Any = scores, *, name: str = "base-smoothed-0.25", **extras: Any
) -> Tensor:
    classify = smoothed(base, name).classify
    assert classify is not None
    given = {"class_sublist": None, "keys": keys(*range(len(images)))} | extras
    counts: Tensor = classify(images=images, model=network, **given)
    return counts


def test_votes_are_how_often_a_class_wins_under_noise() -> None:
    def sign(images: Tensor) -> Tensor:
        values = images.flatten(1)[:, 0]
        return torch.stack([values, -values], dim=1)

    images = torch.tensor([0.0, 0.25, -0.5]).view(3, 1, 1, 1)
    counts = votes(model(), images, sign, name="base-smoothed-0.25-n500")
    assert counts.dtype == torch.float32
    assert counts.sum(dim=1).tolist() == [500] * 3
    expected = [NormalDist().cdf(value / 0.25) for value in (0, 0.25, -0.5)]
    for share, probability in zip((counts[:, 0] / 500).tolist(), expected, strict=True):
        assert abs(share - probability) < 4 * (probability * (1 - probability) / 500) ** 0.5


@pytest.mark.parametrize("space", ["RGB", "BGR"])
def test_the_noise_is_in_pixels_whatever_the_normalization(space: Any) -> None:
    images = torch.rand(6, 3, 2, 2, generator=torch.Generator().manual_seed(1))
    mean, std = torch.tensor([0.1, 0.2, 0.3]).view(3, 1, 1), torch.tensor([0.2, 0.5, 2.0]).view(3, 1, 1)
    inputs = images.flip(1) if space == "BGR" else images
    base = model(normalization=StandardNormalization(mean.flatten().tolist(), std.flatten().tolist(), space))
    found = votes(base, (inputs - mean) / std, lambda normalized: scores(normalized * std + mean))
    assert torch.equal(found, votes(model(), inputs))


def test_votes_are_between_the_classes_of_a_setting() -> None:
    images = torch.rand(5, 3, 2, 2, generator=torch.Generator().manual_seed(2))
    expected = votes(model(), images, lambda x: scores(x)[:, [2, 0]])
    assert torch.equal(votes(model(), images, class_sublist=[2, 0]), expected)
    grouped = votes(model(), images, lambda x: torch.stack([scores(x)[:, 1], scores(x)[:, [0, 2]].amax(1)], dim=1))
    assert torch.equal(votes(model(), images, class_sublist=[1, (0, 2)]), grouped)

    def cut(images: Tensor, model: Any, class_sublist: Sequence[int] | None) -> Tensor:
        return scores(images) if class_sublist is None else scores(images)[:, list(class_sublist)]

    assert torch.equal(votes(model(classify=cut), images, class_sublist=[2, 0]), expected)
    assert torch.equal(votes(model(classify=cut), images), votes(model(), images))


def test_a_logit_that_is_not_finite_spoils_the_votes_of_its_image_alone() -> None:
    images = torch.full((2, 3, 2, 2), 0.5)
    counts = votes(model(), images, lambda x: scores(x) / torch.tensor([[0.0], [1.0]]).repeat(len(x) // 2, 1))
    assert not torch.isfinite(counts[0]).any()
    assert counts[1].sum() == 100


def test_images_that_fill_a_batch_have_no_noise_and_change_no_votes() -> None:
    images = torch.rand(4, 3, 2, 2, generator=torch.Generator().manual_seed(3))
    padded = votes(model(), torch.cat([images, images[:1]]), keys=keys(0, 1, 2, 3))
    assert torch.equal(padded[:4], votes(model(), images))


def test_votes_do_not_depend_on_the_batch_and_do_on_the_seed(workbench: Workbench) -> None:
    base = workbench.model("voting")
    name = f"{base}-smoothed-5"
    task = workbench.task()
    worker = workbench.worker()
    whole, parts, other = (
        logits(worker.run(unit(task, name, batch_size=size, noise_seed=seed)), name)
        for size, seed in ((20, 0), (3, 0), (20, 1))
    )
    np.testing.assert_array_equal(whole, parts)
    assert not np.array_equal(whole, other)
    assert (whole.sum(axis=1) == 100).all()


def test_an_attack_follows_the_mean_probability_under_noise_that_does_not_vote() -> None:
    images = torch.rand(3, 3, 2, 2, generator=torch.Generator().manual_seed(4)).requires_grad_()
    expected = votes(model(), images).softmax(dim=1)  # a constant does not matter
    noise = [keys(0, 1, 2).normal(f"smoothing/attack/{number}", (3, 2, 2)) for number in range(8)]
    torch.testing.assert_close(expected, torch.stack([scores(images + 0.25 * one).softmax(1) for one in noise]).mean(0))
    (gradient,) = torch.autograd.grad(expected[:, 0].sum(), images)
    assert (gradient.abs().amax(dim=(1, 2, 3)) > 0).all()


def test_an_attack_on_a_smoothed_model_costs_votes_and_does_not_depend_on_the_batch(workbench: Workbench) -> None:
    class Far(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return images.flatten(1)[:, [0, 9, 18]] * 4

    name = f"{workbench.model('far', Far)}-smoothed-0.1"
    clean = workbench.task()
    attack = Pgd(norm="linf", epsilon=0.2, step_size=0.05, num_steps=8)
    attacked = workbench.task(perturbation_fn_gpu=attack, adversarial_attack={})
    workbench.tasks[attacked] = replace(workbench.tasks[attacked], bank=workbench.tasks[clean].bank)
    worker = workbench.worker()
    before, after, parts = (
        logits(worker.run(unit(task, name, batch_size=size)), name)
        for task, size in ((clean, 20), (attacked, 20), (attacked, 3))
    )
    targets = workbench.tasks[clean].targets
    own = [counts[np.arange(20), targets].sum() for counts in (before, after)]
    assert own[1] < 0.7 * own[0]
    np.testing.assert_allclose(after, parts, atol=3)  # a sign of the gradient may hang on its last bits


def test_a_smoothed_model_is_one_of_its_own() -> None:
    base = registry.model("digits-resnet", "digits")
    found = registry.model("digits-resnet-smoothed-0.25-n1000", "digits")
    assert (found.answers, found.is_random, found.is_differentiable) == ("votes", True, True)
    assert not registry.model("1-nn-smoothed-0.25", "digits").is_differentiable
    assert (found.baseline, found.weights, found.eval_batch_size) == ("digits-resnet", base.weights, 16)
    assert registry.model_source(found) == registry.model_source(base)
    version = model_version(found)
    assert version.spec["classify"] == {"type": "Votes", "sigma": 0.25, "num_samples": 1000}
    assert version.spec["definition"] == "version 1, smoothed 1"
    assert "classify" not in model_version(base).spec
    assert "classify" not in model_version(registry.model("digits-random-forest", "digits")).spec


def test_a_smoothed_model_takes_as_many_copies_at_once_as_its_base_takes_images() -> None:
    found = smoothed(model(eval_batch_size=64, adversarial_batch_size=16))
    assert (found.eval_batch_size, found.adversarial_batch_size) == (8, 2)
    assert smoothed(model(adversarial_batch_size=4)).adversarial_batch_size == 1
    assert smoothed(model()).adversarial_batch_size is None


def test_classes_that_the_base_model_lacks_are_missing_still() -> None:
    columns = imagenet_columns(11_221)
    assert columns is not None
    found = smoothed(model(classify=columns)).classify
    assert found is not None
    assert found.missing_classes == columns.missing_classes != ()  # type: ignore[attr-defined]
    assert smoothed(model()).classify.missing_classes == ()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("base-smoothed-0.250", "Write it as 0.25"),
        ("base-smoothed-0", "must be a positive number"),
        ("base-smoothed-0.5-n100", "Call it base-smoothed-0.5"),
    ],
)
def test_a_smoothed_model_has_one_name(name: str, words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        smoothed(model(), name)


def test_votes_are_not_smoothed_again() -> None:
    with pytest.raises(DefinitionError, match="votes already"):
        smoothed(smoothed(model()), "base-smoothed-0.25-smoothed-0.5")


def test_models_of_families_are_smoothed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Family:
        def names(self) -> list[str]:
            return ["one"]

        def build(self, rest: str) -> Model:
            return replace(model(), name=f"toy:{rest}")

    monkeypatch.setattr(registry, "_model_families", {"toy": Family()})
    monkeypatch.setattr(registry, "_family_models", {})
    assert registry.model("toy:one-smoothed-0.5").baseline == "toy:one"
    assert registry.model("toy:one-noise-linf-0.5").name == "toy:one-noise-linf-0.5"  # the family's own


def test_what_votes_tell_is_stored_with_an_evaluation_and_recomputed_from_it(tmp_path: Path, cache_home: Path) -> None:
    devices = choose_devices(gpus=None, workers=0)
    place = Place(devices=devices, threads=1, sources=Sources(), data_root=None, cache_root=cache_home)
    with Store.open(tmp_path / "s.sqlite") as store:
        store.lock("a test")
        for kept in ("full", "predictions"):
            request = Request(models=("digits-linear-smoothed-0.1-n20",), eval_settings=("digits",), limit=30,
                              seeds=(len(kept),), store_logits=kept)  # fmt: skip
            planned = plan_evaluations(request, store, place, is_quiet=True)
            with PlanProgress(total=planned.num_samples, is_quiet=True) as progress:
                run_evaluations(planned, store, place, progress=progress)
        full, predictions = (
            {metric.name: metric for metric in found.metrics()}
            for found in sorted(store.list_evaluations(status="complete"), key=lambda found: found.noise_seed)
        )
    assert full["smoothed_accuracy"].detail["num_samples"] == 20
    assert full["abstention"].value is not None
    top1, told, abstained = (full[name].value for name in ("top1", "smoothed_accuracy", "abstention"))
    assert top1 is not None
    assert told is not None
    assert 100 - abstained - (100 - top1) <= told + 1e-9 <= top1 + 2e-9
    assert full["certified_accuracy_at_0"].value == pytest.approx(told, abs=20)
    assert predictions["top1"].value is not None
    assert predictions["smoothed_accuracy"].value is None
    assert "predictions" in predictions["smoothed_accuracy"].reason
