"""Settings under attack: by name, with the parameters of the ImageNet Testbed, and what a plan makes of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from eval_settings.attacks import NUM_STEPS
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from registry import registry
from testbed.definitions import load_definitions
from testbed.engine.identity import setting_version
from testbed.engine.plan import Pairing, Request, make_plan
from testbed.errors import DefinitionError, UnknownNameError
from testbed.perturbations.attacks import Fgsm, Pgd
from testbed.randomness import SampleKeys
from testbed.records import Shift
from testbed.store.columns import jsonable

load_definitions()

# Taori et al. 2020: radius and step in [0, 1] pixel units, as their code has them
TESTBED = {
    "pgd.linf.eps0.5": ("linf", 0.001960784314, 5.88235294117647e-05),
    "pgd.linf.eps2": ("linf", 0.007843137255, 0.0002352941176470588),
    "pgd.l2.eps0.1": ("l2", 0.1, 0.01),
    "pgd.l2.eps0.5": ("l2", 0.5, 0.05),
}


def planned(model: str, *settings: str) -> list[Pairing]:
    return make_plan(Request(models=(model,), eval_settings=settings))


@pytest.mark.parametrize("name", TESTBED)
def test_the_imagenet_testbeds_attacks_are_its_own(name: str) -> None:
    norm, epsilon, step_size = TESTBED[name]
    setting = registry.eval_setting(name)
    attack = setting.perturbation_fn_gpu
    assert isinstance(attack, Pgd)
    assert (attack.norm, attack.num_steps, attack.labels, attack.clips) == (norm, 100, "predicted", False)
    assert attack.random_start
    assert attack.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert attack.step_size == pytest.approx(step_size, rel=1e-9)
    assert attack.reference_side == (224 if norm == "l2" else None)
    assert setting.adversarial_attack == {
        "attack_style": "pgd", "norm": math.inf if norm == "linf" else 2, "eps": attack.epsilon,
        "step_size": attack.step_size, "num_steps": 100, "targeted": False,
    }  # fmt: skip
    assert setting.shift == Shift(
        family=f"adversarial-{norm}",
        name="pgd",
        norm=norm,
        epsilon=attack.epsilon,
        clean_eval_setting="val",  # type: ignore[arg-type]
    )
    assert (setting.size, setting.space, setting.dataset.name) == (50_000, "model", "imagenet")


def test_every_data_set_of_images_is_attacked_at_any_radius() -> None:
    setting = registry.eval_setting("cifar10-pgd-linf-8/255")
    epsilon = 8 / 255
    step_size = 2.5 * epsilon / NUM_STEPS
    assert setting.perturbation_fn_gpu == Pgd(norm="linf", epsilon=epsilon, step_size=step_size, num_steps=NUM_STEPS)
    assert registry.eval_setting("digits-fgsm-linf-0.1").perturbation_fn_gpu == Fgsm(epsilon=0.1)
    l2 = registry.eval_setting("digits-pgd-l2-0.5")
    assert l2.shift is not None
    assert (l2.shift.family, l2.shift.name, l2.shift.norm, l2.shift.epsilon) == ("adversarial-l2", "pgd", "l2", 0.5)
    listed = registry.eval_setting_names()
    for name, dataset in registry.datasets.items():
        if dataset.derives:
            assert (f"{name}-pgd-linf-8/255" in listed) == (dataset.domain == "pixels")


def test_every_listed_attack_runs_and_stays_in_its_ball() -> None:
    """One loop over all of them, on a linear model."""
    weights = torch.randn(192, 3, generator=torch.Generator().manual_seed(0))
    images = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    keys = SampleKeys(seed=0, purpose="eval", dataset="toy", sample_indices=np.arange(4), draw=0)
    settings = [setting for setting in map(registry.eval_setting, registry.eval_setting_names())
                if setting.adversarial_attack is not None]  # fmt: skip
    assert len(settings) > 20
    seen: dict[object, Tensor] = {}
    for setting in settings:
        attack, shift = setting.perturbation_fn_gpu, setting.shift
        assert isinstance(attack, Fgsm | Pgd)
        assert shift is not None
        assert shift.epsilon == attack.epsilon
        if attack not in seen:
            seen[attack] = attack(images, lambda x: x.flatten(1) @ weights, targets=torch.arange(4) % 3, keys=keys)
        offsets = (seen[attack] - images).flatten(1)
        lengths = offsets.norm(dim=1) if shift.norm == "l2" else offsets.abs().amax(dim=1)
        radius = shift.epsilon * 8 / (getattr(attack, "reference_side", None) or 8)
        assert (lengths > 0.9 * radius).all()
        assert (lengths <= radius * (1 + 1e-5) + 1e-7).all()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("digits-pgd-linf-0.10", "Write it as 0.1"),
        ("digits-pgd-linf-8.0/255", "Write it as 8"),
        ("digits-pgd-linf-8/256", "no noise level"),
        ("digits-fgsm-linf-0", "must be a positive number"),
        ("digits-pgd-linf-8", "pixels lie in .0, 1.. Grey levels are written as in digits-pgd-linf-8/255"),
        ("digits-fgsm-linf-256/255", "pixels lie in"),
        ("2d-a-pgd-linf-0.1", "attacks images, but data set '2d-a' has numbers without bounds"),
    ],
)
def test_a_radius_has_one_spelling_and_images_bounds(name: str, words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        registry.eval_setting(name)
    with pytest.raises(UnknownNameError):
        registry.eval_setting("digits-fgsm-l2-0.1")
    assert registry.eval_setting("digits-pgd-l2-8").name == "digits-pgd-l2-8"  # 1 is no bound of lengths in L2


def test_an_attack_is_compared_with_clean_images_in_its_own_space() -> None:
    clean, attacked = planned("digits-resnet", "digits-pgd-linf-0.1")
    assert (clean.setting.name, attacked.clean) == ("digits", "digits")
    assert (clean.batch_size, attacked.batch_size) == (128, 16)
    assert (attacked.num_draws, clean.noise_seed) == (1, 0)
    (clean, attacked) = planned("resnet50", "imagenet-pgd-linf-8/255")
    assert (clean.setting.name, attacked.setting.space) == ("val", "model")


def test_only_what_is_drawn_is_another_run_with_another_seed() -> None:
    request = Request(
        models=("digits-resnet",), eval_settings=("digits-pgd-l2-0.5", "digits-fgsm-linf-0.1"), seeds=(7,)
    )
    seeds = {pairing.setting.name: pairing.noise_seed for pairing in make_plan(request)}
    assert seeds == {"digits": 0, "digits-pgd-l2-0.5": 7, "digits-fgsm-linf-0.1": 0}


@pytest.mark.parametrize("model", ["digits-random-forest", "random-forest", "1-nn", "1-nn-smoothed-0.1"])
def test_a_model_without_gradients_is_refused_before_anything_is_loaded(model: str) -> None:
    with pytest.raises(DefinitionError, match=f"attacks a model through its gradients, and '{model}' has none"):
        planned(model, "digits-pgd-linf-0.1")
    assert planned(model, "digits")


def test_a_model_that_attacks_itself_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def classify(images: object, model: object, adversarial_attack: object) -> object:
        return images

    monkeypatch.setattr(registry._models, "values", dict(registry._models.values))
    own = replace(registry.model("digits-random-forest", "digits"), name="own", classify=classify)
    registry.add_model(own)
    assert len(planned("own", "digits-pgd-linf-0.1")) == 2


def test_an_attack_is_part_of_what_a_setting_is_also_where_its_norm_is_infinite() -> None:
    def version(parameters: dict[str, object]) -> tuple[str, object]:
        setting = EvalSetting(name="attacked", dataset=StandardDataset(name="toy"), adversarial_attack=parameters,
                              version="1")  # fmt: skip
        found = setting_version(setting, dataset_fingerprint="d", sample_indices=None, separation=None,
                                canonical_size=None, source=None)  # fmt: skip
        return found.fingerprint, jsonable(found.spec["adversarial_attack"])

    first, spec = version({"norm": math.inf, "eps": 0.1})
    assert spec == {"norm": "inf", "eps": 0.1}
    assert first != version({"norm": 2, "eps": 0.1})[0]
