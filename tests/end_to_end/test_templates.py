"""The templates work as they stand once they are copied, and data of one's own have all their settings."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
from tests.conftest import ROOT, Command

OWN_FOLDER = """
from pathlib import Path
from registry import registry

registry.add_dataset("photos", Path(__file__).parent / "photos", label_space="digits", color_mode="L")
"""


def _write_photos(folder: Path) -> None:
    """The last 60 digits as image files, a folder per class."""
    digits = load_digits()
    for index in range(len(digits.target) - 60, len(digits.target)):
        (folder / str(digits.target[index])).mkdir(parents=True, exist_ok=True)
        pixels = (digits.images[index] * 255 / 16).round().astype(np.uint8)
        Image.fromarray(pixels).save(folder / str(digits.target[index]) / f"{index}.png")


def test_copied_templates_and_own_data_are_evaluated(command: Command, tmp_path: Path) -> None:
    _write_photos(tmp_path / "plugins/photos")
    shutil.copy(ROOT / "src/models/_template.py", tmp_path / "plugins/my_models.py")
    shutil.copy(ROOT / "src/eval_settings/_template.py", tmp_path / "plugins/my_settings.py")
    (tmp_path / "plugins/my_photos.py").write_text(OWN_FOLDER)
    settings = ("my-digits", "my-digits-upside-down", "my-digits-dark", "my-digits-noise-linf-0.1",
                "photos", "photos-mscr-linf", "photos-c.fog.1_in-memory")  # fmt: skip
    done = command("eval.py", "--models", "my-network", "my-network-flipped", "digits-linear", "--eval-settings",
                   *settings, "--plugin", "plugins", "--limit", 40, "--workers", 0, "--json")  # fmt: skip
    assert done.code == 0, done.err
    found = {(one["model"], one["eval_setting"].partition("@")[0]): one for one in done.json["evaluations"]}
    assert len(found) == 3 * len(settings)
    assert {one["status"] for one in found.values()} == {"complete"}
    top1 = {setting: found["digits-linear", setting]["metrics"]["top1"]["value"] for setting in settings}
    assert min(top1["my-digits"], top1["photos"]) > 80 > top1["my-digits-upside-down"]
    assert "share-of-ones" in found["digits-linear", "my-digits"]["metrics"]
    compared = {(row["model"], row["eval_setting"].partition("@")[0]) for row in done.json["comparisons"]}
    assert ("digits-linear", "my-digits-upside-down") in compared
    assert ("digits-linear", "photos-c.fog.1_in-memory") in compared
