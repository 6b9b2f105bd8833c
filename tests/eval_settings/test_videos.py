"""ImageNet-Vid-Robust and YTBB-Robust in the published layout: frames, offsets, label sets, groups of columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.miniatures import write_class_image
from tests.oracle_runs import evaluated, oracles
from tests.published import write

from eval_settings._video_classes import VID_GROUPS, VID_NAMES, YTBB_COLUMNS, YTBB_GROUPS, YTBB_NAMES
from registry import registry
from testbed.data.datasets import load_samples
from testbed.definitions import load_definitions
from testbed.errors import DataError
from testbed.records import Samples

load_definitions()
VID = "imagenet_vid_ytbb_robust/imagenet-vid-robust"
YTBB = "imagenet_vid_ytbb_robust/ytbb-robust"
BIRD, DOG, ZEBRA, COW = (YTBB_NAMES.index(name) for name in ("bird", "dog", "zebra", "cow"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))


def load(name: str, split: str, root: Path) -> Samples:
    return load_samples(registry.dataset(name), split, data_root=root)


def write_vid(root: Path) -> None:
    """Two anchors, of a bird and of a dog; a frame beside the dog shows a zebra too."""
    labels: dict[str, list[int]] = {}
    frames = {
        "a/000003": (90, [4]), "a/000001": (130, [4]), "a/000013": (7, [4]),
        "b/000050": (200, [8]), "b/000049": (340, [8, 29]),
    }  # fmt: skip
    for frame, (column, right) in frames.items():
        write_class_image(root / VID / f"val/{frame}.JPEG", column)
        labels[f"val/{frame}.JPEG"] = right
    pmsets = {
        "val/b/000050.JPEG": ["val/b/000049.JPEG"],
        "val/a/000003.JPEG": ["val/a/000013.JPEG", "val/a/000001.JPEG"],
    }
    write_json(root / VID / "metadata/labels.json", labels)
    write_json(root / VID / "metadata/pmsets.json", pmsets)


def write_ytbb(root: Path) -> None:
    """Three anchors: a bird; a dog with a zebra, which the reviewers added; a cow, which ImageNet has not.

    Of the frames around the bird one is alike, one is not and one is blurred; a fourth anchor is no good.
    """
    anchors = {"b_1/frame-20": ["good"], "d_2/frame-8": ["good", "zebra"], "c_3/frame-5": ["good"],
               "x_4/frame-5": ["good"], "y_5/frame-5": ["good", "unsure"]}  # fmt: skip
    around = {
        "b_1/frame-20,b_1/frame-11": ["similar"], "b_1/frame-20,b_1/frame-21": ["dissimilar"],
        "b_1/frame-20,b_1/frame-22": ["similar", "blur-increase"], "d_2/frame-8,d_2/frame-9": ["similar"],
        "x_4/frame-5,x_4/frame-6": ["similar", "bad-anchor"], "b_1/frame-20,b_1/frame-31": ["similar"],
    }  # fmt: skip
    words = ["good", "unsure", "similar", "dissimilar", "blur-increase", "bad-anchor", "zebra"]
    for name, said in (("anchor_labels.json", anchors), ("pmk_labels.json", around)):
        rows = [{"key": ",".join(f"{part}.jpg" for part in key.split(",")), "notes": "",
                 "labels": [words.index(word) for word in of_key]} for key, of_key in said.items()]  # fmt: skip
        write_json(root / YTBB / "metadata" / name, {"annotations": rows, "labels": words})
    first = f"ytid,time_ms,label\nb,1,{BIRD}\nd,2,{DOG}\nc,3,{COW}\nx,4,{BIRD}\ny,5,{BIRD}\n"
    write(root / YTBB / "metadata/ytbb_robustness_test_anchors_full.csv", first.encode())
    for frame, column in {"b_1/frame-20": 15, "b_1/frame-11": 81, "d_2/frame-8": 160, "d_2/frame-9": 340,
                          "c_3/frame-5": 345}.items():  # fmt: skip
        write_class_image(root / YTBB / "ytbb_videos" / f"{frame}.jpg", column)


def write_json(path: Path, content: Any) -> None:
    write(path, json.dumps(content).encode())


def test_the_classes_are_as_many_as_published_and_share_no_column() -> None:
    assert (len(VID_NAMES), sum(map(len, VID_GROUPS))) == (30, 288)  # val-on-vid-robust-classes has 288 x 50 photos
    assert (len(YTBB_NAMES), len(YTBB_GROUPS), sum(map(len, YTBB_GROUPS))) == (24, 19, 231)
    for groups in (VID_GROUPS, YTBB_GROUPS):
        columns = [column for group in groups for column in group]
        assert len(set(columns)) == len(columns)
        assert all(list(group) == sorted(group) for group in groups)


def test_frames_are_named_by_anchor_and_offset_and_have_all_their_classes(tmp_path: Path) -> None:
    write_vid(tmp_path)
    frames, anchors = (load("imagenet-vid-robust", split, tmp_path) for split in ("frames", "anchors"))
    assert frames.sample_ids == (
        "val/a/000003.JPEG#-2", "val/a/000003.JPEG#+0", "val/a/000003.JPEG#+10", "val/b/000050.JPEG#-1",
        "val/b/000050.JPEG#+0",
    )  # fmt: skip
    assert frames.items[0] == tmp_path / VID / "val/a/000001.JPEG"
    assert frames.label_sets == ((4,), (4,), (4,), (8, 29), (8,))
    assert anchors.sample_ids == ("val/a/000003.JPEG#+0", "val/b/000050.JPEG#+0")
    assert anchors.label_sets is None
    assert anchors.targets.tolist() == [4, 8]


def test_an_oracle_has_every_anchor_right_and_one_that_exchanges_classes_has_not(tmp_path: Path) -> None:
    write_vid(tmp_path)
    write_ytbb(tmp_path)
    models = oracles((90, 200))  # a bird for a dog: column 90 of the birds is among the frames, and so is 200
    names = ("imagenet-vid-robust_pm0", "imagenet-vid-robust_pm10", "ytbb-robust_pm0", "ytbb-robust_pm10")
    found = evaluated(names, tmp_path, tmp_path / "home", models)
    vid, ytbb = names[:2], names[2:]
    assert found["oracle", vid[0]]["top1"].value == 100
    assert {name: found["oracle", vid[1]][name].value for name in ("top1", "pm0", "pm10")} == {
        "top1": 100, "pm0": 100, "pm10": 100,
    }  # fmt: skip
    assert found["exchanging", vid[0]]["top1"].value == 0
    assert found["exchanging", vid[1]]["pm10"].value == 0
    assert found["exchanging", vid[1]]["top1"].value == 60  # of the five frames, the two anchors are wrong
    # a cow is right for nobody; the frame beside the dog shows the zebra that the reviewers added
    assert found["oracle", ytbb[0]]["top1"].value == pytest.approx(100 * 2 / 3)
    assert found["oracle", ytbb[1]]["pm10"].value == pytest.approx(100 * 2 / 3)
    assert found["oracle", ytbb[1]]["pm10"].n == 3


def test_reviewed_anchors_have_the_frames_that_are_alike_within_reach(tmp_path: Path) -> None:
    write_ytbb(tmp_path)
    frames = load("ytbb-robust", "frames", tmp_path)
    assert frames.sample_ids == (
        "b_1/frame-20.jpg#-9", "b_1/frame-20.jpg#+0", "c_3/frame-5.jpg#+0", "d_2/frame-8.jpg#+0", "d_2/frame-8.jpg#+1",
    )  # fmt: skip
    dog = (YTBB_COLUMNS[DOG][0], YTBB_COLUMNS[ZEBRA][0])
    assert frames.label_sets == ((7,), (7,), (1_000,), dog, dog)
    assert frames.class_names[1_000:] == ("cow", "giraffe", "skateboard", "toilet", "none")


def test_the_first_labels_of_car_and_none_are_the_other_way_round(tmp_path: Path) -> None:
    write_ytbb(tmp_path)
    path = tmp_path / YTBB / "metadata/ytbb_robustness_test_anchors_full.csv"
    path.write_text(path.read_text().replace(f"c,3,{COW}", "c,3,22"))
    assert YTBB_NAMES[23] == "car"
    assert load("ytbb-robust", "anchors", tmp_path).targets[1] == YTBB_COLUMNS[23][0]


@pytest.mark.parametrize(("file", "old", "new", "message"), [
    ("metadata/labels.json", '"val/b/000049.JPEG": [8, 29]', '"val/b/000049.JPEG": [30]', r"\[30\] for val/b/000049"),
    ("metadata/labels.json", '"val/b/000049.JPEG": [8, 29]', '"other": [3]', r"has None for val/b/000049\.JPEG"),
    ("metadata/pmsets.json", "val/a/000013.JPEG", "val/a/000014.JPEG", r"a/000014\.JPEG around .*within 10 frames"),
    ("metadata/pmsets.json", "val/a/000013.JPEG", "val/b/000004.JPEG", r"b/000004\.JPEG around .*within 10 frames"),
    ("metadata/pmsets.json", "{", "[", r"pmsets\.json as JSON"),
])  # fmt: skip
def test_metadata_that_do_not_fit_together_are_refused(
    tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    write_vid(tmp_path)
    path = tmp_path / VID / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DataError, match=message):
        load("imagenet-vid-robust", "frames", tmp_path)


def test_what_is_missing_is_told_with_what_to_get(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'imagenet-vid-robust' is not under .*Get imagenet_vid_ytbb_robust\.tar\.gz"):
        load("imagenet-vid-robust", "anchors", tmp_path)
    (tmp_path / YTBB / "ytbb_videos").mkdir(parents=True)
    with pytest.raises(DataError, match=r"ytbb-robust lacks metadata/anchor_labels\.json, metadata/pmk_labels\.json"):
        load("ytbb-robust", "anchors", tmp_path)
