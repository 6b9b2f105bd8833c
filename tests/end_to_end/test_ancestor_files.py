"""Files in every way in which those of the ImageNet Testbed are written work from a plugin folder as they stand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from tests.conftest import Command
from tests.miniatures import class_pixels, write_class_image

from testbed.data.class_order import label_space_names

DEFINITIONS = Path(__file__).parent / "ancestor"
ORACLES = ("oracle/plain", "oracle/bgr", "colour-neighbours", "oracle-votes")
SETTINGS = ("val", "val-on-my-classes", "my-classes", "greyscale-like", "my-attack", "my-attack_10percent")
PRESENT = (0, 6, 11, 281, 285, 386, 999)


def _write(folder: Path) -> None:
    """A miniature of ImageNet's val, a set of five of its classes, and two files of weights."""
    import torchvision

    wnids = label_space_names("imagenet-1k")
    assert wnids is not None
    for index in PRESENT:
        for photo in range(2):
            write_class_image(folder / "data/imagenet/val" / wnids[index] / f"{photo}.png", index, size=48)
            if index in PRESENT[:5]:
                write_class_image(folder / "data/my-classes" / wnids[index] / f"{photo}.png", index, size=48)
    (folder / "checkpoints").mkdir()
    torch.save({"state_dict": torchvision.models.shufflenet_v2_x0_5().state_dict()}, folder / "checkpoints/small.pt")
    with open(folder / "checkpoints/colours", "wb") as file:
        np.save(file, np.stack([class_pixels(index, 1)[0, 0] for index in range(1000)]) / 255)


def test_files_of_the_ancestors_kind_work_from_a_plugin_folder(command: Command, tmp_path: Path) -> None:
    _write(tmp_path)
    done = command("eval.py", "--models", *ORACLES, "small-network", "--eval-settings", *SETTINGS,
                   "--plugin", DEFINITIONS, "--workers", 0, "--db", "--json")  # fmt: skip
    assert done.code == 0, done.err
    found = {(e["model"], e["eval_setting"]): e for e in done.json["evaluations"]}
    assert {e["status"] for e in found.values()} == {"complete"}, [e["reason"] for e in found.values()]
    for model in ORACLES:
        for setting in SETTINGS:
            assert found[model, setting]["metrics"]["top1"]["value"] == 100, (model, setting, found[model, setting])
    metrics = found["oracle/plain", "my-classes"]["metrics"]
    assert (metrics["by_folder"]["value"], metrics["name_length"]["value"]) == (100, len("oracle/plain"))
    assert [found["oracle/plain", setting]["n"] for setting in SETTINGS] == [14, 10, 10, 14, 14, 4]
    assert "EvalSetting 'val' of" in done.err
    assert "overrides the built-in one" in done.err
