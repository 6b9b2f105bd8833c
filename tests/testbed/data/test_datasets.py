from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import StandardDataset
from testbed.data.arrays import array_samples
from testbed.data.class_order import LABEL_SPACES
from testbed.data.datasets import check_size, load_samples, resolve_dataset, user_dataset
from testbed.errors import DataError, DefinitionError


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TESTBED_DATA", raising=False)
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def _folder(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((2, 2), 7, dtype=np.uint8)).save(root / name)
    return root


def _npz(path):
    np.savez(path, x=np.zeros((3, 2, 2), np.uint8), y=np.array([0, 1, 0]))
    return path


def _in_memory(split):
    x = np.zeros((2, 2, 2), np.uint8)
    return array_samples(x, np.array([0, 1]), dataset="made", split=split, class_names=("a", "b"))


def test_a_registered_name_is_that_data_set(data):
    made = Dataset(name="made", loader=_in_memory)
    _folder(data / "made", "x/1.png")
    assert resolve_dataset(StandardDataset(name="made"), {"made": made}, data) is made
    assert len(load_samples(made, "test")) == 2


def test_another_name_is_a_folder_or_npz_under_the_data_root(data):
    _folder(data / "photos", "cat/1.png", "dog/1.png")
    _npz(data / "points.npz")
    for name, size in (("photos", 2), ("points", 3)):
        dataset = resolve_dataset(StandardDataset(name=name), {}, data)
        assert dataset.name == name
        assert len(load_samples(dataset, "test", data_root=data)) == size


def test_the_data_root_is_testbed_data_or_data_here(data, monkeypatch):
    _folder(data / "photos", "cat/1.png", "dog/1.png")
    monkeypatch.chdir(data.parent)
    assert resolve_dataset(StandardDataset(name="photos"), {}).path == data / "photos"
    monkeypatch.chdir(data)
    monkeypatch.setenv("TESTBED_DATA", str(data))
    assert resolve_dataset(StandardDataset(path="photos"), {}).path == data / "photos"


def test_a_path_is_relative_to_the_data_root_or_absolute(data):
    folder = _folder(data / "my photos", "cat/1.png", "dog/1.png")
    relative = resolve_dataset(StandardDataset(path="my photos"), {}, data)
    assert relative == resolve_dataset(StandardDataset(path=folder), {}, Path("elsewhere"))
    assert (relative.name, relative.path) == ("my-photos", folder)


def test_data_sets_given_by_path_have_distinct_names_that_do_not_depend_on_the_place(data, tmp_path):
    for place in (data, tmp_path / "other"):
        for name in ("a/v1.0", "a/v1.1", "b/v1.0"):
            _folder(place / name, "cat/1.png", "dog/1.png")
        _npz(place / "points.npz")
        paths = ("a/v1.0", "a/v1.1", "b/../b/v1.0", "points.npz")
        names = [resolve_dataset(StandardDataset(path=path), {}, place).name for path in paths]
        assert names == ["a/v1.0", "a/v1.1", "b/v1.0", "points"]


def test_a_missing_data_set_says_where_it_was_looked_for_and_what_to_do(data):
    with pytest.raises(DataError) as caught:
        resolve_dataset(StandardDataset(name="digit"), {"digits": Dataset(name="digits", loader=_in_memory)}, data)
    for part in (str(data / "digit"), "Did you mean digits?", "--data-root", "TESTBED_DATA"):
        assert part in str(caught.value)
    with pytest.raises(DataError, match=r"nowhere does not exist.*--data-root"):
        resolve_dataset(StandardDataset(path="nowhere"), {}, data)


def test_a_registered_path_is_completed_where_the_data_lies(data):
    _folder(data / "pets", "train/a/1.png", "train/b/1.png", "val/a/1.png")
    pets = Dataset(name="pets", path=Path("pets"), canonical_size=8, label_space="pets")
    found = resolve_dataset(StandardDataset(name="pets"), {"pets": pets}, data)
    assert (found.splits, found.eval_split, found.fit_split) == (("train", "validation"), "validation", "train")
    assert (found.path, found.canonical_size, found.label_space) == (data / "pets", 8, "pets")


def test_the_label_space_is_told_by_the_names(data):
    names = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
    folder = _folder(data / "mine", *(f"{name}/1.png" for name in reversed(names)))
    dataset = user_dataset("mine", folder)
    assert dataset.label_space == "cifar10"
    assert load_samples(dataset, "test").class_names == names


def test_a_user_data_set_takes_its_options(data, monkeypatch):
    folder = _folder(data / "mine", *(f"{n}/1.png" for n in range(11)))
    with pytest.raises(DataError, match="--class-order"):
        user_dataset("mine", folder)
    monkeypatch.chdir(data)
    dataset = user_dataset("mine", "mine", class_order="numeric", color_mode="L", canonical_size=4)
    assert (dataset.path, dataset.canonical_size) == (folder, 4)
    samples = load_samples(dataset, "test")
    assert samples.color_mode == "L"
    assert dict(zip(samples.sample_ids, samples.targets.tolist(), strict=True))["10/1.png"] == 10


def test_a_data_set_without_its_evaluated_split_is_an_error(data):
    folder = _folder(data / "mine", "train/a/1.png", "train/b/1.png")
    with pytest.raises(DataError, match=r"evaluated on its split 'test', but .* has only train"):
        user_dataset("mine", folder)


