"""Models of the hub: what a repository tells, where it is looked for offline, and what is refused."""

from __future__ import annotations

import json

import huggingface_hub.constants
import pytest
import timm
import torch
from safetensors.torch import save_model

from models._hub_models import HubModels
from models._timm_models import TimmModels
from testbed.data.class_order import label_space_names
from testbed.errors import DataError, DefinitionError
from testbed.worker.classifier import load_classifier

TIMM, HUB = TimmModels(), HubModels()
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def nothing_there(tmp_path, monkeypatch):
    """No checkpoints, no caches of libraries, no downloads."""
    monkeypatch.setenv("TESTBED_CHECKPOINTS", str(tmp_path / "checkpoints"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setenv("TESTBED_NO_DOWNLOAD", "1")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


def network(seed=0, **options):
    torch.manual_seed(seed)
    return timm.create_model("test_resnet", **options).eval()


def logits(model, images):
    with torch.no_grad():
        return load_classifier(model, device="cpu", fit_seed=0, fit_samples=None)(images)


def repository(root, config, *, weights=None, branch="main", owner="owner/net"):
    """A repository as the hub's client keeps it."""
    folder = root / "hub" / f"models--{owner.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / branch).write_text(COMMIT)
    snapshot = folder / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps(config))
    if weights is not None:
        save_model(weights, str(snapshot / "model.safetensors"))
    return snapshot


CONFIG = {
    "architecture": "test_resnet",
    "num_classes": 10,
    "pretrained_cfg": {
        "input_size": [3, 64, 64], "crop_pct": 0.8, "crop_mode": "squash", "interpolation": "bilinear",
        "mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6], "license": "mit", "first_conv": "conv1.0", "classifier": "fc",
    },
}  # fmt: skip
CIFAR10 = label_space_names("cifar10")


def test_a_repository_tells_everything_and_its_commit_is_part_of_the_identity(nothing_there):
    saved = network(num_classes=10)
    repository(nothing_there, {**CONFIG, "label_names": CIFAR10}, weights=saved)
    model = HUB.build("owner/net")
    assert (model.transform.crop_size, model.transform.resize_size, model.transform.crop_mode) == (
        (64, 64), (80, 80), "squash",
    )  # fmt: skip
    assert (model.label_space, model.class_names, model.num_outputs) == ("cifar10", CIFAR10, 10)
    assert model.version == f"commit {COMMIT}"
    assert COMMIT[:8] in model.description
    images = torch.rand(2, 3, 64, 64)
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in ([0.1, 0.2, 0.3], [0.4, 0.5, 0.6]))
    assert torch.equal(logits(model, images), saved((images - mean) / std))
    assert HUB.build(f"owner/net@{COMMIT}").version == model.version


def test_heads_of_timms_own_repositories_are_imagenets_and_others_are_not_taken_for_that(nothing_there):
    repository(nothing_there, {**CONFIG, "num_classes": 11_821}, owner="timm/net")
    repository(nothing_there, {**CONFIG, "num_classes": 11_821}, owner="owner/net")
    ours, other = HUB.build("timm/net"), HUB.build("owner/net")
    assert (ours.label_space, ours.num_outputs) == ("imagenet-1k", 1_000)
    assert (other.label_space, other.num_outputs, other.classify) == ("unknown", 11_821, None)
    assert ours.version == f"commit {COMMIT}, imagenet-12k to imagenet-1k"


def test_a_folder_under_checkpoints_stands_for_a_repository(nothing_there):
    folder = nothing_there / "checkpoints/hf-hub/owner/net"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    save_model(network(num_classes=10), str(folder / "model.safetensors"))
    model = HUB.build("owner/net")
    assert model.weights_file() == folder / "model.safetensors"
    assert model.version.startswith("config ")
    assert logits(model, torch.rand(1, 3, 64, 64)).shape == (1, 10)


def test_what_is_no_timm_repository_is_refused(nothing_there):
    repository(nothing_there, {"model_type": "bert"}, owner="owner/bert")
    repository(nothing_there, {**CONFIG, "architecture": "resnet_of_tomorrow"}, owner="owner/new")
    with pytest.raises(DefinitionError, match="is no timm configuration"):
        HUB.build("owner/bert")
    with pytest.raises(DefinitionError, match="'resnet_of_tomorrow', which this version of timm lacks"):
        HUB.build("owner/new")
    with pytest.raises(DefinitionError, match="names no repository"):
        HUB.build("net")
    with pytest.raises(
        DataError, match=r"'hf-hub:no/body' is not on this machine and cannot be fetched: downloads are forbidden"
    ):
        HUB.build("no/body")


def test_the_hubs_own_switch_is_respected(monkeypatch):
    monkeypatch.delenv("TESTBED_NO_DOWNLOAD")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataError, match=r"the hub is switched off \(HF_HUB_OFFLINE\)"):
        TIMM.build("resnet50.a1_in1k").weights_file()
