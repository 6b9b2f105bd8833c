import numpy as np
import pytest

from testbed.data.npz import npz_class_map, npz_samples, npz_splits
from testbed.errors import DataError

IMAGES = np.arange(4 * 5 * 6, dtype=np.uint8).reshape(4, 5, 6)
COLORS = np.arange(4 * 5 * 6 * 3, dtype=np.uint16).astype(np.uint8).reshape(4, 5, 6, 3)
LABELS = np.array([0, 1, 1, 0])


def _samples(tmp_path, split="test", order=None, label_space=None, **arrays):
    path = tmp_path / "set.npz"
    np.savez(path, **arrays)
    return npz_samples(path, split, dataset="mine", order=order, label_space=label_space)


def test_grey_images(tmp_path):
    samples = _samples(tmp_path, x=IMAGES, y=LABELS)
    np.testing.assert_array_equal(samples.items, IMAGES)
    assert samples.targets.tolist() == [0, 1, 1, 0]
    assert samples.sample_ids == ("test/0", "test/1", "test/2", "test/3")
    assert (samples.color_mode, samples.class_names) == ("L", ("0", "1"))


def test_channels_first_and_last_are_the_same_samples(tmp_path):
    last = _samples(tmp_path, x=COLORS, y=LABELS)
    first = _samples(tmp_path, x=np.moveaxis(COLORS, 3, 1), y=LABELS)
    np.testing.assert_array_equal(first.items, COLORS)
    assert first.fingerprint == last.fingerprint
    assert first.color_mode == "RGB"
    assert (
        _samples(tmp_path, x=IMAGES[:, None], y=LABELS).fingerprint
        == _samples(tmp_path, x=IMAGES, y=LABELS).fingerprint
    )


def test_rows_and_float_images(tmp_path):
    rows = np.array([[-3.5, 2.0], [0.25, 1e6]])
    samples = _samples(tmp_path, x=rows, y=np.array([0, 1]))
    np.testing.assert_array_equal(samples.items, rows)
    assert (samples.color_mode, samples.items.dtype) == (None, np.float64)
    assert _samples(tmp_path, x=IMAGES / 255.0, y=LABELS).items.max() <= 1


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((4, 3, 8, 3), np.uint8), r"\(4, 3, 8, 3\), which has two readings"),
        (np.zeros((4, 8, 8, 2), np.uint8), "neither 1 nor 3 channels"),
        (np.zeros((4, 8, 8), np.int64), "type int64.*Give uint8 images"),
        (np.zeros((4, 64), np.uint8), r"reshape images to \[n, H, W\]"),
        (np.zeros(4), r"samples of shape \(4,\)"),
        (np.full((4, 8, 8), 255.0), r"from 255 to 255. Give them in \[0, 1\]"),
        (np.array([[0.0], [1.0], [np.nan], [np.inf]]), "2 samples with NaN or infinite values, the first at index 2"),
        (np.zeros((3, 8, 8), np.uint8), "3 samples in x but 4 labels in y"),
    ],
)
def test_arrays_that_cannot_be_read_in_one_way_are_errors(tmp_path, x, message):
    with pytest.raises(DataError, match=message):
        _samples(tmp_path, x=x, y=LABELS)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array(["a", None, 3, 4], dtype=object), "is of objects, which are refused"),
        (np.array([0.0, 1.0, 1.0, 0.0]), "labels of type float64"),
        (np.eye(4, dtype=int), r"shape \(4, 4\)"),
    ],
)
def test_labels_that_are_no_integers_or_text_are_errors(tmp_path, y, message):
    with pytest.raises(DataError, match=message):
        _samples(tmp_path, x=IMAGES, y=y)


def test_integers_from_0_are_indices_also_with_gaps(tmp_path):
    samples = _samples(tmp_path, x=IMAGES, y=np.array([[0], [4], [1], [0]], dtype=np.uint8))
    assert samples.targets.tolist() == [0, 4, 1, 0]
    assert samples.class_names == ("0", "1", "2", "3", "4")


