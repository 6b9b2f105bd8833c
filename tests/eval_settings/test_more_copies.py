"""Several sets of published copies of one data set: ImageNet-C-bar, ImageNet-3DCC and CIFAR-10-C-bar."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.corrupted_copies import save
from tests.miniatures import class_pixels, write_class_image
from tests.oracle_runs import evaluated, oracles
from tests.published import binary_batch, write

from eval_settings._imagenet_copies import C_BAR, MORE_COPIES, THREE_D
from eval_settings.dataset_base import Dataset
from models.model_base import StandardTransform
from registry import registry
from testbed.data.corrupted import corrupted_samples
from testbed.data.datasets import load_samples
from testbed.definitions import load_definitions
from testbed.errors import DefinitionError, UnknownNameError

load_definitions()
PHOTOS = {"n01440764": 0, "n01443537": 1}  # wnid -> class
COPIES = {  # name of a setting: folder of its copies
    "imagenet-c-bar.sparkles.4_on-disk": "ImageNet-C-bar/sparkles/4",
    "imagenet-c-bar.perlin_noise.2_on-disk": "ImageNet-C-Bar/perlin_noise/5.20",  # as the authors' script names it
    "imagenet-3dcc.fog_3d.5_on-disk": "ImageNet-3DCC/fog_3d/5",
    "imagenet-c.fog.5_on-disk": "ImageNet-C/fog/5",
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))


def write_photos(root: Path) -> None:
    """The validation photos, and copies of them at 224 px."""
    for folder, size in {"imagenet/val": 300, **dict.fromkeys(COPIES.values(), 224)}.items():
        for wnid, index in PHOTOS.items():
            write_class_image(root / folder / wnid / f"ILSVRC2012_val_{index:08d}.JPEG", index, size)


def test_an_oracle_has_all_copies_right_and_each_set_is_compared_with_val(tmp_path: Path) -> None:
    write_photos(tmp_path)
    models = oracles((0, 5), transform=StandardTransform(256, 224))
    found = evaluated(tuple(COPIES), tmp_path, tmp_path / "home", models)
    for name in COPIES:
        assert found["oracle", name]["top1"].value == 100
        assert found["exchanging", name]["top1"].value == 50
    assert found["oracle", "val"]["top1"].value == 100  # the clean parent of all


def test_cifar_10_c_bar_is_in_blocks_of_severity(tmp_path: Path) -> None:
    images, labels = np.stack([class_pixels(index) for index in (3, 9)]), [3, 9]
    write(tmp_path / "cifar-10-batches-bin/test_batch.bin", binary_batch(images, labels))
    blocks = np.stack([np.minimum(images.astype(int) + severity, 255) for severity in range(1, 6)]).astype(np.uint8)
    save(tmp_path / "CIFAR-10-C-Bar/ripple.npy", blocks.reshape(-1, 32, 32, 3))
    save(tmp_path / "CIFAR-10-C-Bar/labels.npy", np.tile(np.array(labels), 5))
    models = oracles((3, 7), label_space="cifar10", num_classes=10, transform=None)
    name = "cifar10-c-bar.ripple.4_on-disk"
    found = evaluated((name,), tmp_path, tmp_path / "home", models)
    assert [found[model.name, name]["top1"].value for model in models] == [100, 50]
    dataset = registry.dataset("cifar10")
    clean = load_samples(dataset, "test", data_root=tmp_path)
    copies = corrupted_samples(dataset, clean, "ripple", 4, suffix="c-bar", data_root=tmp_path)
    assert np.array_equal(copies.items, blocks[3])
    assert copies.split == "CIFAR-10-C-bar/ripple.4"


def test_a_set_has_its_own_corruptions_and_family() -> None:
    assert len(registry.expand("eval-setting", ["imagenet-c-bar.*_on-disk"])) == 5 * len(C_BAR) == 50
    assert len(registry.expand("eval-setting", ["imagenet-3dcc.*_on-disk"])) == 5 * len(THREE_D) == 60
    families = {}
    for name in (*COPIES, "imagenet-3dcc.flash.1_on-disk-resized"):
        setting = registry.eval_setting(name)
        assert setting.shift is not None
        families[name] = setting.shift.family
        assert setting.keeps_size == (not name.endswith("-resized"))
    assert list(families.values()) == [
        "common-corruption-on-disk-c-bar", "common-corruption-on-disk-c-bar", "common-corruption-on-disk-3dcc",
        "common-corruption-on-disk", "common-corruption-on-disk-3dcc-resized",
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "message"), [
    ("imagenet-c-bar.sparkles.6_on-disk", r"severity '6'.*Did you mean imagenet-c-bar\.sparkles\.5_on-disk\?"),
    ("imagenet-c-bar.sparkles_on-disk", r"no 'sparkles' without a severity\. It has imagenet-c-bar\.sparkles\.1_on"),
    ("imagenet-3dcc.flash.1_on-disk-uint8", r"End it in '_on-disk-resized' or '_on-disk'"),
])  # fmt: skip
def test_a_name_that_nearly_is_one_is_corrected(name: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        registry.eval_setting(name)


def test_corruptions_of_another_set_are_none_of_this_one() -> None:
    with pytest.raises(UnknownNameError, match=r"ImageNet-C-bar has no corruption 'fog'\. .*sparkles"):
        registry.eval_setting("imagenet-c-bar.fog.3_on-disk")
    with pytest.raises(UnknownNameError, match=r"Unknown eval-setting 'imagenet-c\.sparkles\.3_on-disk'"):
        registry.eval_setting("imagenet-c.sparkles.3_on-disk")
    with pytest.raises(UnknownNameError, match=r"Unknown eval-setting 'cifar100-c-bar\.ripple\.3_on-disk'"):
        registry.eval_setting("cifar100-c-bar.ripple.3_on-disk")


def test_two_sets_of_one_suffix_are_refused() -> None:
    twice = (MORE_COPIES[0], replace(MORE_COPIES[1], suffix="c-bar"))
    with pytest.raises(DefinitionError, match="two sets of corrupted copies have one suffix"):
        Dataset(name="photos", path=Path("photos"), corrupted=twice)
