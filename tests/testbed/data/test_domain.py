"""Whether a user's samples are pixels or numbers is seen from the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import StandardDataset
from testbed.data.datasets import resolve_dataset, user_dataset

LABELS = np.arange(6) % 2
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "rows": ({"x": np.linspace(-3, 3, 12).reshape(6, 2), "y": LABELS}, "numbers"),
    "rows in [0, 1]": ({"x": np.linspace(0, 1, 12).reshape(6, 2), "y": LABELS}, "numbers"),
    "rows in splits": ({"x_test": np.zeros((6, 2)), "y_test": LABELS}, "numbers"),
    "images": ({"x": np.zeros((6, 4, 4), dtype=np.uint8), "y": LABELS}, "pixels"),
    "float images": ({"x": np.zeros((6, 4, 4, 3)), "y": LABELS}, "pixels"),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("case", CASES)
def test_rows_are_numbers_and_images_are_pixels(case: str, save: Any, tmp_path: Path) -> None:
    arrays, domain = CASES[case]
    save(tmp_path / "toy.npz", **arrays)
    assert user_dataset("toy", tmp_path / "toy.npz").domain == domain
    assert resolve_dataset(StandardDataset(name="toy"), {}, tmp_path).domain == domain


def test_a_folder_keeps_what_was_declared(tmp_path: Path) -> None:
    from PIL import Image

    for name in ("a", "b"):
        (tmp_path / "toy" / name).mkdir(parents=True)
        Image.new("L", (4, 4)).save(tmp_path / "toy" / name / "0.png")
    declared = Dataset(name="toy", path=tmp_path / "toy")
    assert resolve_dataset(StandardDataset(name="toy"), {"toy": declared}, tmp_path).domain == "pixels"
