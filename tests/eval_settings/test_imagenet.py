"""ImageNet: folders of wnids, at the positions that models have them, evaluated and searched on val."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.published import write_jpegs

from eval_settings.eval_setting_base import StandardDataset
from registry import registry
from testbed.data.datasets import load_samples
from testbed.data.filling import BankFiller
from testbed.data.imagepipeline import Pipeline
from testbed.definitions import load_definitions
from testbed.errors import DataError
from testbed.records import Samples

load_definitions()
IMAGES = ("n01484850/b.JPEG", "n01440764/c.JPEG", "n01484850/a.JPEG")  # classes 2 and 0 of the 1,000


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))


def load(split: str, root: Path) -> Samples:
    return load_samples(registry.dataset("imagenet"), split, data_root=root)


@pytest.mark.parametrize("place", ["imagenet", "ILSVRC2012", "."])
def test_wnids_have_their_places_among_the_1000_classes(place: str, tmp_path: Path) -> None:
    write_jpegs(tmp_path / place / "val", IMAGES, size=8)
    samples = load("val", tmp_path)
    assert samples.sample_ids == ("val/n01440764/c.JPEG", "val/n01484850/a.JPEG", "val/n01484850/b.JPEG")
    assert samples.targets.tolist() == [0, 2, 2]
    assert len(samples.class_names) == 1000


def test_the_canonical_space_is_224_pixels_after_the_standard_resize_and_crop(tmp_path: Path) -> None:
    write_jpegs(tmp_path / "imagenet" / "val", IMAGES, size=300)
    size = registry.dataset("imagenet").canonical_size
    samples = load("val", tmp_path)
    pipeline = Pipeline(samples=samples, canonical_size=size, setting_transform=None, model_transform=None)
    bank = BankFiller(tmp_path, num_threads=1).plan(pipeline)
    assert bank.shape == (3, 3, 224, 224)


def test_it_is_evaluated_and_searched_on_val_and_fitted_on_train(tmp_path: Path) -> None:
    dataset = registry.dataset("imagenet")
    assert (dataset.eval_split, dataset.fit_split, dataset.separation_splits) == ("val", "train", ("val",))
    write_jpegs(tmp_path / "imagenet" / "train", IMAGES[:1], size=8)
    assert load("train", tmp_path).sample_ids == ("train/n01484850/b.JPEG",)


def test_the_setting_val_expects_all_50000_images() -> None:
    setting = registry.eval_setting("val")
    assert (setting.dataset, setting.size, setting.shift) == (StandardDataset(name="imagenet"), 50_000, None)


@pytest.mark.parametrize("names", [(), ("ILSVRC2012_val_00000001.JPEG",), ("cats/a.JPEG",)])
def test_what_is_missing_says_what_where_and_why_it_is_not_downloaded(names: tuple[str, ...], tmp_path: Path) -> None:
    write_jpegs(tmp_path / "imagenet" / "val", names, size=8)
    with pytest.raises(DataError) as caught:
        load("val", tmp_path)
    assert str(caught.value) == (
        f"Data set 'imagenet' (val) is not under {tmp_path} (--data-root), where it may be val in imagenet, "
        "ILSVRC2012, .: a folder of images per wnid, such as val/n01440764. Get ILSVRC 2012 from "
        f"https://image-net.org, which asks for an account, and put or link it to {tmp_path}/imagenet."
        + f" {tmp_path}/imagenet/val has none: sort its photos into them, as the usual script valprep.sh does."
        * bool(names)
    )
