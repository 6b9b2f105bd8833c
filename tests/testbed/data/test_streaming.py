"""Without banks on disk: the same fingerprints and bytes, in any process, and nothing kept."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.published import write_jpegs

from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model, StandardTransform
from registry import Registry
from testbed.data import pipelines
from testbed.data.pipelines import recipe_pipeline
from testbed.engine import data as engine_data
from testbed.engine.data import Data
from testbed.errors import DataError
from testbed.store.store import Store

PLACES = tuple(f"{kind}/{index}.jpg" for kind in ("cat", "dog") for index in range(4))


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))
    write_jpegs(tmp_path / "photos", PLACES, size=20)
    recipe_pipeline.cache_clear()
    return tmp_path


@pytest.fixture
def data(root):
    """Makes the data of a plan, with banks or without."""
    with Store.open(root / "store.sqlite") as store:

        def make(**options):
            return Data(
                store=store, data_root=root, cache_root=root / "cache", threads=2, warn=lambda line: None, **options
            )

        yield make


@pytest.fixture
def names(monkeypatch):
    """A setting and a model in the registry, of functions that no process can be sent."""
    setting = EvalSetting(
        name="streamed-photos",
        dataset=StandardDataset(name="photos"),
        size=None,
        transform=lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        version="1",
    )
    model = Model(
        name="streamed-model",
        transform=StandardTransform(18, 16),
        classifier_loader=lambda: None,
        eval_batch_size=2,
        label_space="photos",
    )
    registry = Registry()
    registry.add_eval_setting(setting)
    registry.add_model(model)
    for module in (pipelines, engine_data):
        monkeypatch.setattr(module, "registry", registry)
    return setting, model


def test_the_same_bytes_under_the_same_fingerprint_and_nothing_on_disk(data, names, root):
    streamed = data(uses_bank=False).bank(*names)
    array = pickle.loads(pickle.dumps(streamed)).open()
    assert not (root / "cache").exists()
    kept = data().bank(*names)
    assert (streamed.fingerprint, streamed.shape, streamed.dtype) == (kept.fingerprint, kept.shape, kept.dtype)
    assert (kept.is_complete(), streamed.is_complete()) == (True, False)
    for indices in (slice(0, 8), slice(3, 5), np.array([7, 0, 3]), np.array([], np.int64)):
        found, expected = array[indices], kept.open()[indices]
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_a_damaged_sample_of_a_bank_is_decoded_again_in_any_process(data, names):
    bank = pickle.loads(pickle.dumps(data().bank(*names)))
    expected = np.array(bank.open()[:])
    content = bytearray(Path(bank.path).read_bytes())
    content[-1] ^= 1
    Path(bank.path).write_bytes(content)
    np.testing.assert_array_equal(bank.open()[:], expected)
    np.testing.assert_array_equal(np.load(bank.path), expected)


def test_a_bank_that_was_loaded_for_a_separation_can_be_decoded_again_in_any_process(data, root, names):
    setting, model = replace(names[0], transform=None), replace(names[1], transform=None)
    plan = data()
    plan.points(plan.dataset(setting.dataset), plan.setting_samples(setting))
    assert plan.bank(setting, model).pipeline().samples.dataset == "photos"


def test_a_damaged_file_is_named_with_its_index_when_it_is_asked_for(data, names, root):
    (root / "photos" / PLACES[5]).write_bytes(b"")
    array = data(uses_bank=False).bank(*names).open()
    assert array[np.array([4])].shape == (1, 3, 16, 16)
    with pytest.raises(DataError, match=r"Index 5 of data set 'photos': .*1\.jpg: the file is empty"):
        array[np.array([4, 5])]


def test_samples_that_changed_since_the_plan_are_refused(data, names, root):
    bank = data(uses_bank=False).bank(*names)
    (root / "photos" / PLACES[5]).unlink()
    recipe_pipeline.cache_clear()
    with pytest.raises(DataError, match="changed during the run"):
        bank.open()


def test_a_separation_is_searched_over_the_same_points(data, root):
    dataset = data().dataset(StandardDataset(name="photos"))
    without = data(uses_bank=False)
    points = without.points(dataset, without.samples(dataset, "test"))
    assert not (root / "cache").exists()
    kept = data()
    np.testing.assert_array_equal(points, kept.points(dataset, kept.samples(dataset, "test")))
    assert [path.suffix for path in Path(root / "cache" / "bank").glob("*.npy")] == [".npy"]
