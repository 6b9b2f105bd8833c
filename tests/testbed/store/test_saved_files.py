"""Names of models become names of files, and no name leads out of the folder or onto another's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.errors import StoreError
from testbed.store.store import Store
from testbed.store.transfer import save_logits, slug

NAMES = (
    "a/b", "a_b", "A_b", "../../x", "/etc/x", "'; drop table models;--", "x" * 300, "x" * 301, "100%", "con", "nul\x01",
    "\u00e9", "e\u0301", "🦆", ".", "..",
)  # fmt: skip


def test_every_name_has_a_file_of_its_own_in_the_folder(store: Store, samples: Any, tmp_path: Path) -> None:
    for name in NAMES:
        model = samples.model(name)
        store.put_model(model)
        samples.completed(store, samples.key(model))
    folder = tmp_path / "deep" / "out"
    save_logits(store.list_evaluations(setting="data"), folder)
    entries = json.loads((folder / "index.json").read_text())["models"]
    assert sorted(entry["model"] for entry in entries) == sorted(NAMES)
    files = [entry["file"] for entry in entries]
    assert len({file.lower() for file in files}) == len(NAMES), "also where upper and lower case are the same"
    assert all(len(file) < 150 for file in files)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.npz")} == {
        f"deep/out/{file}" for file in files
    }
    with np.load(folder / files[0]) as saved:
        assert saved["logits"].shape == (1, 10, 3)


@pytest.mark.parametrize(
    ("name", "file"),
    [("a/b c", "a_b_c"), ("ResNet-50.a1", "ResNet-50.a1"), ("..", "_."), (".git", "_git"), ("x" * 100, "x" * 100)],
)
def test_a_part_of_a_file_name_is_no_way_out_of_a_folder(name: str, file: str) -> None:
    assert slug(name) == file


def test_long_names_that_differ_at_their_end_keep_different_files() -> None:
    one, other = slug("x" * 300 + "1"), slug("x" * 300 + "2")
    assert one != other
    assert len(one) == len(other) == 100
    assert one.startswith("x" * 91 + "-")


def test_a_file_that_is_there_is_replaced_only_with_override(store: Store, samples: Any, tmp_path: Path) -> None:
    samples.completed(store)
    save_logits(store.list_evaluations(), tmp_path)
    with pytest.raises(StoreError, match=r"is there already\. Give --override"):
        save_logits(store.list_evaluations(), tmp_path)
    save_logits(store.list_evaluations(), tmp_path, override=True)
