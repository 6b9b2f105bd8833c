"""Which model a published one was made from by an intervention, as far as its makers say so."""

from __future__ import annotations

import re

# By what the whole name of one of the ImageNet Testbed's models matches: the same network without the intervention.
_ROWS = tuple(
    (re.compile(pattern), baseline)
    for pattern, baseline in (
        (r"(.+)_lpf[235]", r"\1"),  # low-pass filters before down-sampling
        (r"resnet50_with_.+_aws", "resnet50_aws_baseline"),  # trained on corrupted images
        (r"(.+?)_(?:augmix|deepaugment|deepaugment_augmix|cutmix|feature_cutmix|cutout|mixup)", r"\1"),
        (r"(.+)_trained_on_SIN.*", r"\1"),  # stylized images
        (r"(FixResNet50)CutMix(.*)", r"\1\2"),
        (r"(resnet18)-rotation-(?:random|worst10)_.+", r"\1"),
        (r"(efficientnet-b\d)-advprop(-autoaug)", r"\1\2"),
        (r"(.+)_(?:l2|linf)_eps\d_robust", r"\1"),
        (r"(resnet50)_adv-train-free", r"\1"),
        (r"(resnet50-randomized_smoothing_noise)_(?!0\.00).+", r"\1_0.00"),
        (r"resnet50-smoothing_adversarial_.+", "resnet50-randomized_smoothing_noise_0.00"),
        (r"facebook_adv_trained_(resnet152)_.+", r"\1"),
        (r"(.+)_(?:ssl|swsl)", r"\1"),  # taught on images without labels, or with hashtags
        (r"instagram-(resnext101_32x8d)", r"\1"),
        (r"google_(resnet101)_jft-300M", r"\1"),
        (r"(resnet101)-tencent-ml-images", r"\1"),
        (r"(resnet152)-imagenet11k", r"\1"),
    )
)


def known_baseline(model: str) -> str | None:
    """The baseline of a published model; None where there is none or it is not known."""
    for pattern, baseline in _ROWS:
        if found := pattern.fullmatch(model):
            return found.expand(baseline)
    return None
