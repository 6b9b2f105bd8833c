"""ImageNet-C and Tiny-ImageNet-C: folders of images, each of them the copy of the clean image of the same name."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.corrupted_copies import write_copies
from tests.published import WNIDS, random_images, write_jpegs

from registry import registry
from testbed.data.corrupted import corrupted_samples
from testbed.data.datasets import load_samples
from testbed.definitions import load_definitions
from testbed.errors import DataError
from testbed.records import Samples

load_definitions()
IMAGES = ("n01440764/b.JPEG", "n01440764/c.JPEG", "n01484850/a.JPEG")  # in the order of the clean samples


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))


def clean_imagenet(root: Path) -> Samples:
    write_jpegs(root / "imagenet" / "val", IMAGES, size=16)
    return load_samples(registry.dataset("imagenet"), "val", data_root=root)


def copies(clean: Samples, root: Path, corruption: str = "fog", severity: int = 3) -> Samples:
    return corrupted_samples(registry.dataset(clean.dataset), clean, corruption, severity, data_root=root)


@pytest.mark.parametrize(
    "place", ["ImageNet-C", "imagenet/ImageNet-C", "imagenet-c", "ImageNet-C/weather", "imagenet/ImageNet-C/noise"]
)
def test_imagenet_c_is_read_where_it_lies_with_and_without_the_folders_of_the_archives(
    place: str, tmp_path: Path
) -> None:
    clean = clean_imagenet(tmp_path)
    write_copies(tmp_path / place / "fog" / "3", IMAGES, size=224)
    samples = copies(clean, tmp_path)
    assert samples.sample_ids == clean.sample_ids == tuple(f"val/{name}" for name in IMAGES)
    assert samples.targets.tolist() == [0, 0, 2]
    assert list(samples.items) == [tmp_path / place / "fog" / "3" / name for name in IMAGES]
    assert samples.split == "ImageNet-C/fog.3"


def test_other_files_are_other_data(tmp_path: Path) -> None:
    clean = clean_imagenet(tmp_path)
    for severity in (2, 3):
        write_copies(tmp_path / "ImageNet-C" / "fog" / str(severity), IMAGES, size=224 + severity)
    assert len({clean.fingerprint, *(copies(clean, tmp_path, severity=s).fingerprint for s in (2, 3))}) == 3


def test_copies_are_in_the_order_of_the_clean_images_whatever_their_folders(tmp_path: Path) -> None:
    """In Tiny ImageNet's way, where ids are those of one folder of all classes."""
    clean = clean_imagenet(tmp_path)
    write_copies(tmp_path / "ImageNet-C" / "fog" / "3", IMAGES, size=224)
    flipped = Samples(
        dataset="imagenet", split="val", items=clean.items[::-1], targets=clean.targets[::-1],
        sample_ids=("x/a.JPEG", "x/c.JPEG", "x/b.JPEG"), class_names=clean.class_names, fingerprint="flipped",
    )  # fmt: skip
    assert [path.stem for path in copies(flipped, tmp_path).items] == ["a", "c", "b"]


def test_a_clean_folder_in_the_place_of_copies_is_refused(tmp_path: Path) -> None:
    clean = clean_imagenet(tmp_path)
    folder = tmp_path / "ImageNet-C" / "fog" / "3"
    shutil.copytree(tmp_path / "imagenet" / "val", folder)
    with pytest.raises(DataError, match=r"ImageNet-C \(fog\.3\): all 3 images equal the clean ones"):
        copies(clean, tmp_path)
    write_copies(folder, IMAGES[:1], size=224)
    assert len(copies(clean, tmp_path)) == 3


@pytest.mark.parametrize(("names", "message"), [
    (IMAGES[:2], r"copy of each of the 3 images of 'imagenet' \(val\), but it lacks 1, such as a\. "),
    ((*IMAGES, "n01440764/d.JPEG"), r"but it has 1 others, such as d\."),
    ((*IMAGES[:2], "n01440764/a.JPEG"), r"n01440764/a\.JPEG is a copy of an image of class n01484850, but lies in"),
    ((*IMAGES, "n01484850/b.JPEG"), r"3 has b twice, one is "),
])  # fmt: skip
def test_anything_but_one_copy_of_each_is_refused(names: tuple[str, ...], message: str, tmp_path: Path) -> None:
    clean = clean_imagenet(tmp_path)
    write_copies(tmp_path / "ImageNet-C" / "fog" / "3", names, size=224)
    with pytest.raises(DataError, match=message):
        copies(clean, tmp_path)


def test_what_is_missing_says_which_archives_hold_it(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        copies(clean_imagenet(tmp_path), tmp_path)
    assert str(caught.value) == (
        f"ImageNet-C (fog/3) is not under {tmp_path} (--data-root), where it may be fog/3 in ImageNet-C, "
        "imagenet/ImageNet-C, imagenet-c, ILSVRC2012/ImageNet-C, or in blur, digital, extra, noise, weather there: a "
        "folder of images per wnid. Get it from https://zenodo.org/records/2235448 (blur.tar, digital.tar, extra.tar, "
        f"noise.tar and weather.tar), and unpack it to {tmp_path}/ImageNet-C."
    )


TINY = (f"{WNIDS[0]}/test_7.JPEG", f"{WNIDS[1]}/test_3.JPEG")


@pytest.mark.parametrize("group", ["", "Tiny-ImageNet-C-extra"])
def test_tiny_imagenet_c_joins_with_the_photos_that_it_was_made_of(group: str, tmp_path: Path) -> None:
    """It was not made of Tiny ImageNet's own val part, whose images have other names."""
    clean_folder = tmp_path / "Tiny-ImageNet-C" / "imagenet_val_bbox_crop"
    for number, name in enumerate(TINY):
        (clean_folder / name).parent.mkdir(parents=True)
        Image.fromarray(random_images(70, 90 + number, 3)[0:70]).save(clean_folder / name)
    clean = load_samples(registry.dataset("tiny-imagenet"), "clean-of-c", data_root=tmp_path)
    assert clean.sample_ids == tuple(f"imagenet_val_bbox_crop/{name}" for name in TINY)
    with Image.open(clean_folder / TINY[0]) as photo:
        expected = np.asarray(photo.resize((64, 64), Image.Resampling.BILINEAR))
    assert np.array_equal(clean.items[0], expected)
    pixels = write_copies(tmp_path / "Tiny-ImageNet-C" / group / "spatter" / "5", TINY, size=64)
    samples = copies(clean, tmp_path, "spatter", 5)
    assert (samples.sample_ids, samples.targets.tolist()) == (clean.sample_ids, [0, 1])
    assert sorted(pixels) == sorted(path.stem for path in samples.items)


def test_without_these_photos_the_message_says_where_they_are_and_what_works_without(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load_samples(registry.dataset("tiny-imagenet"), "clean-of-c", data_root=tmp_path)
    told = str(caught.value)
    assert told.startswith("Tiny-ImageNet-C was made of other photos than those of Tiny ImageNet, and these are not ")
    for part in ("imagenet_val_bbox_crop in Tiny-ImageNet-C", "robustness/issues/39", "--dataset NAME=PATH"):
        assert part in told