def test_a_file_of_another_kind_is_an_error(data):
    (data / "mine.csv").write_text("1,2")
    with pytest.raises(DataError, match=r"neither a folder of images nor an \.npz file"):
        user_dataset("mine", data / "mine.csv")


def test_unknown_splits_and_empty_data_are_errors(data):
    made = Dataset(name="made", loader=_in_memory)
    with pytest.raises(DataError, match=r"no split 'train'\. Its splits: test"):
        load_samples(made, "train")
    np.savez(data / "none.npz", x=np.zeros((0, 2, 2), np.uint8), y=np.zeros(0, np.int64))
    with pytest.raises(DataError, match="has no samples"):
        load_samples(user_dataset("none", data / "none.npz"), "test")


def test_a_loader_is_given_the_data_root_if_it_asks_for_it(data, monkeypatch):
    def loader(split, data_root):
        asked.append(data_root)
        return _in_memory(split)

    asked = []
    made = Dataset(name="made", loader=loader)
    load_samples(made, "test", data_root=data)
    monkeypatch.setenv("TESTBED_DATA", str(data / "other"))
    load_samples(made, "test")
    assert asked == [data, data / "other"]


def test_a_loader_that_returns_something_else_is_an_error():
    with pytest.raises(DefinitionError, match="loader of data set 'made' returned int"):
        load_samples(Dataset(name="made", loader=lambda split: 3), "test")


IMAGES = np.zeros((3, 4, 4), np.uint8)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (([[1], [1, 2], [3]], [0, 1, 1]), "Each image must have one shape"),
        ((IMAGES, [0, [1, 2], 1]), "and one class"),
        ((IMAGES, [0, 1, 1], 3), "3 for the names of classes"),
        ((IMAGES, [0, 1, 2**61]), "Number the classes from 0"),
    ],
)
def test_a_loader_that_returns_what_makes_no_arrays_is_an_error(returned, message):
    with pytest.raises(DataError, match=rf"What the loader of data set 'made' \(test\) returned .*{message}"):
        load_samples(Dataset(name="made", loader=lambda split: returned), "test")


def test_a_loader_may_return_names_as_an_array():
    made = Dataset(name="made", loader=lambda split: (IMAGES, [0, 1, 1], np.array(["a", "b"])))
    assert load_samples(made, "test").class_names == ("a", "b")


def test_a_wrong_declared_size_says_both_numbers_and_the_remedy():
    check_size(setting="val", declared=None, found=3, where="data/val")
    check_size(setting="val", declared=3, found=3, where="data/val")
    with pytest.raises(DataError) as caught:
        check_size(setting="val", declared=50000, found=49997, where="data/val", definition="eval_settings/val.py")
    assert str(caught.value) == (
        "EvalSetting 'val' expects 50000 images but found 49997 under data/val. Check the extraction, "
        "or set size=49997 in eval_settings/val.py."
    )


def test_a_loader_may_return_arrays():
    images = np.arange(4 * 6, dtype=np.uint8).reshape(4, 2, 3)
    made = Dataset(name="made", loader=lambda split: (images, [0, 2, 1, 0]), splits=("train", "test"))
    samples = load_samples(made, "train")
    assert (samples.dataset, samples.split, samples.class_names) == ("made", "train", ("0", "1", "2"))
    assert samples.sample_ids == ("train/0", "train/1", "train/2", "train/3")
    np.testing.assert_array_equal(samples.items, images)
    named = Dataset(name="made", loader=lambda split: (images, np.zeros(4, int), ["cat", "dog"]))
    assert load_samples(named, "test").class_names == ("cat", "dog")
    known = Dataset(name="made", loader=lambda split: (images, np.zeros(4, int)), label_space="cifar10")
    assert load_samples(known, "test").class_names[9] == "truck"


@pytest.mark.parametrize("classes", [[0, 1], [0.0, 1, 2, 0], [[0], [1], [2], [0]], [-1, 0, 1, 2]])
def test_a_loader_whose_classes_are_no_indices_is_an_error(classes):
    made = Dataset(name="made", loader=lambda split: (np.zeros((4, 2, 3), np.uint8), classes))
    with pytest.raises(DataError, match="Each image must have one whole number"):
        load_samples(made, "test")


def _write_classes(root, names):
    for name in names:
        (root / name).mkdir(parents=True)
        Image.fromarray(np.zeros((2, 2), dtype=np.uint8)).save(root / name / "a.png")


def test_classes_that_few_samples_are_wanting_of_are_told(tmp_path):
    _write_classes(tmp_path / "set" / "train", ["blue", "green", "red"])
    _write_classes(tmp_path / "set" / "test", ["blu", "green", "red"])
    samples = load_samples(user_dataset("mine", tmp_path / "set"), "test")
    assert samples.notes == ("1 of 4 classes have no samples: blue.",)
    order = tmp_path / "classes.txt"
    order.write_text("red\ngreen\nblue\nblu\nblack\n")
    samples = load_samples(user_dataset("mine", tmp_path / "set", class_order=order), "test")
    assert samples.notes == ("2 of 5 classes have no samples: blue, black.",)


def test_a_renamed_class_of_a_known_label_space_is_told(tmp_path):
    cifar10 = LABEL_SPACES["cifar10"]
    _write_classes(tmp_path / "set", [*cifar10[:-1], "lorry"])
    (note,) = load_samples(user_dataset("mine", tmp_path / "set"), "test").notes
    assert "nearly those of cifar10 (1 too many: lorry; 1 too few: truck)" in note
    assert "--class-order" in note
