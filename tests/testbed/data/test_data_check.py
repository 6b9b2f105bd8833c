"""Whether data lie on disk as they should: what is right is told in a line, and each fault in one of its own."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import db
import pytest
from tests.miniatures import write_class_image

from eval_settings._imagenet_classes import IMAGENET_A
from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from registry import registry
from testbed.data.class_order import label_space_names
from testbed.data.data_check import DataCheck, check_dataset, check_setting
from testbed.definitions import load_definitions
from testbed.errors import UnknownNameError

load_definitions()
WNIDS = label_space_names("imagenet-1k") or ()
ALL = [WNIDS[index] for index in IMAGENET_A]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def write_imagenet_a(root: Path) -> Path:
    """One photo of each of the 200 classes."""
    for wnid in ALL:
        write_class_image(root / "imagenet-a" / wnid / "a.jpg", WNIDS.index(wnid), size=8)
    return root / "imagenet-a"


def small(dataset: str, num_samples: int) -> Dataset:
    """The data set as if it were published with so many samples."""
    whole = registry.dataset(dataset)
    assert whole.source is not None
    return replace(whole, source=replace(whole.source, num_samples={"test": num_samples}))


def check(dataset: Dataset, root: Path) -> DataCheck:
    (found,) = check_dataset(dataset, data_root=root)
    return found


def test_what_is_right_is_told_with_its_place_and_counts(tmp_path: Path) -> None:
    folder = write_imagenet_a(tmp_path)
    found = check(small("imagenet-a", 200), tmp_path)
    assert (found.what, found.faults, found.place) == ("imagenet-a (test)", (), folder)
    assert (found.num_samples, found.num_classes) == (200, 200)


def test_another_content_has_another_mark(tmp_path: Path) -> None:
    write_imagenet_a(tmp_path)
    before = check(small("imagenet-a", 200), tmp_path).content
    write_class_image(tmp_path / "imagenet-a" / ALL[0] / "a.jpg", 5, size=8)
    assert check(small("imagenet-a", 200), tmp_path).content != before


def test_a_missing_class_is_named(tmp_path: Path) -> None:
    folder = write_imagenet_a(tmp_path)
    (folder / ALL[3] / "a.jpg").unlink()
    (folder / ALL[3]).rmdir()
    setting = replace(registry.eval_setting("imagenet-a"), size=200)
    assert check_setting(setting, data_root=tmp_path).faults == (
        f"199 samples of 199 classes, but there should be 200; there is none of {ALL[3]}",
    )
    assert check(small("imagenet-a", 200), tmp_path).faults == ("199 samples of 199 classes, but there should be 200",)
    (found,) = check_dataset(small("imagenet-a", 200), columns=setting.columns, data_root=tmp_path)
    assert found.faults == (f"199 samples of 199 classes, but there should be 200; there is none of {ALL[3]}",)


def test_files_that_are_no_images_are_named(tmp_path: Path) -> None:
    folder = write_imagenet_a(tmp_path)
    (folder / ALL[0] / "a.jpg").write_text("<html>404</html>")
    (folder / ALL[1] / "a.jpg").write_bytes(b"")
    (fault,) = check(small("imagenet-a", 200), tmp_path).faults
    assert fault == f"no images, by how they begin: {folder / ALL[0] / 'a.jpg'}, {folder / ALL[1] / 'a.jpg'}"


def test_a_folder_of_no_class_and_one_without_images_are_told(tmp_path: Path) -> None:
    folder = write_imagenet_a(tmp_path)
    (folder / "n00000000").mkdir()
    (fault,) = check(small("imagenet-a", 200), tmp_path).faults
    assert fault == f"{folder} has 1 folders that are named after no class of ImageNet: n00000000. Move them out."
    (folder / ALL[2]).rename(folder / "n00000001")
    (fault,) = check(small("imagenet-a", 200), tmp_path).faults
    assert f": n00000000, n00000001. There is none of {ALL[2]}." in fault
    (folder / "n00000001").rename(folder / ALL[2])
    (folder / "n00000000").rmdir()
    (folder / ALL[0] / "a.jpg").unlink()
    (folder / ALL[1] / "a.jpg").unlink()
    (fault,) = check(small("imagenet-a", 200), tmp_path).faults
    assert fault.startswith(f"2 class folder(s) of {folder} have no images")
    assert fault.endswith(f": {ALL[0]}, {ALL[1]}. Add what is missing, or remove them.")


def test_samples_outside_the_classes_that_a_setting_tells_apart_are_counted(tmp_path: Path) -> None:
    folder = write_imagenet_a(tmp_path)
    write_class_image(folder / WNIDS[0] / "a.jpg", 0)
    setting = replace(registry.eval_setting("imagenet-a"), size=201)
    assert check_setting(setting, data_root=tmp_path).faults == (
        "1 samples are of none of the 200 classes that it tells apart",
        f"its classes are not those that it is published with: 1 too many: {WNIDS[0]}",
    )


def test_a_folder_renamed_to_another_class_is_named_with_the_class_that_is_absent(tmp_path: Path) -> None:
    """The counts of samples and of classes are right."""
    folder = write_imagenet_a(tmp_path)
    (folder / ALL[3]).rename(folder / WNIDS[0])
    told = f"its classes are not those that it is published with: 1 too many: {WNIDS[0]}; 1 too few: {ALL[3]}"
    assert check(small("imagenet-a", 200), tmp_path).faults == (told,)
    (found, *_) = check_setting(
        replace(registry.eval_setting("imagenet-a_1000way"), size=200), data_root=tmp_path
    ).faults
    assert found == told


def test_files_that_look_like_images_and_are_not_read_are_counted_beside_what_is_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_imagenet_a(tmp_path / "data")
    for name in ("IMG_1.HEIC", "b.Cr2", "@eaDir/a.jpg/THUMB_S.jpg"):
        write_class_image(folder / ALL[0] / "b.jpg", 0, size=8)
        (folder / ALL[0] / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / ALL[0] / "b.jpg").rename(folder / ALL[0] / name)
    monkeypatch.setitem(registry._datasets.values, "imagenet-a", small("imagenet-a", 200))
    code, out = run(capsys, "imagenet-a")
    assert code == 0
    note, right = out.splitlines()
    assert "note: 3 file(s) that look like images are no samples: 1 .cr2, 1 .heic, 1 in @eaDir." in note
    assert "right: 200 samples of 200 classes" in right
    assert len(json.loads(run(capsys, "imagenet-a", "--json")[1])[0]["notes"]) == 1


def test_a_position_that_is_not_there_is_told(tmp_path: Path) -> None:
    write_imagenet_a(tmp_path)
    setting = EvalSetting(name="few", dataset=StandardDataset(name="imagenet-a"), idx_subsample_list=[0, 200])
    assert check_setting(setting, data_root=tmp_path).faults == (
        "it picks position 200, but there are only 200 samples",
    )


def test_a_file_of_another_checksum_is_told(tmp_path: Path) -> None:
    table = tmp_path / "openimages-test" / "test-annotations-human-imagelabels.csv"
    write_class_image(table.parent / "test" / "one.jpg", 0)
    table.write_text("ImageID,Source,LabelName,Confidence\none,verification,/m/066gdc,1\n")
    dataset = registry.dataset("openimages-test")
    assert dataset.source is not None
    dataset = replace(dataset, source=replace(dataset.source, sha256={table.name: "0" * 64}))
    (fault,) = check(dataset, tmp_path).faults
    assert fault == f"{table} is damaged or another file: its SHA-256 is not {'0' * 64}"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = db.main.main(["--check-data", *arguments], standalone_mode=False)
    return int(code or 0), capsys.readouterr().out


def test_the_command_tells_a_line_each_and_exits_with_1_where_something_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TESTBED_NO_DOWNLOAD", "1")
    code, out = run(capsys, "digits", "digits-mscr-linf")
    assert code == 0
    assert [line.split(": ")[:2] for line in out.splitlines()] == [
        ["digits (train)", "right"],
        ["digits (validation)", "right"],
        ["digits (test)", "right"],
        ["digits-mscr-linf", "right"],
    ]
    folder = write_imagenet_a(tmp_path / "data")
    code, out = run(capsys, "imagenet-a", "imagenet-r", "--json")
    found: list[dict[str, Any]] = json.loads(out)
    assert code == 1
    assert [bool(one["faults"]) for one in found] == [True, True]
    assert found[0]["place"] == str(folder)
    assert found[0]["faults"] == ["200 samples of 200 classes, but there should be 7,500"]
    assert "Put it in" in found[1]["faults"][0]
    shutil.rmtree(folder / ALL[7])
    assert f"; there is none of {ALL[7]}\n" in run(capsys, "imagenet-a")[1]


def test_a_split_that_a_setting_names_is_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "ytbb-robust")
    assert code == 1
    assert [line.split(": ")[:2] for line in out.splitlines()] == [
        ["ytbb-robust (anchors)", "wrong"],
        ["ytbb-robust (frames)", "wrong"],
    ]
    assert "See https://modestyachts.github.io/natural-perturbations-website." in out


def test_the_command_downloads_nothing_and_does_not_say_that_the_user_forbade_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TESTBED_NO_DOWNLOAD", "")
    code, out = run(capsys, "cifar10")
    assert code == 1
    assert "Nothing is downloaded for a look: get it from https://" in out
    assert "forbidden" not in out


def test_a_wrong_name_is_told_before_anything_is_looked_at(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.commands.data_check.check_dataset", lambda *_, **__: pytest.fail("it was looked at"))
    with pytest.raises(UnknownNameError, match="Did you mean"):
        run(capsys, "digits", "imagenet-aa")


def test_copies_of_too_few_photos_are_told(tmp_path: Path) -> None:
    name = f"{WNIDS[5]}/ILSVRC2012_val_00000001.JPEG"
    write_class_image(tmp_path / "imagenet/val" / name, 5)
    write_class_image(tmp_path / "ImageNet-C/fog/3" / name, 6)
    (fault,) = check_setting(registry.eval_setting("imagenet-c.fog.3_on-disk"), data_root=tmp_path).faults
    assert fault.startswith("1 samples of 1 classes, but there should be 50,000")


def test_a_folder_that_is_laid_out_otherwise_is_named(tmp_path: Path) -> None:
    write_class_image(tmp_path / "imagenet-a" / "test" / ALL[0] / "a.jpg", 6, size=8)
    (fault,) = check(small("imagenet-a", 1), tmp_path).faults
    assert f" {tmp_path / 'imagenet-a'} is there, but is not laid out so. " in fault


def test_a_split_that_no_setting_evaluates_may_be_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for wnid in WNIDS[:2]:
        write_class_image(tmp_path / "data" / "imagenet" / "val" / wnid / "a.jpg", 0)
    whole = registry.dataset("imagenet")
    assert whole.source is not None
    source = replace(whole.source, num_samples={"val": 2}, classes=range(2))
    monkeypatch.setitem(registry._datasets.values, "imagenet", replace(whole, source=source))
    code, out = run(capsys, "imagenet")
    assert code == 0
    assert [line.split(": ")[:2] for line in out.splitlines()] == [
        ["imagenet (train)", "not usable, but no setting evaluates it"],
        ["imagenet (val)", "right"],
    ]
