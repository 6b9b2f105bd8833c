"""A user's mistake: one line that says what, which and what to do, an exit code, and nothing run before it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.conftest import Command, Done

MODEL = """
import torch
from registry import registry
from models.model_base import Model

def network(width=10, value=None, stop=None):
    class Network(torch.nn.Module):
        def forward(self, images):
            if stop == 'raise':
                raise ValueError('no such layer')
            if stop == 'abort':
                import os
                os.abort()
            logits = torch.zeros(len(images), width)
            logits[:, 3] = 1
            if value is not None:
                logits[::2, 0] = value
            return logits[..., None] if stop == 'shape' else logits
    return Network()

for name, keywords in {KINDS!r}.items():
    registry.add_model(Model(
        name=name, transform=None, classifier_loader=lambda keywords=keywords: network(**keywords),
        eval_batch_size=64, label_space='digits'))
"""
KINDS = {
    "always-three": {},
    "raises": {"stop": "raise"},
    "aborts": {"stop": "abort"},
    "wrong-shape": {"stop": "shape"},
    "not-a-number": {"value": float("nan")},
    "seven-classes": {"width": 7},
}


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "plugins" / "toys.py"
    path.parent.mkdir()
    path.write_text(MODEL.replace("{KINDS!r}", repr(KINDS).replace("nan", "float('nan')")))
    return path


def run(command: Command, *models: str, setting: str = "digits", more: tuple[object, ...] = ()) -> Done:
    return command("eval.py", "--models", *models, "--eval-settings", setting, "--workers", 1, "--json", *more)


def refused(done: Done, code: int, *words: str) -> None:
    """One line on stderr that starts with Error, and nothing on stdout."""
    errors = [line for line in done.err.splitlines() if line.startswith("Error: ")]
    assert done.code == code, done.err
    assert len(errors) == 1, done.err
    assert "Traceback" not in done.err
    assert not done.out
    for word in words:
        assert word in errors[0]


def test_an_unknown_model_or_setting(command: Command) -> None:
    done = run(command, "digits-resnett")
    refused(
        done,
        2,
        "Unknown model 'digits-resnett'",
        "Did you mean digits-resnet",
        "--list-models-registry",
    )
    refused(run(command, "digits-linear", setting="digit"), 2, "Unknown eval-setting 'digit'", "Did you mean digits")
    refused(run(command, "digits-linear", setting="nothing-*"), 2, "No eval-setting matches 'nothing-*'")
    refused(run(command, "digits-linear", setting="digits-noise-linf-0.10"), 2, "Write it as 0.1")
    refused(run(command, "digits-linear", setting="digits-noise-linf--1"), 2, "must be a positive number")
    refused(run(command, "digits-linear", setting="digits-noise-linf-abc"), 2, "'abc', which is no noise level")


def test_a_gpu_that_is_not_there(command: Command) -> None:
    done = command("eval.py", "--gpus", 0, "--models", "digits-resnet", "--eval-settings", "digits")
    refused(done, 2, "GPU 0 was asked for, but none is present", "Leave --gpus out to run on the CPU")


def test_without_gpus_the_cpu_is_used_and_said_once(command: Command) -> None:
    done = command("eval.py", "--models", "digits-linear", "--eval-settings", "digits")
    assert done.code == 0, done.err
    assert done.err.count("No CUDA device found") == 1


def test_a_data_set_that_is_missing_or_of_another_size(command: Command, tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(
        "from registry import registry\n"
        "from eval_settings.eval_setting_base import EvalSetting, StandardDataset\n"
        "registry.add_eval_setting(EvalSetting(name='absent', dataset=StandardDataset(name='not-here')))\n"
        "registry.add_eval_setting(EvalSetting(name='sized', dataset=StandardDataset(name='digits'), size=600))\n"
    )
    more = ("--plugin", "settings.py")
    refused(run(command, "digits-linear", setting="absent", more=more), 2, "Data set 'not-here'", "--data-root")
    refused(
        run(command, "digits-linear", setting="sized", more=more), 2, "expects 600 images but found 597", "size=597"
    )


def test_a_model_with_another_number_of_classes(command: Command, plugin: Path) -> None:
    done = run(command, "always-three", "seven-classes", more=("--plugin", plugin, "--logdir", "log"))
    refused(done, 2, "Model 'seven-classes'", "7 outputs", "'digits' has 10 classes")


def test_a_database_that_cannot_be_written(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run(command, "digits-linear", more=("--db-url", f"sqlite:///{tmp_path}/file/testbed.sqlite"))
    refused(done, 3, "testbed.sqlite")


def test_a_dataset_option_without_a_path(command: Command) -> None:
    refused(run(command, "digits-linear", setting="mine", more=("--dataset", "mine")), 2, "NAME=PATH")


def test_a_dataset_option_cannot_take_the_name_of_another(command: Command, tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", x=np.zeros((4, 8, 8), np.uint8), y=[0, 1, 0, 1])
    more = ("--dataset", f"digits={tmp_path}/mine.npz")
    refused(run(command, "digits-linear", more=more), 2, "--dataset digits=...", "Choose another name")


def test_models_that_fail_are_named_and_the_others_finish(command: Command, plugin: Path) -> None:
    done = run(command, "raises", "wrong-shape", "aborts", "not-a-number", "always-three", more=("--plugin", plugin))
    assert done.code == 1
    found = {evaluation["model"]: evaluation for evaluation in done.json["evaluations"]}
    assert found["always-three"]["status"] == "complete"
    assert found["always-three"]["metrics"]["top1"]["value"] == pytest.approx(100 * 61 / 597, abs=1)
    assert found["raises"]["status"] == "failed"
    assert found["raises"]["reason"] == "ValueError: no such layer (toys.py, line 10)"
    assert found["wrong-shape"]["status"] == "failed"
    assert "shape (8, 10, 1) for 8 images" in found["wrong-shape"]["reason"]
    assert found["aborts"]["status"] == "failed"
    assert "signal SIGABRT" in found["aborts"]["reason"]
    assert "3 times" in found["aborts"]["reason"]
    last = done.err.strip().splitlines()[-3:]
    assert all(line.startswith("Failed: ") for line in last)


def test_logits_that_are_no_numbers_count_as_wrong_and_are_reported(command: Command, plugin: Path) -> None:
    done = run(command, "not-a-number", "always-three", more=("--plugin", plugin))
    found = {evaluation["model"]: evaluation["metrics"]["top1"] for evaluation in done.json["evaluations"]}
    every_second = sum((min(64, 597 - start) + 1) // 2 for start in range(0, 597, 64))
    assert found["not-a-number"]["detail"]["nonfinite"] == every_second
    assert 0 < found["not-a-number"]["value"] < found["always-three"]["value"]
    assert f"Warning: {every_second} of 597 answers of not-a-number on digits are not finite" in done.err


def test_equal_images_of_different_class_give_no_noise_level(command: Command, tmp_path: Path, plugin: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 8, 8), dtype=np.uint8)
    pixels[3] = pixels[11]
    np.savez(tmp_path / "twins.npz", x=pixels, y=np.arange(20) % 10)
    more = ("--plugin", plugin, "--dataset", f"twins={tmp_path}/twins.npz")
    done = run(command, "always-three", setting="twins-mscr-linf", more=more)
    refused(done, 2, "equal samples of different class (test/3 and test/11)", "twins-noise-linf-EPS")


def test_images_too_small_for_a_corruption_are_told_before_anything_is_run(
    command: Command, plugin: Path, tmp_path: Path
) -> None:
    np.savez(tmp_path / "small.npz", x=np.zeros((20, 7, 9), np.uint8), y=np.arange(20) % 10)
    more = ("--plugin", plugin, "--dataset", "small=small.npz", "--logdir", "log")
    done = run(command, "always-three", setting="small-c.fog.3_in-memory", more=more)
    refused(done, 2, "small-c.fog.3_in-memory", "(20, 1, 7, 9)", "at least 8 x 8 pixels")
    assert "done:" not in done.err
