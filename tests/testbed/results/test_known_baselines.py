"""Which published model was made from which."""

from __future__ import annotations

import pytest

from testbed.results.baselines import known_baseline
from testbed.results.model_facts import ModelFactsOf


@pytest.mark.parametrize(
    ("model", "baseline"),
    [
        ("resnet50_augmix", "resnet50"),
        ("resnet50_deepaugment_augmix", "resnet50"),
        ("resnet50_trained_on_SIN_and_IN_then_finetuned_on_IN", "resnet50"),
        ("resnet50_linf_eps8_robust", "resnet50"),
        ("resnet50_swsl", "resnet50"),
        ("vgg16_bn_lpf3", "vgg16_bn"),
        ("efficientnet-b3-advprop-autoaug", "efficientnet-b3-autoaug"),
        ("FixResNet50CutMix_v2", "FixResNet50_v2"),
        ("resnet50_with_fog_aws", "resnet50_aws_baseline"),
        ("resnet50-randomized_smoothing_noise_0.25", "resnet50-randomized_smoothing_noise_0.00"),
        ("resnet50-randomized_smoothing_noise_0.00", None),
        ("resnet50", None),
        ("resnet50_aws_baseline", None),
        ("resnet50.a1_in1k", None),
    ],
)
def test_an_intervention_has_the_network_without_it_as_baseline(model: str, baseline: str | None) -> None:
    assert known_baseline(model) == baseline


def test_published_models_have_their_known_baselines_and_own_ones_tell_theirs() -> None:
    facts = ModelFactsOf(types={})
    assert facts.of("resnet50_augmix", label_space=None, source="paper").baseline == "resnet50"
    assert facts.of("mine_augmix", label_space="two", source=None).baseline is None