def test_other_integers_are_names_in_numeric_order(tmp_path):
    samples = _samples(tmp_path, x=IMAGES, y=np.array([10, 2, -1, 10]))
    assert samples.targets.tolist() == [2, 1, 0, 2]
    assert samples.class_names == ("-1", "2", "10")


def test_text_labels_are_names(tmp_path):
    samples = _samples(tmp_path, x=IMAGES, y=np.array(["dog", "cat", "dog", "ant"]))
    assert (samples.targets.tolist(), samples.class_names) == ([2, 1, 2, 0], ("ant", "cat", "dog"))
    in_space = _samples(tmp_path, x=IMAGES, y=np.array(["dog", "cat", "dog", "ship"]), label_space="cifar10")
    assert in_space.targets.tolist() == [5, 3, 5, 8]


def test_class_names_name_indices_and_order_text(tmp_path):
    names = np.array(["zebra", "cat", "dog"])
    assert _samples(tmp_path, x=IMAGES, y=LABELS, class_names=names).class_names == ("zebra", "cat", "dog")
    by_text = _samples(tmp_path, x=IMAGES, y=np.array(["dog", "zebra", "dog", "dog"]), class_names=names)
    assert by_text.targets.tolist() == [2, 0, 2, 2]
    with pytest.raises(DataError, match="up to 4 but 3 class_names"):
        _samples(tmp_path, x=IMAGES, y=np.array([0, 4, 1, 2]), class_names=names)


def test_ten_numbers_are_not_taken_for_digits_but_ten_names_are_recognised(tmp_path):
    path = tmp_path / "ten.npz"
    x, y = np.zeros((10, 4, 4), np.uint8), np.arange(10)
    np.savez(path, x=x, y=y)
    assert npz_class_map(path, order=None, label_space=None).label_space is None
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    np.savez(path, x=x, y=y, class_names=np.array(names))
    assert npz_class_map(path, order=None, label_space=None).label_space == "cifar10"


def test_splits_share_their_classes(tmp_path):
    arrays = {"x_train": IMAGES, "y_train": np.array(list("abca")), "x_val": IMAGES[:1], "y_val": np.array(["c"])}
    validation = _samples(tmp_path, split="validation", **arrays)
    assert (validation.targets.tolist(), validation.class_names) == ([2], ("a", "b", "c"))
    assert set(npz_splits(tmp_path / "set.npz")) == {"train", "validation"}
    with pytest.raises(DataError, match="no split 'test'"):
        _samples(tmp_path, split="test", **arrays)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": IMAGES}, r"lacks x, y; it has a\. Save with numpy.savez"),
        ({"x": IMAGES}, "lacks y; it has x"),
        ({"x": IMAGES, "y": LABELS, "x_test": IMAGES, "y_test": LABELS}, "both x and x_test"),
    ],
)
def test_missing_arrays_are_named(tmp_path, arrays, message):
    with pytest.raises(DataError, match=message):
        _samples(tmp_path, **arrays)


def test_damaged_files_are_errors_that_name_them(tmp_path):
    path = tmp_path / "set.npz"
    for content in (b"", b"<html>", b"PK\x03\x04 cut"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"Cannot read .*set\.npz"):
            npz_splits(path)
    np.save(tmp_path / "one.npy", IMAGES)
    (tmp_path / "one.npy").replace(path)
    with pytest.raises(DataError, match=r"as an \.npz of plain arrays .*numpy\.savez"):
        npz_splits(path)


def test_any_change_of_the_content_changes_the_fingerprint(tmp_path):
    base = {"x": IMAGES, "y": LABELS}
    changes = (
        {"x": IMAGES ^ (np.arange(IMAGES.size).reshape(IMAGES.shape) == 7).astype(np.uint8)},
        {"x": IMAGES.reshape(4, 6, 5)},
        {"x": IMAGES / np.float32(255)},
        {"y": 1 - LABELS},
        {"class_names": np.array(["a", "b"])},
    )
    prints = [_samples(tmp_path, **{**base, **change}).fingerprint for change in ({}, *changes)]
    assert len(set(prints)) == len(prints)
    assert _samples(tmp_path, **base).fingerprint == prints[0]
