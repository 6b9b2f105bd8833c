"""What is known of models: types, families and baselines, by lists, definitions and names, in this order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.laboratory import Lab

from models.model_base import Model
from registry import registry
from testbed.model_types import PublishedType
from testbed.records import PublishedResult
from testbed.results import table
from testbed.results.model_facts import ModelFactsOf, ModelInfo, model_facts
from testbed.results.model_families import family_of
from testbed.store.published_models import put_types
from testbed.store.table import COLUMNS

FACTS = ModelFactsOf(types={("paper", "net"): "LP_ADV", ("own", "timm:resnet50.a1_in1k"): "ROBUST_INTV"})


def own(name: str, label_space: str = "imagenet-1k") -> ModelInfo:
    return FACTS.of(name, label_space=label_space, source=None)


def defined(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> ModelInfo:
    """Of a model of the user's that is defined so."""
    content = {"transform": None, "classifier_loader": lambda: None, "eval_batch_size": 1, "label_space": "cifar10"}
    model = Model(name="mine", **{**content, **changes})
    monkeypatch.setattr(registry, "model", lambda name, space: model)
    return ModelFactsOf(types={}).of("mine", label_space="cifar10", source=None)


def test_a_published_model_has_the_type_that_its_source_lists_or_its_name_tells() -> None:
    assert FACTS.of("net", label_space=None, source="paper").model_type == "LP_ADV"
    assert FACTS.of("net", label_space=None, source="other") == ModelInfo(model_type=None, family="net")
    assert FACTS.of("resnet50.a1_in1k", label_space=None, source="other").model_type == "STANDARD"


def test_a_model_of_a_library_has_the_type_of_its_weights_unless_a_list_tells_another() -> None:
    assert own("timm:resnet50.a1_in1k").model_type == "ROBUST_INTV"
    assert own("timm:resnet50.a2_in1k") == ModelInfo(model_type="STANDARD", family="resnet")
    assert own("hf-hub:timm/vit_base_patch16_224.augreg_in21k@main").model_type == "MORE_DATA"
    assert own("torchvision:vit_h_14.IMAGENET1K_SWAG_E2E_V1").model_type == "MORE_DATA"
    assert own("torchvision:resnet50.IMAGENET1K_V2").model_type == "STANDARD"


def test_built_in_models_tell_their_type_and_baseline() -> None:
    assert own("resnet50") == ModelInfo(model_type="STANDARD", family="resnet")
    assert own("resnet50-smoothed-0.25") == ModelInfo(model_type="LP_ADV", family="resnet", baseline="resnet50")
    noisy = own("random-forest-noise-linf-0.1", "any")
    assert noisy == ModelInfo(model_type="ROBUST_INTV", family="random forest", baseline="random-forest")
    assert own("fashion-mnist-cnn-mscr-linf", "fashion-mnist").baseline == "fashion-mnist-cnn"
    assert own("digits-linear", "digits") == ModelInfo(model_type="STANDARD", family="linear")


def test_a_definition_tells_the_type(monkeypatch: pytest.MonkeyPatch) -> None:
    assert defined(monkeypatch).model_type is None
    assert defined(monkeypatch, training_data=("cifar10",)).model_type == "STANDARD"
    assert defined(monkeypatch, training_data=("tiny-images", "cifar10")).model_type == "MORE_DATA"
    told = defined(monkeypatch, training_data=("cifar10",), baseline="plain")
    assert (told.model_type, told.baseline) == ("ROBUST_INTV", "plain")
    assert defined(monkeypatch, answers="votes").model_type == "LP_ADV"


def test_of_a_model_that_nobody_defines_nothing_is_known_but_its_family() -> None:
    assert own("densenet-of-mine", "two") == ModelInfo(model_type=None, family="densenet")
    assert own("local:here/model.pt") == ModelInfo(model_type=None, family="model")


def test_the_table_of_results_has_type_and_baseline_at_its_end(lab: Lab) -> None:
    lab.put("random-forest-noise-linf-0.1", "toy", [1] * 8)
    result = PublishedResult(source="paper", source_sha256="0" * 64, model="net", eval_setting="val", metric="top1",
                             protocol="theirs", value=50.0)  # fmt: skip
    lab.store.put_published([result, replace(result, model="unknown")])
    with lab.store.writing() as connection:
        told = PublishedType(source="paper", source_sha256="0" * 64, model="net", model_type="LP_ADV")
        put_types(connection, [told])
    found = table(lab.store, published=["paper"])
    assert list(found.columns) == [*COLUMNS, "model_type", "baseline"]
    assert found["model_type"].fillna("").tolist()[-3:] == ["ROBUST_INTV", "LP_ADV", ""]
    assert found["baseline"].fillna("").tolist()[-3:] == ["random-forest", "", ""]
    assert model_facts(lab.store).of("net", label_space=None, source="paper").model_type == "LP_ADV"


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("FixResNeXt101_32x48d_v2", "resnext"),
        ("BiT-M-R50x1-ILSVRC2012", "resnet"),
        ("facebook_adv_trained_resnet152_denoise", "resnet"),
        ("se_resnext50_32x4d", "senet"),
        ("inceptionresnetv2", "inception"),
        ("efficientnet-b3-advprop-autoaug", "efficientnet"),
        ("timm:tf_efficientnetv2_s.in21k_ft_in1k", "efficientnet"),
        ("densenet121_lpf3", "densenet"),
        ("vit_base_patch16_clip_224.openai_ft_in1k", "vit"),
        ("swin_base_patch4_window12_384", "swin"),
        ("hiera_small_abswin_256", "hiera"),
        ("hf-hub:timm/convnext_base.fb_in1k@main", "convnext"),
        ("models._digits_networks:linear", "linear"),
        ("xcit_large_24_p16_224", "xcit"),
        ("alexnet", "alexnet"),
        ("1-nn-mscr-l2", "nearest neighbour"),
        ("\N{PILE OF POO}", "\N{PILE OF POO}"),
    ],
)
def test_a_family_is_what_its_members_share(name: str, family: str) -> None:
    assert family_of(name) == family
