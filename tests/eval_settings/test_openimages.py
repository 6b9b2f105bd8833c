"""Open Images: photos with exactly one confirmed label of ImageNet's classes, told apart from 420."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.in_process import top1_of
from tests.miniatures import oracle_model, write_class_image

from eval_settings._openimages_classes import OPENIMAGES
from eval_settings.openimages import LABELS
from registry import registry
from testbed.data.datasets import load_samples
from testbed.definitions import load_definitions
from testbed.errors import DataError

load_definitions()
HEAD = "ImageID,Source,LabelName,Confidence\n"
TENCH, TOILET_TISSUE, PERSON = "/m/066gdc", "/m/09gtd", "/m/01g317"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))


def write(folder: Path, rows: list[tuple[str, str, int]], photos: dict[str, int]) -> None:
    """The table of labels, and a photo for each name that shows a class."""
    for name, index in photos.items():
        write_class_image(folder / "test" / f"{name}.jpg", index)
    table = HEAD + "".join(f"{image},verification,{label},{confidence}\n" for image, label, confidence in rows)
    (folder / LABELS).write_text(table)


ROWS = [
    ("one", TENCH, 1), ("one", PERSON, 1), ("one", TOILET_TISSUE, 0),  # one class is confirmed
    ("two", TENCH, 1), ("two", TOILET_TISSUE, 1),  # two are
    ("none", PERSON, 1), ("other", TOILET_TISSUE, 1),
]  # fmt: skip
PHOTOS = {"one": 0, "two": 0, "none": 5, "other": 999, "unlabelled": 3}


def test_a_photo_counts_where_one_of_the_classes_is_confirmed(tmp_path: Path) -> None:
    write(tmp_path / "openimages-test", ROWS, PHOTOS)
    samples = load_samples(registry.dataset("openimages-test"), "test", data_root=tmp_path)
    assert dict(zip(samples.sample_ids, samples.targets.tolist(), strict=True)) == {
        "test/one.jpg": 0,
        "test/other.jpg": 999,
    }


def test_one_photo_of_many_may_be_absent_and_not_more(tmp_path: Path) -> None:
    rows = [(f"p{number}", TENCH, 1) for number in range(100)]
    photos = {name: 0 for name, _, _ in rows[1:]}
    write(tmp_path / "openimages", rows, photos)
    assert len(load_samples(registry.dataset("openimages-test"), "test", data_root=tmp_path)) == 99
    (tmp_path / "openimages/test/p7.jpg").unlink()
    with pytest.raises(DataError, match=r"openimages lacks 2 of the 100 photos that .* such as p0\.jpg"):
        load_samples(registry.dataset("openimages-test"), "test", data_root=tmp_path)


def test_an_oracle_is_right_on_all_of_the_420_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"p{index}", label, 1) for label, index in OPENIMAGES.items()]
    write(tmp_path / "openimages", rows, {f"p{index}": index for index in OPENIMAGES.values()})
    assert top1_of(oracle_model(), ["openimages_test_ilsvrc_subset"], tmp_path, monkeypatch) == [100.0]


def test_each_class_has_one_label() -> None:
    assert len(OPENIMAGES) == len(set(OPENIMAGES.values())) == 420
    assert all(label.startswith("/m/") for label in OPENIMAGES)
    assert all(0 <= index < 1000 for index in OPENIMAGES.values())


def test_another_table_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "openimages", [], {"one": 0})
    (tmp_path / "openimages" / LABELS).write_text("image,label\none,tench\n")
    with pytest.raises(DataError, match="as a table with the columns ImageID, LabelName and Confidence"):
        load_samples(registry.dataset("openimages-test"), "test", data_root=tmp_path)
