"""Types of models by their names at timm: the same training has the same type as in the ImageNet Testbed."""

from __future__ import annotations

import pytest

from testbed.model_types import pretraining_words, type_by_name, type_by_pretraining


@pytest.mark.parametrize(
    ("name", "model_type"),
    [
        ("resnet50.a1_in1k", "STANDARD"),
        ("resnet50.fb_ssl_yfcc100m_ft_in1k", "MORE_DATA"),
        ("resnext101_32x8d.fb_swsl_ig1b_ft_in1k", "MORE_DATA"),
        ("tf_efficientnet_b7.ap_in1k", "ROBUST_INTV"),
        ("tf_efficientnet_b7.aa_in1k", "STANDARD"),
        ("tf_efficientnet_l2.ns_jft_in1k", "MORE_DATA"),
        ("inception_v3.tf_adv_in1k", "LP_ADV"),
        ("inception_resnet_v2.tf_ens_adv_in1k", "LP_ADV"),
        ("resnet50.am_in1k", "ROBUST_INTV"),
        ("resnet50.ram_in1k", "ROBUST_INTV"),
        ("resnetblur50.bt_in1k", "ROBUST_INTV"),
        ("eva_giant_patch14_336.clip_ft_in1k", "MORE_DATA"),
        ("hrnet_w18_ssld.paddle_in1k", "MORE_DATA"),
        ("beit_base_patch16_224.in22k_ft_in22k_in1k", "MORE_DATA"),
        ("vit_base_patch16_224.mae_in1k_ft_in1k", "STANDARD"),
        ("deit_base_distilled_patch16_224.fb_in1k", "STANDARD"),
        ("vit_base_patch16_224", None),
        ("net.of-mine", None),
        ("resnet50-randomized_smoothing_noise_0.25", None),
        ("resnet18_50k_7_epochs", "LOW_ACCURACY_CNN"),
        ("resnet50_trained_for_7_epochs_more", None),
    ],
)
def test_a_name_tells_the_type(name: str, model_type: str | None) -> None:
    assert type_by_name(name) == model_type


def test_every_word_of_timms_list_has_a_type() -> None:
    assert {type_by_pretraining(word) for word in pretraining_words()} == {
        "STANDARD", "ROBUST_INTV", "LP_ADV", "MORE_DATA"
    }  # fmt: skip
    assert type_by_pretraining("in1k-other") is None
