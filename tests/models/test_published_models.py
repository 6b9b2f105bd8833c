"""Models of timm and torchvision: which there are, how their weights are read, and what is refused."""

from __future__ import annotations

import re
import subprocess
import sys

import huggingface_hub.constants
import pytest
import timm
import torch
import torchvision
from safetensors.torch import save_file, save_model
from torchvision import models as torchvision_models

import models.imagenet
from models._imagenet_heads import imagenet_columns
from models._published import reading_weights
from models._timm_models import TimmModels
from models._torchvision_models import TorchvisionModels, load_torchvision
from models.model_base import StandardTransform
from registry import Registry
from testbed.data.class_order import label_space_names
from testbed.definitions import SOURCE_ROOT
from testbed.engine.identity import model_version
from testbed.errors import DataError, DefinitionError, UnknownNameError
from testbed.timm_tags import trained_on
from testbed.worker.classifier import load_classifier

TIMM, TORCHVISION = TimmModels(), TorchvisionModels()


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


# timm


def test_timm_tells_preprocessing_label_space_and_training_data():
    model = TIMM.build("resnet50.a1_in1k")
    assert (model.transform.crop_size, model.transform.resize_size) == ((224, 224), (235, 235))  # 224 / 0.95
    assert (model.transform.interpolation, model.transform.crop_mode) == ("bicubic", "center")
    assert (model.normalization.mean, model.normalization.std) == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert (model.label_space, model.num_outputs, model.arch) == ("imagenet-1k", 1_000, "resnet50")
    assert TIMM.build("tf_efficientnet_l2.ns_jft_in1k").training_data == ("jft-300m", "imagenet-1k")
    assert TIMM.build("convnext_base.fb_in22k_ft_in1k").training_data == ("imagenet-22k", "imagenet-1k")
    assert TIMM.build("regnety_160.swag_ft_in1k").training_data == ("instagram-3.6b", "imagenet-1k")


def test_every_listed_model_of_timm_tells_what_it_was_trained_on():
    tags = {name.partition(".")[2] for name in TIMM.names()}
    assert [tag for tag in tags if not trained_on(tag)] == []


def test_a_name_without_a_tag_takes_timms_default_weights_and_finds_the_same_file(nothing_there):
    named, bare = TIMM.build("resnet50.a1_in1k"), TIMM.build("resnet50")
    file = nothing_there / "checkpoints/timm/resnet50.a1_in1k.safetensors"
    file.parent.mkdir(parents=True)
    file.touch()
    assert bare.weights_file() == named.weights_file() == file
    assert bare.transform == named.transform


def test_unknown_names_are_told_with_their_neighbours():
    with pytest.raises(UnknownNameError, match=r"no pretrained model 'resnet51'\. Did you mean .*resnet50"):
        TIMM.build("resnet51")
    with pytest.raises(UnknownNameError, match=r"no weights 'a9_in1k' of 'resnet50'\. It has a1_in1k, .*tv_in1k"):
        TIMM.build("resnet50.a9_in1k")
    with pytest.raises(UnknownNameError, match=r"'resnet50\.IMAGENET1K_V3'\. Did you mean .*IMAGENET1K_V2"):
        TORCHVISION.build("resnet50.IMAGENET1K_V3")


def test_towers_without_classes_are_refused_and_not_listed():
    with pytest.raises(DefinitionError, match="has no classes: its outputs are features"):
        TIMM.build("vit_small_patch14_dinov2.lvd142m")
    with pytest.raises(DefinitionError, match="has no classes"):
        TORCHVISION.build("vgg16.IMAGENET1K_FEATURES")
    assert TIMM.build("vit_base_patch16_224.bamboo").label_space == "unknown"
    assert not {"vit_small_patch14_dinov2.lvd142m", "vit_base_patch16_224.bamboo"} & set(TIMM.names())
    assert "vgg16.IMAGENET1K_FEATURES" not in TORCHVISION.names()


def test_a_missing_download_is_one_line_with_the_file_and_where_to_put_it(nothing_there):
    with pytest.raises(DataError) as caught:
        TIMM.build("resnet50").weights_file()
    said = str(caught.value)
    assert "\n" not in said
    assert "downloads are forbidden (--no-download, TESTBED_NO_DOWNLOAD)" in said
    assert "timm/resnet50.a1_in1k/resolve/main/model.safetensors" in said
    assert str(nothing_there / "checkpoints/timm/resnet50.a1_in1k.safetensors") in said
    assert "--weights timm:resnet50=FILE" in said
    (nothing_there / "checkpoints/timm").mkdir(parents=True)
    (nothing_there / "checkpoints/timm/resnet50.pth").touch()
    assert TIMM.build("resnet50").weights_file() == nothing_there / "checkpoints/timm/resnet50.pth"


