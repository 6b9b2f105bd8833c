"""Parts of ImageNet's validation photos: which classes, which photos, and never one twice."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.in_process import metrics_of, miniature, top1_of
from tests.miniatures import oracle_model, write_class_image

from eval_settings._subsets import OfClasses, OfEachClass, OneOf, random_classes
from eval_settings.eval_setting_base import EvalSetting
from eval_settings.val_subsets import CLASS_SETS
from registry import registry
from testbed.class_subset import columns_of
from testbed.data.class_order import label_space_names
from testbed.definitions import load_definitions
from testbed.errors import DataError
from testbed.records import Samples

load_definitions()
WNIDS = label_space_names("imagenet-1k") or ()
CLASS_SETTINGS = tuple(f"val{ending}" for ending, _, _ in CLASS_SETS)
IID = tuple(f"val_subsampled_iid_1_{parts}" for parts in (2, 4, 8, 16, 32))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))


def whole(per_class: int = 50, num_classes: int = 1000) -> Samples:
    """As many samples as ImageNet's val has, in its order."""
    targets = np.repeat(np.arange(num_classes, dtype=np.int32), per_class)
    return Samples(dataset="imagenet", split="val", items=np.zeros((len(targets), 1, 1), np.uint8), targets=targets,
                   sample_ids=tuple(map(str, range(len(targets)))), class_names=WNIDS[:num_classes],
                   fingerprint="", color_mode="L")  # fmt: skip


def picked(setting: EvalSetting, samples: Samples) -> np.ndarray:
    assert callable(setting.idx_subsample_list)
    return np.asarray(setting.idx_subsample_list(samples))


@pytest.mark.parametrize("name", [*CLASS_SETTINGS, *IID, "imagenet-c.fog.3_in-memory_10percent"])
def test_of_the_whole_set_it_picks_as_many_as_it_declares_and_none_twice(name: str) -> None:
    setting = registry.eval_setting(name)
    positions = picked(setting, whole())
    assert len(positions) == setting.size
    assert (np.diff(positions) > 0).all()
    assert np.array_equal(positions, picked(setting, whole())), "the same in any run"


def test_the_sizes_are_those_of_the_imagenet_testbed() -> None:
    sizes = {name: registry.eval_setting(name).size for name in CLASS_SETTINGS}
    known = {
        "imagenet-a": 10_000,
        "imagenet-r": 10_000,
        "objectnet": 6_250,
        "vid-robust": 14_400,
        "ytbb-robust": 11_550,
    }
    assert {name: sizes[f"val-on-{name}-classes"] for name in known} == known
    assert sizes["val_subsampled_class_1_8"] == 6_250


def test_an_oracle_is_right_on_each_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A photo of each of the 1,000 classes: which of them are in a part follows from the data, not from positions."""
    for index, wnid in enumerate(WNIDS):
        write_class_image(tmp_path / "imagenet" / "val" / wnid / "a.png", index, size=8)
    names = [miniature(name, monkeypatch) for name in (*CLASS_SETTINGS, *IID)]
    found = metrics_of(oracle_model(), names, tmp_path, monkeypatch)
    assert [metrics["top1"].value for metrics in found] == [100.0] * len(names)
    counted = [len(columns_of(classes)) for _, classes, _ in CLASS_SETS]
    assert [metrics["top1"].n for metrics in found] == [*counted, 500, 250, 125, 62, 31]


def test_exchanged_classes_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two breeds of dog are exchanged: wrong where breeds are told apart, right where all are one kind."""
    for folder, shown in {151: 152, 152: 151, 207: 207, 404: 404}.items():
        write_class_image(tmp_path / "imagenet" / "val" / WNIDS[folder] / "a.png", shown)
    names = ["val-on-vid-robust-classes", "val_subsampled_iid_1_2"]
    monkeypatch.setattr(OneOf, "__call__", lambda rule, samples: np.arange(len(samples)))
    assert top1_of(oracle_model(), names, tmp_path, monkeypatch) == [100.0, 50.0]


def test_an_incomplete_set_is_refused_by_the_number_that_is_picked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_class_image(tmp_path / "imagenet" / "val" / WNIDS[6] / "a.png", 6)
    with pytest.raises(DataError, match="'val-on-imagenet-a-classes' expects 10000 images but found 1"):
        metrics_of(oracle_model(), ["val-on-imagenet-a-classes"], tmp_path, monkeypatch)


def test_rules_by_hand() -> None:
    samples = whole(per_class=3, num_classes=4)
    assert OfClasses((2, 0))(samples).tolist() == [0, 1, 2, 6, 7, 8]
    each = OfEachClass(2)(samples)
    assert samples.targets[each].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert OfEachClass(5)(samples).tolist() == list(range(12)), "all where a class has no more"
    parts = [set(OneOf(parts)(samples).tolist()) for parts in (1, 2, 4, 12)]
    assert [len(part) for part in parts] == [12, 6, 3, 1]
    assert all(finer < coarser for coarser, finer in pairwise(parts))


def test_random_classes_are_nested_and_no_first_ones() -> None:
    halves, eighths = (random_classes(1000, 1000 // parts, label_space="imagenet-1k") for parts in (2, 8))
    assert set(eighths) < set(halves)
    assert len(set(halves)) == 500
    assert max(eighths) > 900


def test_a_tenth_is_of_the_same_shift_in_another_family_and_the_whole_stands_for_it() -> None:
    for name in ("imagenet-c.fog.3_in-memory", "imagenet-c.fog.3_on-disk", "pgd.linf.eps2"):
        tenth, whole = registry.eval_setting(f"{name}_10percent"), registry.eval_setting(name)
        assert tenth.parent_eval_setting == name
        assert tenth.perturbation_fn_gpu == whole.perturbation_fn_gpu
        assert tenth.shift is not None
        assert whole.shift is not None
        assert (tenth.shift.name, tenth.shift.clean_eval_setting) == (whole.shift.name, "val")
        assert tenth.shift.family == f"{whole.shift.family}-10percent"
    listed = [name for name in registry.eval_setting_names() if name.endswith("_10percent")]
    assert len(listed) > 95 + 95
    assert "val_10percent" not in listed


def test_greyscale_is_val_without_colour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three classes only the one whose colour is grey already is told."""
    for index in (111, 222, 123):
        write_class_image(tmp_path / "imagenet" / "val" / WNIDS[index] / "a.png", index)
    values = top1_of(oracle_model(), ["val", "greyscale"], tmp_path, monkeypatch)
    assert values == [100.0, pytest.approx(200 / 3)]
