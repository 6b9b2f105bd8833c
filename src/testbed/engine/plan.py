"""Names to a list of evaluations: which model, which setting, which seed. Nothing is opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from eval_settings.eval_setting_base import EvalSetting
from models.model_base import Model
from registry import registry
from testbed.errors import DefinitionError
from testbed.run_split import RunSplit
from testbed.signatures import argument_names


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asks for.

    Args:
        models, eval_settings: names and globs.
        seeds: of runs; each sets the seed of the noise and of models that are fitted in the run.
        draws: independent draws of the noise per sample; None takes each setting's own.
        batch_size: images per forward pass; 'auto' finds the largest that is safe, None takes each model's own.
        limit: evaluate only the first samples of a seeded order.
        store_logits: how much of the logits is stored; None takes each setting's own policy.
    """

    models: Sequence[str]
    eval_settings: Sequence[str]
    seeds: Sequence[int] = (0,)
    draws: int | None = None
    batch_size: int | Literal["auto"] | None = None
    limit: int | None = None
    store_logits: str | None = None


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """One evaluation of the plan, before its data are looked at.

    Args:
        model, setting: the definitions.
        seed: as asked for.
        fit_seed: of a model that is fitted in the run, and of the split of data that every run splits anew; else 0.
        noise_seed: of whatever is drawn at random in the evaluation; 0 where nothing is.
        num_draws: draws of the noise.
        batch_size: images per forward pass.
        clean: name of the clean setting that the result is compared with.
        store_logits: how much of the logits is stored; no part of the evaluation's identity.
    """

    model: Model
    setting: EvalSetting
    seed: int
    fit_seed: int
    noise_seed: int
    num_draws: int
    batch_size: int
    clean: str | None
    store_logits: str = "full"


def make_plan(request: Request) -> list[Pairing]:
    """All evaluations of a request, clean parents before what is compared with them, each once.

    Raises: UnknownNameError: a name that is not registered.
    """
    suffix = "" if request.limit is None else f"@limit{request.limit}"
    children = left_out(request.eval_settings)
    found = registry.expand("eval-setting", request.eval_settings)
    names = [f"{name}{suffix}" for name in found if name not in children]
    models = registry.expand("model", request.models)
    pairings: dict[tuple[str, str, int], Pairing] = {}
    for name in names:
        for model_name in models:
            for seed in request.seeds:
                for pairing in _with_parent(registry.eval_setting(name), model_name, seed, request):
                    pairings.setdefault((pairing.setting.name, model_name, seed), pairing)
    return list(pairings.values())


def left_out(patterns: Sequence[str]) -> dict[str, str]:
    """The settings that a glob finds beside their `parent_eval_setting`, which stands for them, and that parent."""
    names = registry.expand("eval-setting", patterns)
    parents = {name: registry.eval_setting(name).parent_eval_setting for name in names if name not in patterns}
    return {name: parent for name, parent in parents.items() if parent is not None and parent in names}


def _with_parent(setting: EvalSetting, model_name: str, seed: int, request: Request) -> Iterator[Pairing]:
    model = registry.model(model_name, label_space(setting))
    _check_gradients(setting, model)
    clean = clean_parent(setting, model)
    if clean is not None:
        yield _pairing(registry.eval_setting(clean), model, seed, request, clean=None)
    yield _pairing(setting, model, seed, request, clean=clean)


def _check_gradients(setting: EvalSetting, model: Model) -> None:
    """Raises: DefinitionError: the setting attacks the model, which has no gradients to follow."""
    attacks_itself = model.classify is not None and "adversarial_attack" in argument_names(model.classify)
    if setting.adversarial_attack is not None and not (model.is_differentiable or attacks_itself):
        raise DefinitionError(
            f"EvalSetting '{setting.name}' attacks a model through its gradients, and '{model.name}' has none. Leave "
            "one of the two out."
        )


def _pairing(setting: EvalSetting, model: Model, seed: int, request: Request, *, clean: str | None) -> Pairing:
    perturb = setting.perturbation_fn_gpu
    may_draw = perturb is not None and getattr(perturb, "is_random", True)  # a perturbation may know that it does not
    draws_noise = perturb is not None and may_draw and "keys" in argument_names(perturb)
    is_random = bool(setting.perturbation_fn_cpu or may_draw or model.draws)
    wanted = request.draws if request.draws and (draws_noise or setting.num_draws > 1) else setting.num_draws
    is_another_fit = model.depends_on_seed or run_split(setting) is not None
    return Pairing(
        model=model,
        setting=setting,
        seed=seed,
        fit_seed=seed if is_another_fit else 0,
        noise_seed=seed if is_random else 0,
        num_draws=wanted if is_random or perturb is None else 1,
        batch_size=batch_size_of(setting, model, request.batch_size),
        clean=clean,
        store_logits=request.store_logits or setting.store_logits,
    )


def batch_size_of(setting: EvalSetting, model: Model, asked: int | Literal["auto"] | None) -> int:
    """Images per forward pass; fewer for attacks, which need more memory. 'auto' is the model's own to begin with."""
    asked = None if asked == "auto" else asked
    if setting.adversarial_attack is not None:
        return model.adversarial_batch_size or max(1, (asked or model.eval_batch_size) // 8)
    return asked or model.eval_batch_size


def run_split(setting: EvalSetting) -> RunSplit | None:
    """How every run splits the setting's data set anew; None where all runs evaluate the same samples."""
    dataset = registry.datasets.get(setting.dataset.name or "")
    if dataset is None or dataset.test_fraction is None:
        return None
    if setting.dataset.split not in (None, dataset.eval_split):
        raise DefinitionError(
            f"EvalSetting '{setting.name}' takes the split '{setting.dataset.split}' of '{dataset.name}', of which "
            f"every run splits '{dataset.eval_split}' anew. Leave the split out, or use a data set without that."
        )
    return RunSplit(test_fraction=dataset.test_fraction, limit=setting.limit)


def label_space(setting: EvalSetting) -> str | None:
    """The label space of a setting: its data set's; None where that is not known by name."""
    name = setting.dataset.name
    dataset = registry.datasets.get(name) if name is not None else None
    return dataset.label_space if dataset else None


def clean_parent(setting: EvalSetting, model: Model) -> str | None:
    """The clean setting that a shifted one is compared with, in the same space, so that no resize counts as a loss.

    A model that resizes images itself sees other pixels in the clean setting than in the canonical space, where noise
    is drawn before its resize: its parent is the canonical twin.
    """
    if setting.shift is None:
        return None
    dataset = registry.datasets.get(setting.dataset.name or "")
    if setting.space != "canonical" or model.transform is None or dataset is None:
        return setting.shift.clean_eval_setting
    return dataset.canonical_setting + ("" if setting.limit is None else f"@limit{setting.limit}")
