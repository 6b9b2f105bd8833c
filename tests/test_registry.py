"""The registry: names, duplicates, families, and what a user is told about a wrong name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import registry_base
from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model
from registry import Registry
from testbed.errors import DefinitionError, UnknownNameError
from testbed.perturbations.corruptions.corruption import Corruption


def a_model(name: str = "net", **changes: Any) -> Model:
    fields: dict[str, Any] = {"transform": None, "classifier_loader": lambda: None, "eval_batch_size": 4}
    return Model(name=name, **fields | changes)


def a_setting(name: str = "shifted", **changes: Any) -> EvalSetting:
    return EvalSetting(name=name, **{"dataset": StandardDataset(name="toy"), **changes})


class Made:
    """A family of models that lists two and answers to any."""

    def names(self) -> tuple[str, ...]:
        return ("x", "y")

    def build(self, rest: str) -> Model:
        return a_model(f"made:{rest}")


class Doubled:
    """A family with one derived setting per data set."""

    def names(self, dataset: Dataset) -> tuple[str, ...]:
        return (f"{dataset.name}-doubled",)

    def build(self, dataset: Dataset, name: str) -> EvalSetting | None:
        return a_setting(name) if name == f"{dataset.name}-doubled" else None


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    registry.add_dataset(Dataset(name="toy", path=Path("toy")))
    registry.add_eval_setting_family(Doubled())
    return registry


def test_a_name_may_exist_once_per_label_space(registry: Registry) -> None:
    for space in ("cifar10", "imagenet-1k"):
        registry.add_model(a_model(label_space=space))
    assert registry.model("net", "cifar10").label_space == "cifar10"
    assert registry.model_names() == ["net"]


def test_a_duplicate_names_both_files_and_cannot_be_used(registry: Registry) -> None:
    with registry.importing(Path("first.py")):
        registry.add_model(a_model())
    with pytest.raises(DefinitionError, match=r"first\.py.*second\.py"), registry.importing(Path("second.py")):
        registry.add_model(a_model())
    with pytest.raises(DefinitionError, match=r"first\.py.*second\.py"):
        registry.model("net")


def test_the_same_object_twice_is_fine(registry: Registry) -> None:
    model = a_model()
    registry.add_model(model)
    registry.add_model(model)
    assert registry.model("net") is model


def test_a_file_that_fails_half_way_leaves_nothing_behind(registry: Registry) -> None:
    def fail_half_way() -> None:
        with registry.importing(Path("broken.py")):
            registry.add_model(a_model())
            registry.add_corruption(Corruption(name="dark", group="digital", function=lambda images: images / 2))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert registry.model_names() == []
    assert registry.corruptions == {}


def test_an_unknown_name_is_answered_with_near_ones_and_files_that_failed(registry: Registry) -> None:
    from registry_base import Failure

    registry.add_model(a_model("resnet50"))
    registry.failures.append(Failure(Path("clip.py"), "No module named 'clip'"))
    with pytest.raises(UnknownNameError) as error:
        registry.model("resnet5O")
    message = str(error.value)
    assert "Did you mean resnet50?" in message
    assert "clip.py (No module named 'clip')" in message
    assert "--list-models-registry. Those of libraries have a prefix, as in timm:NAME" in message


def test_a_model_of_another_label_space_is_found_only_if_it_is_the_only_one(registry: Registry) -> None:
    registry.add_model(a_model(label_space="imagenet-1k"))
    assert registry.model("net", "toy").label_space == "imagenet-1k"
    registry.add_model(a_model(label_space="cifar10"))
    with pytest.raises(UnknownNameError, match="label spaces imagenet-1k, cifar10"):
        registry.model("net", "toy")


def test_a_dataset_has_its_derived_settings(registry: Registry) -> None:
    assert registry.eval_setting_names() == ["toy-doubled"]
    assert registry.eval_setting("toy-doubled").name == "toy-doubled"


def test_the_longest_dataset_name_owns_a_derived_setting(registry: Registry) -> None:
    registry.add_dataset(Dataset(name="toy-doubled", path=Path("other")))
    assert registry.eval_setting("toy-doubled-doubled").name == "toy-doubled-doubled"


def test_a_registered_setting_goes_before_a_derived_one_with_a_notice(registry: Registry) -> None:
    assert registry.notices() == []
    own = a_setting("toy-doubled", description="mine")
    with registry.importing(Path("mine.py")):
        registry.add_eval_setting(own)
    assert registry.eval_setting("toy-doubled") is own
    assert registry.notices() == ["EvalSetting 'toy-doubled' of mine.py overrides the generated one."]


def test_globs_expand_in_the_order_asked_and_once(registry: Registry) -> None:
    for name in ("a-1", "a-2", "b-1"):
        registry.add_model(a_model(name))
    assert registry.expand("model", ["b-1", "a-*", "*-1"]) == ["b-1", "a-1", "a-2"]
    with pytest.raises(UnknownNameError, match=r"No model matches 'c\*'"):
        registry.expand("model", ["c*"])


def test_a_model_family_builds_each_name_once(registry: Registry) -> None:
    registry.add_model_family("made", Made())
    assert registry.model("made:x").name == "made:x"
    assert registry.model("made:x") is registry.model("made:x")


def test_another_family_of_a_prefix_makes_its_models_anew(registry: Registry) -> None:
    registry.add_model_family("made", Made())
    before = registry.model("made:x")
    registry.add_model_family("made", Made())
    assert registry.model("made:x") is not before


def test_a_glob_matches_a_family_only_by_its_prefix() -> None:
    registry = Registry()
    registry.add_model_family("made", Made())
    registry.add_model(a_model("x"))
    assert registry.expand("model", ["*"]) == ["x"]
    assert registry.expand("model", ["made:*"]) == ["made:x", "made:y"]
    assert registry.family_model_names() == ["made:x", "made:y"]
    with pytest.raises(UnknownNameError, match="made:z"):
        registry.expand("model", ["made:z*"])


def test_a_data_set_that_derives_nothing_has_no_derived_settings() -> None:
    registry = Registry()
    registry.add_eval_setting_family(Doubled())
    registry.add_dataset(Dataset(name="toy", path=Path("toy"), derives=False))
    assert registry.eval_setting_names() == []
    with pytest.raises(UnknownNameError, match="toy-doubled"):
        registry.eval_setting("toy-doubled")


def test_a_metric_with_unknown_arguments_is_refused(registry: Registry) -> None:
    registry.add_metric("mean", lambda logits, targets: 0.0)
    with pytest.raises(DefinitionError, match="unknown pixels"):
        registry.add_metric("bad", lambda logits, pixels: 0.0)


@pytest.mark.parametrize("name", ["", "../x", "a/../b", "; drop table", "a b", "é", "x" * 201, "-x"])
def test_names_that_cannot_be_file_names_are_refused(name: str) -> None:
    with pytest.raises(DefinitionError, match="not allowed"):
        a_model(name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"eval_batch_size": 0}, "eval_batch_size is 0"),
        ({"classify": lambda images: 0}, "lacks model"),
        ({"classify": lambda images, model, device: 0}, "unknown device"),
        ({"classifier_loader": lambda path: 0}, "unknown path"),
        ({"transform": 3}, "transform must take a PIL image"),
    ],
)
def test_a_wrong_model_is_refused_when_it_is_defined(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        a_model(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 0}, "size is 0"),
        ({"dataset": "toy"}, "must be a StandardDataset"),
        ({"perturbation_fn_cpu": lambda img: img}, "lacks image"),
        ({"perturbation_fn_gpu": lambda images, net: images}, "unknown net"),
        ({"metrics_fn": lambda logits, rows: {}}, "unknown rows. Its arguments may be logits, targets"),
        ({"class_sublist": []}, "class_sublist is empty"),
        ({"class_sublist": [0, (1, 1)]}, r"class_sublist has the entry \(1, 1\)"),
        ({"class_sublist": [0, -1]}, "class_sublist has the entry -1"),
        ({"class_sublist": [0, ()]}, r"class_sublist has the entry \(\)"),
        ({"num_draws": 0}, "num_draws is 0"),
    ],
)
def test_a_wrong_setting_is_refused_when_it_is_defined(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        a_setting(**changes)


def test_arguments_with_defaults_are_allowed_in_users_functions() -> None:
    assert a_model(classify=lambda images, model, scale=2: images).classify is not None


def test_a_data_set_is_registered_by_its_name_its_data_and_what_is_said_of_it(registry: Registry) -> None:
    registry.add_dataset("birds", "photos/birds", label_space="imagenet-1k", canonical_size=64)
    registry.add_dataset("made", lambda split: None, splits=("train", "test"), fit_split="train")
    birds = Dataset(name="birds", path=Path("photos/birds"), label_space="imagenet-1k", canonical_size=64)
    assert registry.dataset("birds") == birds
    assert registry.dataset("made").fit_split == "train"
    assert {"birds-doubled", "made-doubled"} < set(registry.eval_setting_names())


@pytest.mark.parametrize(
    ("arguments", "facts", "message"),
    [
        (("birds", "photos"), {"canonical_sise": 64}, "no canonical_sise. Did you mean canonical_size"),
        (("birds",), {}, "either loader=... or path=..."),
        (("birds", lambda images: 0), {}, "lacks split"),
        ((Dataset(name="birds", path=Path("b")), "photos"), {}, "a Dataset alone"),
    ],
)
def test_a_wrong_data_set_is_refused(arguments: Any, facts: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        Registry().add_dataset(*arguments, **facts)


BUILT_IN = Path(registry_base.__file__).parent / "models" / "built_in.py"


def test_a_plugin_goes_before_a_built_in_definition_with_a_notice_and_not_before_another_plugin() -> None:
    registry, built_in, own = Registry(), a_model(), a_model(eval_batch_size=2)
    with registry.importing(BUILT_IN):
        registry.add_model(built_in)
    with registry.importing(Path("/plugins/mine.py")):
        registry.add_model(own)
    assert registry.model("net") is own
    assert registry.notices() == ["Model 'net' of /plugins/mine.py overrides the built-in one."]
    assert registry.model_source(own) == Path("/plugins/mine.py")
    with pytest.raises(DefinitionError, match=r"mine\.py.*other\.py"), registry.importing(Path("/plugins/other.py")):
        registry.add_model(a_model())


def test_a_plugin_that_fails_leaves_the_built_in_definition_where_it_was() -> None:
    registry, built_in = Registry(), a_model()
    with registry.importing(BUILT_IN):
        registry.add_model(built_in)

    def fail_half_way() -> None:
        with registry.importing(Path("/plugins/mine.py")):
            registry.add_model(a_model())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert registry.model("net") is built_in
    assert registry.model_source(built_in) == BUILT_IN
    assert registry.notices() == []


def test_data_may_be_named_as_the_setting_that_has_them(registry: Registry) -> None:
    """As in the ImageNet Testbed, where data sets are called as the settings are: `StandardDataset(name='val')`."""
    registry.add_eval_setting(a_setting("val"))
    registry.add_eval_setting(a_setting("on-val", dataset=StandardDataset(name="val")))
    registry.add_eval_setting(a_setting("toy-doubled", dataset=StandardDataset(name="toy-doubled")))
    registry.add_eval_setting(a_setting("a-folder", dataset=StandardDataset(name="photos", split="train")))
    assert registry.eval_setting("on-val").dataset == StandardDataset(name="toy")
    assert registry.eval_setting("toy-doubled").dataset == StandardDataset(name="toy")
    assert registry.eval_setting("a-folder").dataset == StandardDataset(name="photos", split="train")
