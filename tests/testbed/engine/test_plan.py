"""Plans: clean parents are added, seeds mean what they say, batches are whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eval_settings.dataset_base import Dataset
from eval_settings.derived import Clean, CleanCanonical, UniformNoiseFamily
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model, StandardTransform
from registry import Registry
from testbed.engine import plan
from testbed.engine.plan import Pairing, Request, left_out, make_plan, run_split
from testbed.engine.preflight import shard_size
from testbed.errors import DefinitionError
from testbed.perturbations.corruptions.corrupt import Corrupt
from testbed.perturbations.corruptions.corruption import Corruption, severities


def model(name: str, **changes: Any) -> Model:
    fields: dict[str, Any] = {"transform": None, "classifier_loader": lambda: None, "eval_batch_size": 40}
    return Model(name=name, **fields | changes)


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    registry = Registry()
    registry.add_dataset(Dataset(name="toy", path=Path("toy"), canonical_size=32, label_space="toy"))
    for family in (Clean(), CleanCanonical(), UniformNoiseFamily("linf", "truncate")):
        registry.add_eval_setting_family(family)
    registry.add_model(model("as-it-is"))
    registry.add_model(model("resizing", transform=StandardTransform(256, 224)))
    registry.add_model(model("fitted", classifier_loader=lambda seed, dataset: None))
    monkeypatch.setattr(plan, "registry", registry)
    return registry


def planned(*models: str, settings: tuple[str, ...] = ("toy-mscr-linf",), **changes: Any) -> list[Pairing]:
    return make_plan(Request(models=models, eval_settings=settings, **changes))


def pairs(pairings: list[Pairing]) -> list[tuple[str, str]]:
    return [(pairing.model.name, pairing.setting.name) for pairing in pairings]


def test_a_clean_parent_is_added_once_and_before_what_it_is_compared_with() -> None:
    found = planned("as-it-is", settings=("toy-mscr-linf", "toy-noise-linf-0.1"))
    assert pairs(found) == [("as-it-is", "toy"), ("as-it-is", "toy-mscr-linf"), ("as-it-is", "toy-noise-linf-0.1")]
    assert [pairing.clean for pairing in found] == [None, "toy", "toy"]


def test_the_parent_of_a_model_that_resizes_is_in_the_canonical_space() -> None:
    assert pairs(planned("resizing")) == [("resizing", "toy@32px"), ("resizing", "toy-mscr-linf")]


def test_a_glob_leaves_out_a_child_beside_its_parent_and_a_name_does_not(registry: Registry) -> None:
    for name, parent in (("whole", None), ("whole_10percent", "whole"), ("other_10percent", "other")):
        child = EvalSetting(name=name, dataset=StandardDataset(name="toy"), parent_eval_setting=parent)
        registry.add_eval_setting(child)

    def settings(*names: str) -> list[str]:
        return [setting for _, setting in pairs(planned("as-it-is", settings=names))]

    assert settings("whole*", "other*") == ["whole", "other_10percent"]
    assert left_out(("whole*", "other*")) == {"whole_10percent": "whole"}
    assert settings("whole*", "whole_10percent") == ["whole", "whole_10percent"]
    assert settings("*_10percent") == ["other_10percent", "whole_10percent"]


def test_a_limit_is_on_a_setting_and_on_its_parent() -> None:
    found = planned("as-it-is", "resizing", limit=5)
    assert pairs(found) == [
        ("as-it-is", "toy@limit5"),
        ("as-it-is", "toy-mscr-linf@limit5"),
        ("resizing", "toy@32px@limit5"),
        ("resizing", "toy-mscr-linf@limit5"),
    ]
    assert all(pairing.setting.limit == 5 for pairing in found)
    assert found[1].setting.shift.clean_eval_setting == "toy@limit5"  # type: ignore[union-attr]


def test_a_model_that_draws_has_a_run_per_seed_on_clean_images_too(registry: Registry) -> None:
    registry.add_model(model("drawing", classify=lambda images, model: images, is_random=True))
    registry.add_model(model("deciding", classify=lambda images, model: images))
    seeds = {p.model.name: p.noise_seed for p in planned("drawing", "deciding", settings=("toy",), seeds=(4,))}
    assert seeds == {"drawing": 4, "deciding": 0}


def test_seeds_set_the_noise_and_the_fit_and_nothing_else() -> None:
    found = planned("as-it-is", "fitted", seeds=(0, 5))
    seeds = {(p.model.name, p.setting.name, p.seed): (p.fit_seed, p.noise_seed) for p in found}
    assert seeds["as-it-is", "toy", 5] == (0, 0)
    assert seeds["as-it-is", "toy-mscr-linf", 5] == (0, 5)
    assert seeds["fitted", "toy", 5] == (5, 0)
    assert seeds["fitted", "toy-mscr-linf", 5] == (5, 5)


def test_draws_are_for_settings_that_draw() -> None:
    found = planned("as-it-is", draws=3)
    assert [pairing.num_draws for pairing in found] == [1, 3]
    assert [pairing.num_draws for pairing in planned("as-it-is")] == [1, 10]


def test_a_corruption_without_random_numbers_has_one_draw_and_no_seed(registry: Registry) -> None:
    rows = {"cifar32": severities("factor", 0.9, 0.8, 0.7, 0.6, 0.5)}
    functions = {"darken": lambda images, factor: images * factor, "flicker": lambda images, factor, keys: images}
    for name, function in functions.items():
        corrupt = Corrupt(
            corruption=Corruption(name=name, group="digital", function=function, parameters=rows), severity=1
        )
        registry.add_eval_setting(
            EvalSetting(name=name, dataset=StandardDataset(name="toy"), perturbation_fn_gpu=corrupt, num_draws=2)
        )
    found = {p.setting.name: (p.num_draws, p.noise_seed)
             for p in planned("as-it-is", settings=tuple(functions), draws=3, seeds=(5,))}  # fmt: skip
    assert found == {"darken": (1, 0), "flicker": (3, 5)}


def test_an_attack_has_an_eighth_of_the_batch(registry: Registry) -> None:
    registry.add_eval_setting(
        EvalSetting(name="attacked", dataset=StandardDataset(name="toy"), adversarial_attack={"eps": 1},
                    perturbation_fn_gpu=lambda images, model: images)
    )  # fmt: skip
    registry.add_model(model("small-batch", adversarial_batch_size=2))
    sizes = {p.model.name: p.batch_size for p in planned("as-it-is", "small-batch", settings=("attacked",))}
    assert sizes == {"as-it-is": 5, "small-batch": 2}


@pytest.mark.parametrize(
    ("num_samples", "batch_size", "size"),
    [(597, 128, 128), (597, 50, 150), (597, 200, 200), (597, 1, 128), (10_000, 64, 1024), (50_000, 100, 1100)],
)
def test_units_are_whole_batches(num_samples: int, batch_size: int, size: int) -> None:
    assert shard_size(model("usual"), num_samples, batch_size) == size
    assert shard_size(model("adapting", adapts="per-evaluation"), num_samples, batch_size) == num_samples
    assert size % batch_size == 0


def test_a_split_that_runs_do_not_split_is_refused(registry: Registry) -> None:
    registry.add_dataset(Dataset(name="points", path=Path("points"), splits=("all", "rest"), eval_split="all",
                                 test_fraction=0.2))  # fmt: skip
    assert run_split(EvalSetting(name="a", dataset=StandardDataset(name="points"))) is not None
    with pytest.raises(DefinitionError, match="every run splits 'all' anew"):
        run_split(EvalSetting(name="b", dataset=StandardDataset(name="points", split="rest")))


def test_a_trained_model_has_a_run_per_seed_where_runs_split_the_data_anew(registry: Registry) -> None:
    registry.add_dataset(Dataset(name="points", path=Path("points"), test_fraction=0.2))
    found = planned("as-it-is", settings=("points", "toy"), seeds=(0, 7))
    assert [(p.setting.name, p.fit_seed) for p in found] == [("points", 0), ("points", 7), ("toy", 0), ("toy", 0)]
