"""Sets of photos in folders per class: found, mapped by wnid or by number, and masked as their names say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.in_process import metrics_of, miniature, top1_of
from tests.miniatures import oracle_model, write_class_image

from eval_settings._imagenet_classes import EIGHTH, IMAGENET_A, IMAGENET_R
from registry import registry
from testbed.data.class_order import label_space_names
from testbed.data.datasets import load_samples, published_difference
from testbed.definitions import load_definitions
from testbed.errors import DataError

load_definitions()
WNIDS = label_space_names("imagenet-1k") or ()
V2 = ("matched-frequency-format-val", "threshold-0.7-format-val", "top-images-format-val")
FOUND = ("matched-frequency", "threshold0.7", "topimages")
NATURAL = ("imagenet-a", "imagenet-r", "imagenet-sketch", "stylized_imagenet")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))


def write(folder: Path, classes: dict[str, int]) -> None:
    """Two images of a class in each folder: name of the folder -> class that they show."""
    for name, index in classes.items():
        for number in range(2):
            write_class_image(folder / name / f"{number}.jpeg", index)


def test_the_classes_of_imagenet_a_and_r_are_those_that_timm_lists() -> None:
    from importlib.resources import files

    listed = files("timm.data").joinpath("_info")
    for name, ours in (("a", IMAGENET_A), ("r", IMAGENET_R)):
        assert ours == tuple(map(int, listed.joinpath(f"imagenet_{name}_indices.txt").read_text().split()))
        wnids = listed.joinpath(f"imagenet_{name}_synsets.txt").read_text().split()
        assert [WNIDS[index] for index in ours] == wnids
    assert len(set(EIGHTH)) == len(EIGHTH) == 125


def test_an_oracle_is_right_on_every_set_as_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers sort as numbers: 2, 10 and 100 are in another order as text."""
    numbered = {str(index): index for index in (2, 10, 31, 100, 999)}
    for name in V2:
        write(tmp_path / f"imagenetv2-{name}", numbered)
    for name in FOUND:
        write(tmp_path / f"imagenetv2-{name}", {WNIDS[index]: index for index in numbered.values()})
    for name, classes in zip(NATURAL, (IMAGENET_A[:6], IMAGENET_R[-6:], (0, 500, 999), (0, 500, 999)), strict=True):
        write(tmp_path / name, {WNIDS[index]: index for index in classes})
    names = [*(f"imagenetv2-{name}" for name in (*V2, *FOUND)), *NATURAL, "imagenet-a_1000way", "imagenet-r_1000way"]
    assert top1_of(oracle_model(), names, tmp_path, monkeypatch) == [100.0] * len(names)
    part = "imagenetv2-matched-frequency-format-val_subsampled_class_1_8"  # of the five classes it has 31 alone
    (found,) = metrics_of(oracle_model(), [miniature(part, monkeypatch)], tmp_path, monkeypatch)
    assert (found["top1"].n, found["top1"].value) == (2, 100.0)


def test_exchanged_classes_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of five folders hold each other's photos."""
    write(tmp_path / "imagenetv2-top-images-format-val", {"2": 10, "10": 2, "31": 31, "100": 100, "999": 999})
    assert top1_of(oracle_model(), ["imagenetv2-top-images-format-val"], tmp_path, monkeypatch) == [60.0]


def test_the_mask_leaves_only_the_classes_of_the_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Photos that look like class 0, which ImageNet-A does not have: wrong among 1,000, and masked the first class."""
    assert 0 not in IMAGENET_A
    write(tmp_path / "imagenet-a", {WNIDS[IMAGENET_A[0]]: 0, WNIDS[IMAGENET_A[1]]: IMAGENET_A[1]})
    names = ["imagenet-a", "imagenet-a_1000way"]
    assert top1_of(oracle_model(), names, tmp_path, monkeypatch) == [100.0, 50.0]


@pytest.mark.parametrize("place", registry.dataset("imagenet-sketch").source.places)  # type: ignore[union-attr]
def test_it_is_found_in_any_of_its_places(place: str, tmp_path: Path) -> None:
    write(tmp_path / place, {WNIDS[7]: 7})
    assert load_samples(registry.dataset("imagenet-sketch"), "test", data_root=tmp_path).targets.tolist() == [7, 7]


def test_a_folder_named_after_no_class_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "imagenet-r", {WNIDS[1]: 1, "n99999999": 2})
    with pytest.raises(DataError, match="n99999999"):
        load_samples(registry.dataset("imagenet-r"), "test", data_root=tmp_path)
    write(tmp_path / "imagenetv2-topimages", {"1": 1, "1000": 2})
    with pytest.raises(DataError, match=r"from 1 to 1000, but label space imagenet-1k has the classes 0 to 999"):
        load_samples(registry.dataset("imagenetv2-topimages"), "test", data_root=tmp_path)


def test_other_classes_than_published_are_refused_before_anything_is_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder renamed to another wnid leaves the numbers of samples and of classes as they were."""
    write(tmp_path / "imagenet-a", {WNIDS[index]: index for index in IMAGENET_A})
    (tmp_path / "imagenet-a" / WNIDS[IMAGENET_A[3]]).rename(tmp_path / "imagenet-a" / WNIDS[0])
    with pytest.raises(DataError, match=f"1 too many: {WNIDS[0]}; 1 too few: {WNIDS[IMAGENET_A[3]]}"):
        top1_of(oracle_model(), ["imagenet-a_1000way"], tmp_path, monkeypatch)


@pytest.mark.parametrize("name", ["imagenet-sketch", "imagenetv2-topimages"])
def test_a_whole_set_that_lacks_a_class_names_it(name: str, tmp_path: Path) -> None:
    classes = {(WNIDS[index] if name == "imagenet-sketch" else str(index)): index for index in (0, 1, 3)}
    write(tmp_path / name, classes)
    source = registry.dataset(name).source
    assert source is not None
    samples = load_samples(registry.dataset(name), "test", data_root=tmp_path)
    difference = published_difference(samples, replace(source, classes=range(4)))
    assert difference is not None
    assert (difference.too_many, difference.too_few) == ((), (WNIDS[2],))


def test_what_is_missing_says_what_to_get_and_where_to_put_it_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load_samples(registry.dataset("imagenet-a"), "test", data_root=tmp_path)
    told = str(caught.value)
    assert "https://people.eecs.berkeley.edu/~hendrycks/imagenet-a.tar" in told
    assert f"Put it in {tmp_path / 'imagenet-a'}." in told
    assert "\n" not in told


def test_sizes_are_those_published() -> None:
    sizes = {name: registry.eval_setting(name).size for name in (*NATURAL, *(f"imagenetv2-{name}" for name in V2))}
    assert list(sizes.values()) == [7_500, 30_000, 50_889, 50_000, 10_000, 10_000, 10_000]