@pytest.mark.parametrize("ending", ["safetensors", "pth"])
def test_timms_weights_are_read_from_a_file_which_is_part_of_the_identity(nothing_there, ending):
    file = nothing_there / f"weights.{ending}"
    saved, images = network(), torch.rand(2, 3, 160, 160)
    if ending == "pth":
        torch.save({"state_dict": {f"module.{key}": value for key, value in saved.state_dict().items()}}, file)
    else:
        save_model(saved, str(file))
    model = TIMM.build("test_resnet.r160_in1k").with_weights(file)
    assert torch.equal(logits(model, images), saved((images - 0.5) / 0.5))  # timm's mean and std of this model
    before = model_version(model).fingerprint
    save_model(network(seed=1), str(file))
    assert model_version(model).fingerprint != before


class Harmful:
    def __reduce__(self):
        return (print, ("run",))


def test_pickled_objects_are_refused_in_one_line(nothing_there, capsys):
    file = nothing_there / "weights.pth"
    torch.save({"state_dict": Harmful()}, file)
    for model in (TIMM.build("test_resnet.r160_in1k"), TORCHVISION.build("squeezenet1_1")):
        with pytest.raises(DataError, match=r"refused: .*pickled objects besides tensors") as caught:
            logits(model.with_weights(file), torch.rand(1, 3, 64, 64))
        assert "\n" not in str(caught.value)
    assert "run" not in capsys.readouterr().out


def test_weights_of_another_model_are_refused_in_one_line(nothing_there):
    file = nothing_there / "weights.safetensors"
    save_model(network(), str(file))
    for model in (TIMM.build("test_vit.r160_in1k"), TORCHVISION.build("squeezenet1_1")):
        with pytest.raises(DefinitionError, match="do not fit it, keys: ") as caught:
            logits(model.with_weights(file), torch.rand(1, 3, 64, 64))
        said, held = str(caught.value), network().state_dict()
        assert "\n" not in said
        assert len(said) < 700
        counted = {kind: (int(number), names) for number, kind, names in re.findall(r"(\d+) (\w+) \((.*?)\)", said)}
        assert set(counted) == {"missing", "unexpected"}
        assert counted["unexpected"][0] == len(held)
        assert set(counted["unexpected"][1].split(", ")) <= {*held, "..."}
        assert counted["missing"][0] > 50
        assert not set(counted["missing"][1].split(", ")) & set(held)


def test_a_head_of_another_size_is_told_with_its_shape_and_foreign_errors_are_cut_between_words(nothing_there):
    file = nothing_there / "weights.safetensors"
    save_model(network(num_classes=6), str(file))
    with pytest.raises(
        DefinitionError, match=r"keys: 2 of another shape \(fc\.weight \[6, 96\] for \[1000, 96\], fc\.bias \[6\] for"
    ):
        logits(TIMM.build("test_resnet.r160_in1k").with_weights(file), torch.rand(1, 3, 64, 64))
    with pytest.raises(DefinitionError, match=r"fit it, ValueError: (what |is |said )+\.\.\.\. Check"):
        with reading_weights("net", file):
            raise ValueError("what is said " * 50)


def test_a_file_can_be_named_for_a_model_of_a_family_and_globs_need_its_prefix(nothing_there):
    registry = Registry()
    registry.add_model_family("timm", TIMM)
    (nothing_there / "mine.pth").touch()
    registry.set_weights("timm:resnet18.a1_in1k", nothing_there / "mine.pth")
    assert registry.model("timm:resnet18.a1_in1k").weights_file() == nothing_there / "mine.pth"
    assert {"timm:resnet18.a1_in1k", "timm:resnet18.tv_in1k"} <= set(registry.expand("model", ["timm:resnet18.*"]))
    with pytest.raises(UnknownNameError):
        registry.expand("model", ["*resnet18.a1_in1k"])


