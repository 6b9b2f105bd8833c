import os

import numpy as np
import pytest
from PIL import Image

from testbed.data.imagefolder import folder_layout, folder_samples
from testbed.errors import DataError


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))
    (tmp_path / "set").mkdir()
    return tmp_path / "set"


def _add(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((2, 2), len(name), dtype=np.uint8)).save(root / name, "PNG")


def _samples(root, split="test", order=None, color_mode="RGB"):
    layout = folder_layout(root)
    return folder_samples(layout, split, dataset="mine", order=order, label_space=None, color_mode=color_mode)


def test_ids_are_sorted_relative_paths_of_images_only(root):
    _add(root, "dog/b.PNG", "dog/deep/er/a.jpg", "cat/z.png", ".hidden/x.png", "cat/.x.png", "loose.png")
    (root / "cat" / "readme.txt").write_text("no image")
    samples = _samples(root)
    assert samples.sample_ids == ("cat/z.png", "dog/b.PNG", "dog/deep/er/a.jpg")
    assert samples.targets.tolist() == [0, 1, 1]
    assert samples.class_names == ("cat", "dog")
    assert samples.items[0] == root / "cat" / "z.png"


def test_thumbnails_and_hidden_files_are_no_samples_and_are_counted(root):
    _add(root, "cat/z.png", "cat/._z.png", "cat/@eaDir/z.png/SYNOPHOTO_THUMB_S.jpg", "cat/@eaDir/z.png/THUMB_M.jpg")
    _add(
        root,
        "dog/a.png",
        "dog/.thumbnails/a.png",
        "dog/.AppleDouble/a.png",
        "#recycle/old/b.png",
        "__MACOSX/cat/._z.png",
    )
    samples = _samples(root)
    assert (samples.sample_ids, samples.class_names) == (("cat/z.png", "dog/a.png"), ("cat", "dog"))
    (note,) = samples.notes
    assert note == (
        "7 file(s) that look like images are no samples: 1 hidden, 1 in #recycle, 1 in .AppleDouble, 1 in .thumbnails, "
        "2 in @eaDir, 1 in __MACOSX."
    )


def test_formats_that_are_not_read_and_loose_images_are_counted(root):
    _add(root, "cat/z.png", "cat/IMG.HEIC", "cat/deep/a.dng", "cat/deep/b.DNG", "loose.jpg", "loose.heif")
    (root / "cat" / "notes.txt").write_text("no image")
    samples = _samples(root)
    assert samples.sample_ids == ("cat/z.png",)
    (note,) = samples.notes
    assert note.startswith(
        "5 file(s) that look like images are no samples: 2 .dng, 1 .heic, 2 beside the class folders."
    )
    assert "Convert" in note


def test_a_class_of_nothing_but_formats_that_are_not_read_says_so(root):
    _add(root, "cat/z.png", "dog/a.heic")
    with pytest.raises(DataError, match=r"1 class folder.*: dog\. .*1 \.heic"):
        _samples(root)


def test_what_is_no_sample_leaves_the_fingerprint_as_it_was(root):
    _add(root, "cat/z.png", "dog/a.png")
    before = _samples(root)
    assert before.notes == ()
    _add(root, "cat/@eaDir/z.png/T.jpg", "dog/b.heic", "lost+found/a.png")
    assert _samples(root).fingerprint == before.fingerprint


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser reads every folder")
def test_a_folder_of_the_system_need_not_be_readable(root):
    _add(root, "cat/z.png", "lost+found/a.png")
    (root / "lost+found").chmod(0)
    assert len(_samples(root)) == 1


def test_folders_named_after_splits_are_splits(root):
    _add(root, "train/a/1.png", "train/b/1.png", "train/c/1.png", "val/b/1.png", "Test/c/1.png")
    layout = folder_layout(root)
    assert set(layout.splits) == {"train", "validation", "test"}
    test = _samples(root)
    assert test.sample_ids == ("Test/c/1.png",)
    assert (test.targets.tolist(), test.class_names) == ([2], ("a", "b", "c"))  # classes of all splits together


def test_a_class_may_be_named_like_a_split(root):
    _add(root, "train/1.png", "car/1.png")
    assert folder_layout(root).class_folders == ("car", "train")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("1.png", "2.png"), "set has no class folders. Arrange it as ROOT/CLASS/image.png"),
        (("val/1.png", "val/2.png"), "val has no class folders"),
        (("train/a/1.png", "test/1.png"), "test has no class folders"),
        (("train/a/1.png", "test/a/1.png", "extra/1.png"), r"mixes folders of splits \(.*\) with others \(extra\)"),
        (("val/a/1.png", "validation/a/1.png"), "two folders for one split"),
    ],
)
def test_other_arrangements_are_errors_that_say_how_to_arrange(root, names, message):
    _add(root, *names)
    with pytest.raises(DataError, match=message):
        folder_layout(root)


def test_an_empty_class_folder_is_an_error_unless_a_class_order_file_names_it(root, tmp_path):
    _add(root, "a/1.png")
    (root / "b").mkdir()
    with pytest.raises(DataError, match=r"1 class folder.*set have no images .*: b\..* in a --class-order file"):
        _samples(root)
    order = tmp_path / "classes.txt"
    order.write_text("b\na\n")
    samples = _samples(root, order=order)
    assert (samples.targets.tolist(), samples.class_names) == ([1], ("b", "a"))


def test_all_empty_class_folders_are_told_together_and_a_known_label_space_needs_no_class_order(root):
    _add(root, "0/1.png")
    for name in "123456789":
        (root / name).mkdir()
    with pytest.raises(DataError, match=r"9 class folder\(s\) .*: 1, 2, 3, 4, 5 and 4 more\. Add what") as raised:
        _samples(root)
    assert "class-order" not in str(raised.value)


def test_the_fingerprint_follows_content_classes_and_colors_but_not_place_or_time(root, tmp_path):
    _add(root, "a/1.png", "b/1.png")
    first = _samples(root).fingerprint
    os.utime(root / "a" / "1.png", ns=(0, 0))
    assert _samples(root).fingerprint == first
    order = tmp_path / "classes.txt"
    order.write_text("b\na\n")
    changed = {_samples(root, order=order).fingerprint, _samples(root, color_mode="L").fingerprint}
    order.write_text("a\nb\nc\n")  # the same targets among more classes
    changed.add(_samples(root, order=order).fingerprint)
    root.rename(tmp_path / "moved")
    moved = tmp_path / "moved"
    assert _samples(moved).fingerprint == first
    Image.new("L", (2, 2), 99).save(moved / "a" / "1.png")
    changed.add(_samples(moved).fingerprint)
    (moved / "a" / "1.png").rename(moved / "a" / "2.png")
    changed.add(_samples(moved).fingerprint)
    assert len(changed | {first}) == 6


@pytest.mark.skipif(os.name == "nt", reason="Windows file names are Unicode")
def test_a_file_name_that_is_not_unicode_is_an_error(root):
    _add(root, "a/1.png")
    try:
        (root / "a" / "1.png").rename(os.fsdecode(os.fsencode(root / "a") + b"/\xff.png"))
    except OSError:
        pytest.skip("the file system takes Unicode names only")
    with pytest.raises(DataError, match="not valid Unicode"):
        _samples(root)
