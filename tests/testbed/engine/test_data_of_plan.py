"""The data of a plan: looked for once in a run, and what a model that is fitted needs of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model
from registry import Registry
from testbed.data import datasets
from testbed.engine import data as engine_data
from testbed.engine.data import Data
from testbed.errors import DataError

FITTED = Model(
    name="fitted", transform=None, classifier_loader=lambda dataset: None, eval_batch_size=2, label_space="toy"
)


def made(root: Path, store: Any = None) -> Data:
    return Data(store=store, data_root=root, cache_root=root / "cache", threads=1, warn=lambda line: None)


def test_a_data_set_is_looked_for_once_in_a_run_and_again_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = []
    completed = datasets._completed

    def counted(dataset: Dataset, root: Path) -> Dataset:
        looked.append(dataset.name)
        return completed(dataset, root)

    monkeypatch.setattr(datasets, "_completed", counted)
    images, classes = np.zeros((2, 4, 4), np.uint8), np.array([0, 1])
    np.savez(tmp_path / "toy.npz", x=images, y=classes)
    first = made(tmp_path)
    for _ in range(3):
        assert first.dataset(StandardDataset(name="toy")).fit_split is None
    assert looked == ["toy"]
    np.savez(tmp_path / "toy.npz", x_train=images, y_train=classes, x_test=images, y_test=classes)
    assert made(tmp_path).dataset(StandardDataset(name="toy")).fit_split == "train"


def test_what_a_loader_needs_for_a_model_that_is_fitted_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry()
    registry.add_dataset(Dataset(name="toy", loader=lambda split: None, splits=("test",)))
    monkeypatch.setattr(engine_data, "registry", registry)
    setting = EvalSetting(name="toy-setting", dataset=StandardDataset(name="toy"))
    with pytest.raises(DataError, match=r'splits=\("train", "test"\), fit_split="train"\) for a loader'):
        made(tmp_path).fit_facts(setting, FITTED)
