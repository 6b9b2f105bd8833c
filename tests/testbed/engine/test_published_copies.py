"""What a model is shown of ImageNet-C: the published pixels, or those pixels resized once more, by the name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.corrupted_copies import write_copies
from tests.published import write_jpegs

from models.model_base import Model, StandardTransform
from registry import registry
from testbed.data.imagebank import Bank
from testbed.definitions import load_definitions
from testbed.engine.data import Data
from testbed.engine.plan import Request, clean_parent, make_plan
from testbed.store.store import Store

load_definitions()
IMAGES = ("n01440764/b.JPEG", "n01484850/a.JPEG")


class Shown:
    """The banks of settings, with what the user is told meanwhile."""

    def __init__(self, store: Store, root: Path) -> None:
        self.root = root
        self.told: list[str] = []
        self.pixels = write_copies(root / "ImageNet-C" / "fog" / "2", IMAGES, size=224)
        write_jpegs(root / "imagenet" / "val", IMAGES, size=300)
        self.data = Data(store=store, data_root=root, cache_root=root / "home", threads=1, warn=self.told.append)

    def bank(self, setting: str, model: Model) -> Bank:
        return self.data.bank(registry.eval_setting(setting), model)

    def images(self, setting: str, model: Model) -> np.ndarray:
        """[n, H, W, C]"""
        return np.moveaxis(self.bank(setting, model).open()[:], 1, 3)


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shown:
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))
    with Store.open(tmp_path / "store.sqlite") as store:
        return Shown(store, tmp_path)


def model(resize: int, crop: int) -> Model:
    return Model(
        name=f"crop{crop}", transform=StandardTransform(resize, crop), classifier_loader=lambda: None, eval_batch_size=2
    )


def test_imagenet_c_is_not_resized_for_a_model_that_crops_224_px(shown: Shown) -> None:
    images = shown.images("imagenet-c.fog.2_on-disk", model(256, 224))
    assert images.dtype == np.uint8
    assert np.array_equal(images, np.stack([shown.pixels["b"], shown.pixels["a"]]))
    assert shown.told == []


def test_the_protocol_that_resizes_has_a_name_of_its_own(shown: Shown) -> None:
    resized = shown.images("imagenet-c.fog.2_on-disk-resized", model(256, 224))
    assert not np.array_equal(resized, shown.images("imagenet-c.fog.2_on-disk", model(256, 224)))
    assert resized.shape == (2, 224, 224, 3)


def test_clean_images_are_resized_as_always(shown: Shown) -> None:
    with Image.open(shown.root / "imagenet" / "val" / IMAGES[0]) as image:
        expected = np.asarray(StandardTransform(256, 224).to_pixels(image))
    assert np.array_equal(shown.images("imagenet", model(256, 224))[0], expected)


def test_a_model_of_another_size_resizes_them_and_the_user_is_told(shown: Shown) -> None:
    small = model(73, 64)
    for _ in range(2):
        assert shown.bank("imagenet-c.fog.2_on-disk", small).shape == (2, 3, 64, 64)
    assert shown.told == [
        "Warning: 'imagenet-c.fog.2_on-disk' has images that were resized and cropped to 224 px before, and model "
        "'crop64' takes 64 px: its transform resizes and crops them again, so that it sees less of each than of the "
        "clean image. Results of models at different sizes do not compare."
    ]


@pytest.mark.parametrize("end", ["_in-memory", "_on-disk", "_on-disk-resized"])
def test_imagenet_c_is_compared_with_val(end: str) -> None:
    setting = registry.eval_setting(f"imagenet-c.fog.2{end}")
    assert clean_parent(setting, model(256, 224)) == "val"


def test_a_limit_takes_the_same_samples_of_both() -> None:
    request = Request(models=["digits-linear"], eval_settings=["digits-c.fog.2_in-memory"], limit=5)
    assert [pairing.setting.name for pairing in make_plan(request)] == [
        "digits@limit5", "digits-c.fog.2_in-memory@limit5",
    ]  # fmt: skip
