"""`eval.py` on CIFAR-10-C: its answers join with the clean ones sample by sample, and its severities stay apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Command
from tests.corrupted_copies import write_cifar_c
from tests.published import binary_batch, write, write_cifar

PLUGIN = """
from models.model_base import Model
from registry import registry


def load():
    import torch

    class Bright(torch.nn.Module):
        def forward(self, images):
            '''Class 0 where the first value of an image is below one half, else class 1.'''
            answers = (images[:, 0, 0, 0] >= 0.5).long()
            return torch.nn.functional.one_hot(answers, 10).float()

    return Bright()


registry.add_model(
    Model(name="bright", transform=None, classifier_loader=load, eval_batch_size=2, label_space="cifar10")
)
"""


def test_on_disk_answers_join_with_the_clean_ones(command: Command, tmp_path: Path) -> None:
    """The first values are 20, 120, 200, 100 and the classes 0, 0, 1, 1, so the last image alone is wrong when clean.

    At severity 1 (+ 40) the second is lost and the last recovered, at severity 5 (+ 200) the first is lost as well.
    """
    written = write_cifar(tmp_path / "data" / "cifar10", dataset="cifar10", is_binary=True, per_file=4)
    images = written["test"][0]
    images[:, 0, 0, 0] = (20, 120, 200, 100)
    targets = [0, 0, 1, 1]
    write(tmp_path / "data" / "cifar10" / "test_batch.bin", binary_batch(images, targets))
    write_cifar_c(tmp_path / "data" / "CIFAR-10-C", images, targets)
    (tmp_path / "bright.py").write_text(PLUGIN)
    names = [f"cifar10-c.fog.{severity}_on-disk" for severity in (1, 5)]
    done = command("eval.py", "--models", "bright", "--plugin", "bright.py", "--eval-settings", *names, "--db",
                   "--workers", 0, "--quiet", "--json")  # fmt: skip
    assert done.code == 0, done.err
    values = {row["eval_setting"]: row["metrics"] for row in done.json["evaluations"]}
    assert list(values) == ["cifar10", *names]
    assert [values[name]["top1"]["value"] for name in values] == [75, 75, 50]
    change = {(row["eval_setting"], row["metric"]): row["value"] for row in done.json["comparisons"]}
    assert [change[name, "loss"] for name in names] == pytest.approx([100 / 3, 200 / 3])
    assert [change[name, "recovery"] for name in names] == [100, 100]


def test_a_corruption_that_changed_nothing_stops_the_run(command: Command, tmp_path: Path) -> None:
    images, targets = write_cifar(tmp_path / "data" / "cifar10", dataset="cifar10", is_binary=True)["test"]
    write_cifar_c(tmp_path / "data" / "CIFAR-10-C", images, targets, strength=0)
    (tmp_path / "bright.py").write_text(PLUGIN)
    done = command("eval.py", "--models", "bright", "--plugin", "bright.py", "--eval-settings",
                   "cifar10-c.fog.1_on-disk", "--db", "--workers", 0, "--quiet")  # fmt: skip
    assert done.code == 2
    assert "all 2 images equal the clean ones" in done.err