def test_a_head_of_21k_classes_is_cut_to_imagenets_by_wnid(nothing_there):
    file = nothing_there / "weights.safetensors"
    model = TIMM.build("convnext_nano.in12k")
    assert (model.num_outputs, model.label_space, model.classify.subset) == (1_000, "imagenet-1k", "imagenet-12k")
    assert "imagenet-12k to imagenet-1k" in model.version
    larger = network(num_classes=11_821)
    save_model(larger, str(file))
    cut = imagenet_columns(11_821)
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        full, answered = larger(images), cut(images, larger)
    wnids, twelve = label_space_names("imagenet-1k"), timm.data.ImageNetInfo("imagenet-12k").label_names()
    for index, wnid in enumerate(wnids):
        expected = full.min(dim=1).values if index in cut.missing_classes else full[:, twelve.index(wnid)]
        assert torch.equal(answered[:, index], expected)


# torchvision


def test_torchvision_tells_the_preprocessing_of_its_weights():
    default, first = TORCHVISION.build("resnet50"), TORCHVISION.build("resnet50.IMAGENET1K_V1")
    assert default.transform.resize_size == (232, 232)
    assert first.transform.resize_size == (256, 256)
    assert default.weights.files()[0].name == "resnet50-11ad3fa6.pth"
    swag = TORCHVISION.build("vit_h_14.IMAGENET1K_SWAG_E2E_V1")
    assert (swag.transform.crop_size, swag.transform.interpolation) == ((518, 518), "bicubic")
    assert swag.training_data == ("instagram-3.6b", "imagenet-1k")
    assert TORCHVISION.build("efficientnet_v2_l").normalization.mean == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("arch", "weights", "options"),
    [
        ("vit_h_14", "IMAGENET1K_SWAG_E2E_V1", {"image_size": 518}),
        ("maxvit_t", "IMAGENET1K_V1", {"input_size": (224, 224)}),
        ("inception_v3", "IMAGENET1K_V1", {"transform_input": True, "aux_logits": True, "init_weights": False}),
        ("resnet18", "IMAGENET1K_V1", {}),
    ],
)
def test_networks_are_made_as_torchvision_makes_them_for_the_weights(
    nothing_there, monkeypatch, arch, weights, options
):
    file = nothing_there / "weights.safetensors"
    save_file({"weight": torch.ones(1, 1)}, file)
    asked = []
    monkeypatch.setattr(
        torchvision_models,
        "get_model",
        lambda name, **given: asked.append((name, given)) or torch.nn.Linear(1, 1, bias=False),
    )
    load_torchvision(arch, weights, weights=file)
    assert asked == [(arch, {"weights": None, **options})]


def test_old_names_of_densenets_parameters_are_understood(nothing_there):
    file = nothing_there / "weights.pth"
    saved = torchvision.models.densenet121(weights=None).eval()
    old = {}
    for key, value in saved.state_dict().items():
        for kind in ("norm", "conv"):
            for number in "12":
                if "denselayer" in key:
                    key = key.replace(f".{kind}{number}.", f".{kind}.{number}.")
        old[key] = value
    assert "features.denseblock1.denselayer1.norm.1.weight" in old
    torch.save(old, file)
    loaded = load_torchvision("densenet121", "IMAGENET1K_V1", weights=file).state_dict()
    assert all(torch.equal(value, loaded[key]) for key, value in saved.state_dict().items())


# The ImageNet Testbed's names


def test_the_ancestors_names_are_torchvisions_first_weights_at_the_ancestors_sizes():
    for name, arch, resize, crop in models.imagenet.NETWORKS:
        model = next(m for m in [TORCHVISION.build(f"{arch}.IMAGENET1K_V1")])
        ours = models.imagenet.registry.model(name, "imagenet-1k")
        assert ours.transform == StandardTransform(resize, crop)
        assert ours.weights.files() == model.weights.files()
        assert ours.normalization == model.normalization
        assert model.transform.crop_size == (crop, crop)
        assert model.transform.interpolation == "bilinear"
        assert model.transform.resize_size[0] == (342 if name == "inceptionv3" else resize)
    assert len(models.imagenet.NETWORKS) == 31


def test_bare_names_and_family_names_are_registered_without_importing_any_library():
    code = (
        "from testbed.definitions import load_definitions; load_definitions();"
        "from registry import registry; registry.model('resnet50', 'imagenet-1k'); registry.model_names();"
        "import sys; print(sorted({'torch', 'timm', 'torchvision', 'huggingface_hub'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=SOURCE_ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
