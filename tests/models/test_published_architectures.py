"""A sample of architectures over the families: a file of untrained parameters, loaded and run as a published one is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import timm
import torch
import torchvision
from PIL import Image
from safetensors.torch import save_model
from torch import nn

from models._timm_models import TimmModels
from models._torchvision_models import TorchvisionModels
from registry_base import ModelFamily
from testbed.worker.classifier import load_classifier

TIMM = [
    "test_byobnet", "test_convnext", "test_convnext3", "test_efficientnet", "test_efficientnet_evos",
    "test_efficientnet_gn", "test_efficientnet_ln", "test_nfnet", "test_resnet", "test_vit", "test_vit3",
    "mobilenetv3_small_050", "mobilenetv4_conv_small_050", "lcnet_050", "mobilenetv2_050", "tinynet_e",
    "ghostnet_100", "regnetx_002", "regnety_002", "resnet10t", "convnextv2_atto", "mobilevit_xxs", "mobilevitv2_050",
    "edgenext_xx_small", "efficientformerv2_s0", "efficientvit_b0", "fasternet_t0", "levit_128s", "crossvit_tiny_240",
    "xcit_nano_12_p16_224", "deit_tiny_patch16_224", "pit_ti_224", "pvt_v2_b0", "repvit_m0_9", "repghostnet_050",
    "shvit_s1", "starnet_s1", "swiftformer_xs", "dla46_c", "hgnetv2_b0", "inception_next_atto",
]  # fmt: skip
TORCHVISION = [
    "densenet121", "efficientnet_b0", "googlenet", "mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mobilenet_v2",
    "mobilenet_v3_large", "mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf", "regnet_y_800mf", "resnet18",
    "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "shufflenet_v2_x1_5", "shufflenet_v2_x2_0", "squeezenet1_0",
    "squeezenet1_1", "swin_t",
]  # fmt: skip
PHOTO = Image.effect_noise((400, 300), 80).convert("RGB")


def faults(family: ModelFamily, name: str, create: Callable[[str], nn.Module], file: Path) -> list[str]:
    """What is wrong with a model whose parameters come from a file, against the network that they were saved from."""
    network = create(name)
    save_model(network, str(file))
    model = family.build(name).with_weights(file)
    assert model.transform is not None
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        for draw in ("uniform_", "normal_", "trunc_normal_"):  # what the file does not give would stay undefined
            patch.setattr(torch.Tensor, draw, lambda tensor, *_, **__: tensor.fill_(torch.nan), raising=False)
        classifier = load_classifier(model, device="cpu", fit_seed=0, fit_samples=None)
        logits = classifier(model.transform(PHOTO)[None])
    found = []
    if logits.shape != (1, 1_000) or not torch.isfinite(logits).all():
        found.append(f"{name}: logits {tuple(logits.shape)}, finite {bool(torch.isfinite(logits).all())}")
    loaded = classifier.network.state_dict()
    found += [f"{name}: other {key}" for key, value in network.state_dict().items() if not loaded[key].equal(value)]
    return found


def untrained_torchvision(name: str) -> nn.Module:
    options = {"transform_input": True, "init_weights": False} if name == "googlenet" else {}
    return torchvision.models.get_model(name, weights=None, **options)


@pytest.mark.parametrize(
    ("family", "names", "create"),
    [(TimmModels(), TIMM, timm.create_model), (TorchvisionModels(), TORCHVISION, untrained_torchvision)],
    ids=["timm", "torchvision"],
)
def test_a_sample_of_architectures_runs_from_a_file_of_parameters(family, names, create, tmp_path):
    torch.manual_seed(0)
    file = tmp_path / "weights.safetensors"
    assert [fault for name in names for fault in faults(family, name, create, file)] == []
