"""`eval.py --weights`: which file a model's parameters come from, and that those of two files never mix."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import ROOT, Command, Done
from tests.published import write_cifar

from models._resnet_32px import resnet50

COMMITTED = ROOT / "src/models/weights/digits-linear.safetensors"


def evaluate(
    command: Command, *arguments: object, model: str = "digits-linear", setting: str = "digits", **variables: str
) -> Done:
    return command("eval.py", "--models", *model.split(), "--eval-settings", setting, "--quiet", "--json", "--db",
                   *arguments, **variables)  # fmt: skip


def top1(done: Done) -> float:
    assert done.code == 0, done.err
    return float(done.json["evaluations"][0]["metrics"]["top1"]["value"])


@pytest.fixture
def shuffled(tmp_path: Path) -> Path:
    """The committed parameters with every answer given to the next class."""
    state = {name: value.roll(1, 0) for name, value in load_file(COMMITTED).items()}
    save_file(state, tmp_path / "shuffled.safetensors")
    return tmp_path / "shuffled.safetensors"


def test_results_of_two_files_never_mix(command: Command, shuffled: Path, tmp_path: Path) -> None:
    here, copy = ("--workers", 0), shutil.copy(COMMITTED, tmp_path / "copy.safetensors")
    usual = top1(evaluate(command, *here))
    assert usual > 90
    assert top1(evaluate(command, *here, "--weights", f"digits-linear={shuffled}")) < 10
    again = evaluate(command, *here, "--weights", f"digits-linear={copy}")
    assert top1(again) == usual
    assert "597 of 597 samples are stored already" in again.err


def test_workers_take_the_same_files(command: Command, shuffled: Path) -> None:
    resnet = COMMITTED.with_name("digits-resnet.safetensors")
    named = (f"digits-linear={shuffled}", f"digits-resnet={resnet}")
    done = evaluate(command, "--workers", 1, "--weights", *named, model="digits-linear digits-resnet")
    assert top1(done) < 10
    assert done.json["evaluations"][1]["metrics"]["top1"]["value"] > 90


def test_a_file_of_another_network_is_told_with_its_keys(command: Command) -> None:
    done = evaluate(command, "--workers", 0, "--weights", f"digits-resnet={COMMITTED}", model="digits-resnet")
    assert done.code == 1
    assert "digits-linear.safetensors' does not fit the network, keys: " in done.err


def test_without_weights_nothing_is_run_and_three_ways_are_named(command: Command, tmp_path: Path) -> None:
    write_cifar(tmp_path / "data" / "cifar10", dataset="cifar10", is_binary=True)
    done = evaluate(command, "--workers", 0, "--no-download", model="resnet50", setting="cifar10-mscr-linf",
                    HF_HUB_CACHE=str(tmp_path / "hub"))  # fmt: skip
    assert done.code == 2
    for way in ("--weights resnet50=FILE", "checkpoints/resnet50-cifar10.safetensors", "edadaltocg/resnet50_cifar10"):
        assert way in done.err
    assert done.out == ""


def test_resnet50_on_cifar10_takes_named_weights_before_those_under_checkpoints(
    command: Command, tmp_path: Path
) -> None:
    """Two test images, of the classes 4 and 1, and a network that answers 4 to all."""
    write_cifar(tmp_path / "data" / "cifar10", dataset="cifar10", is_binary=True)
    network = resnet50()
    network.fc.bias.data[4] = 1000
    torch.save({"state_dict": network.state_dict()}, tmp_path / "deer.pt")
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "resnet50-cifar10.pth").write_bytes(b"no weights at all")
    done = evaluate(command, "--workers", 0, "--weights", "resnet50=deer.pt", "--draws", 2, model="resnet50",
                    setting="cifar10-mscr-linf")  # fmt: skip
    assert top1(done) == 50
    clean, noisy = done.json["evaluations"]
    assert (clean["eval_setting"], noisy["eval_setting"]) == ("cifar10", "cifar10-mscr-linf")
    assert noisy["metrics"]["top1"]["value"] == 50
