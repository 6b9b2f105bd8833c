"""CIFAR-10.1 and CIFAR-10.2 in their published files."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.corrupted_copies import save
from tests.miniatures import class_pixels
from tests.oracle_runs import evaluated, oracles

from registry import registry
from testbed.data.datasets import load_samples
from testbed.definitions import load_definitions
from testbed.errors import DataError
from testbed.records import Samples

load_definitions()
LABELS = [3, 3, 9, 0]
IMAGES = np.stack([class_pixels(label) for label in LABELS])
FOLDER = "CIFAR-10.2"


def load(name: str, root: Path, split: str = "test") -> Samples:
    return load_samples(registry.dataset(name), split, data_root=root)


def write_pair(root: Path, version: str) -> None:
    save(root / "CIFAR-10.1" / f"cifar10.1_{version}_data.npy", IMAGES)
    save(root / "CIFAR-10.1" / f"cifar10.1_{version}_labels.npy", np.array(LABELS, np.int32))


def write_dictionary(root: Path, split: str, *, is_pickled: bool, **changes: Any) -> Path:
    """A file of CIFAR-10.2 with all the entries that the published one has."""
    path = root / FOLDER / f"cifar102_{split}.{'npy' if is_pickled else 'npz'}"
    path.parent.mkdir(parents=True, exist_ok=True)
    entries: dict[str, Any] = {
        "images": IMAGES, "labels": np.array(LABELS), "label_names": ["airplane", "automobile"],
        "ti_indices": np.arange(4), "keywords": ["a", "b", "c", "d"],
    } | changes  # fmt: skip
    if is_pickled:
        np.save(path, np.array(entries, dtype=object), allow_pickle=True)
    else:
        np.savez(path, **entries)
    return path


def test_an_oracle_has_all_photos_right_and_one_that_exchanges_classes_has_not(tmp_path: Path) -> None:
    for version in ("v4", "v6"):
        write_pair(tmp_path, version)
    write_dictionary(tmp_path, "test", is_pickled=True)
    models = oracles((3, 7), label_space="cifar10", num_classes=10, transform=None)
    names = ("cifar10.1-v4", "cifar10.1-v6", "cifar10.2")
    found = evaluated(names, tmp_path, tmp_path / "home", models)
    for name in names:
        assert found["oracle", name]["top1"].value == 100
        assert found["exchanging", name]["top1"].value == 50


@pytest.mark.parametrize("is_pickled", [True, False])
def test_both_kinds_of_dictionaries_are_read(tmp_path: Path, is_pickled: bool) -> None:
    write_dictionary(tmp_path, "train", is_pickled=is_pickled)
    samples = load("cifar10.2", tmp_path, "train")
    assert np.array_equal(samples.items, IMAGES)
    assert samples.targets.tolist() == LABELS
    assert samples.sample_ids[0] == "train/0"


class Dangerous:
    """What a pickle may do to its reader."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("raise SystemExit('run by a pickle')",))


def test_a_pickle_that_runs_code_is_refused(tmp_path: Path) -> None:
    write_dictionary(tmp_path, "test", is_pickled=True, keywords=Dangerous())
    with pytest.raises(DataError, match=r"cifar102_test\.npy .*builtins\.exec, which has no place in a data set"):
        load("cifar10.2", tmp_path)


def test_what_is_no_such_file_is_named(tmp_path: Path) -> None:
    path = write_dictionary(tmp_path, "test", is_pickled=True, images=IMAGES[:, :16])
    with pytest.raises(DataError, match=r"cifar102_test\.npy has images .*\[4, 16, 32, 3\] .*should be uint8 \[n, 32"):
        load("cifar10.2", tmp_path)
    path.write_bytes(pickle.dumps({"images": 1}))
    with pytest.raises(DataError, match=r"Cannot read .*cifar102_test\.npy as a dictionary of arrays"):
        load("cifar10.2", tmp_path)
    save(path, IMAGES)
    with pytest.raises(DataError, match=r"an array of uint8 and shape \(4, 32, 32, 3\)"):
        load("cifar10.2", tmp_path)
    write_pair(tmp_path, "v6")
    save(tmp_path / "CIFAR-10.1/cifar10.1_v6_labels.npy", np.array([0, 1, 2, 10]))
    with pytest.raises(DataError, match=r"n classes from 0 to 9"):
        load("cifar10.1-v6", tmp_path)
    with pytest.raises(
        DataError, match=r"cifar10\.1_v4_labels\.npy in .*Get it from https://github\.com/modestyachts/CIFAR-10\.1"
    ):
        load("cifar10.1-v4", tmp_path / "empty")


def test_they_have_noise_and_corruptions_like_cifar10(tmp_path: Path) -> None:
    for name in ("cifar10.1-v4", "cifar10.1-v6", "cifar10.2"):
        assert registry.eval_setting(f"{name}-noise-linf-0.03").dataset.name == name
        assert registry.eval_setting(f"{name}-c.fog.3_in-memory").dataset.name == name
        assert registry.dataset(name).label_space == "cifar10"
    assert registry.dataset("cifar10.2").fit_split == "train"
    assert registry.dataset("cifar10.1-v6").fit_split is None
