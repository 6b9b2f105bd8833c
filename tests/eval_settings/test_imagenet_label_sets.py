"""ImageNet-ReaL and ImageNet-Hard: any of a photo's labels is right."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image
from tests.miniatures import class_pixels, write_class_image
from tests.oracle_runs import evaluated, oracles

from eval_settings.imagenet_real import real_labels
from registry import registry
from testbed.data.data_check import check_dataset
from testbed.data.datasets import load_samples
from testbed.definitions import load_definitions
from testbed.errors import DataError

load_definitions()
# the first photos of ILSVRC 2012, by number: the wnid of their folder
PHOTOS = {1: "n01751748", 2: "n09193705", 3: "n02105855", 4: "n04263257"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))


def write_photos(root: Path, seen: dict[int, int]) -> None:
    """The photos in the folders of their classes; each looks like the class that is `seen` in it."""
    for number, index in seen.items():
        write_class_image(root / f"imagenet/val/{PHOTOS[number]}/ILSVRC2012_val_{number:08d}.JPEG", index)


def write_hard(root: Path, rows: list[tuple[int, list[int]]], *, name: str = "00000-of-00001") -> None:
    """A file of the hub: rows of (class that the image looks like, labels), in groups of two."""
    import pyarrow
    from pyarrow import parquet

    encoded = []
    for index, _ in rows:
        stream = io.BytesIO()
        Image.fromarray(class_pixels(index, 40)).save(stream, "PNG")
        encoded.append({"bytes": stream.getvalue(), "path": None})
    table = pyarrow.table({"image": encoded, "label": [labels for _, labels in rows], "origin": ["r"] * len(rows)})
    path = root / f"imagenet-hard/data/validation-{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, path, row_group_size=2)


def test_the_labels_are_the_published_ones() -> None:
    labels = real_labels()
    assert len(labels) == 50_000
    assert sum(map(bool, labels)) == 46_837
    assert labels[:4] == [[], [970, 795], [230, 231], [809]]


def test_photos_without_labels_are_left_out_and_any_label_is_right(tmp_path: Path) -> None:
    """The second and the third photo show a class that ImageNet does not call them by."""
    write_photos(tmp_path, {1: 65, 2: 795, 3: 231, 4: 809})
    samples = load_samples(registry.dataset("imagenet-real"), "val", data_root=tmp_path)
    assert samples.label_sets == ((230, 231), (809,), (970, 795))
    assert samples.sample_ids[0] == "val/n02105855/ILSVRC2012_val_00000003.JPEG"
    found = evaluated(("imagenet-real", "val"), tmp_path, tmp_path / "home", oracles((795, 3)))
    assert found["oracle", "imagenet-real"]["top1"].value == 100
    assert found["exchanging", "imagenet-real"]["top1"].value == pytest.approx(200 / 3)
    assert found["oracle", "val"]["top1"].value == 50


def test_the_target_is_the_original_label_where_it_is_among_them(tmp_path: Path) -> None:
    write_class_image(tmp_path / "imagenet/val/n02106030/ILSVRC2012_val_00000003.JPEG", 231)  # of class 231
    samples = load_samples(registry.dataset("imagenet-real"), "val", data_root=tmp_path)
    assert samples.label_sets == ((231, 230),)


def test_labels_belong_to_file_names(tmp_path: Path) -> None:
    write_class_image(tmp_path / "imagenet/val/n01440764/photo.JPEG", 0)
    with pytest.raises(DataError, match=r"n01440764/photo\.JPEG is not named as a validation photo"):
        load_samples(registry.dataset("imagenet-real"), "val", data_root=tmp_path)


def test_hard_photos_are_read_from_several_files_in_groups(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    write_hard(tmp_path, [(5, [5]), (6, [7, 6]), (8, [8])], name="00000-of-00002")
    write_hard(tmp_path, [(9, [9, 10])], name="00001-of-00002")
    samples = load_samples(registry.dataset("imagenet-hard"), "validation", data_root=tmp_path)
    assert samples.sample_ids == tuple(f"validation/{position}" for position in range(4))
    assert samples.label_sets == ((5,), (7, 6), (8,), (9, 10))
    assert (samples.items[3] == class_pixels(9, 40)).all()
    found = evaluated(("imagenet-hard",), tmp_path, tmp_path / "home", oracles((6, 3)))
    assert found["oracle", "imagenet-hard"]["top1"].value == 100
    assert found["exchanging", "imagenet-hard"]["top1"].value == 75


def test_photos_that_lie_several_in_a_file_are_not_decoded_to_be_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    write_hard(tmp_path, [(5, [5])])
    monkeypatch.setattr("testbed.data.parquet.decode", lambda *_, **__: pytest.fail("it was decoded"))
    (found,) = check_dataset(registry.dataset("imagenet-hard"), data_root=tmp_path)
    assert found.faults == ("1 samples of 1 classes, but there should be 10,980",)


def test_what_is_no_such_file_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match=r"'imagenet-hard' is not under .*Get all files validation-\*\.parquet"):
        load_samples(registry.dataset("imagenet-hard"), "validation", data_root=tmp_path)
    path = tmp_path / "imagenet-hard/validation-0.parquet"
    path.parent.mkdir()
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"Cannot read .*validation-0\.parquet as a parquet file"):
        load_samples(registry.dataset("imagenet-hard"), "validation", data_root=tmp_path)
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"image": [b"", b""]}), path)
    with pytest.raises(DataError, match=r"validation-0\.parquet has no column label"):
        load_samples(registry.dataset("imagenet-hard"), "validation", data_root=tmp_path)
