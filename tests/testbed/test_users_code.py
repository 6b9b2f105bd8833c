"""Code of users: stdout stays the program's own, and an exception is one line."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from tests.conftest import Command

from testbed.errors import DataError
from testbed.users_code import asked, users_output

PRINTING = """
import os

import torch

from models.model_base import Model
from registry import registry

def tell(what):
    print(f'user: {what}')
    os.write(1, f'raw: {what}\\n'.encode())

def load():
    tell('load')
    return torch.nn.Flatten()

def classify(images, model):
    tell('classify')
    return images.flatten(1)[:, :10]

def share(predictions):
    tell('metric')
    return float((predictions == 0).mean())

tell('import')
registry.add_metric('zeros', share)
registry.add_model(Model(name='printing', transform=None, classifier_loader=load, classify=classify, eval_batch_size=64,
                         label_space='digits', version='1'))
"""
FAILING = """
import json

from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model
from registry import registry

def load(split):
    return json.loads('{')

def pick(samples):
    return [1][5]

def find():
    raise RuntimeError('no server')

registry.add_dataset('failing', load)
registry.add_eval_setting(EvalSetting(name='picked', dataset=StandardDataset(name='digits'), idx_subsample_list=pick))
registry.add_model(Model(name='lost', transform=None, classifier_loader=lambda weights: None, weights=find,
                         eval_batch_size=1, label_space='digits'))
"""


def test_what_users_code_prints_goes_to_stderr_whichever_way_it_takes(capfd: pytest.CaptureFixture[str]) -> None:
    print("ours before")
    with users_output():
        print("theirs")
        os.write(1, b"theirs, raw\n")
        os.system("echo theirs, of a process")
    print("ours after")
    sys.stdout.flush()
    out, err = capfd.readouterr()
    assert out == "ours before\nours after\n"
    assert sorted(err.splitlines()) == ["theirs", "theirs, of a process", "theirs, raw"]


def test_stdout_comes_back_after_an_exception(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), users_output():
        raise KeyError("theirs")
    os.write(1, b"ours\n")
    assert capfd.readouterr().out == "ours\n"


def test_an_exception_is_told_with_its_line_and_our_own_errors_stay_what_they_are() -> None:
    def failing() -> None:
        raise ValueError("two\nlines")

    def refusing() -> None:
        raise DataError("Say so.")

    line = failing.__code__.co_firstlineno + 1
    told = re.escape(f"The loader failed in {__file__} (ValueError: two lines, line {line}).")
    with pytest.raises(DataError, match=told):
        asked(failing, what="The loader")
    with pytest.raises(DataError, match=r"^Say so\.$"):
        asked(refusing, what="The loader")
    with pytest.raises(DataError, match=r"The loader failed \(TypeError: .*argument"):
        asked(len, what="The loader")  # type: ignore[arg-type]  # it wants one


@pytest.mark.parametrize("workers", [0, 1])
def test_a_plugin_that_prints_does_not_break_json(command: Command, tmp_path: Path, workers: int) -> None:
    (tmp_path / "plugin.py").write_text(PRINTING)
    done = command("eval.py", "--plugin", "plugin.py", "--models", "printing", "--eval-settings", "digits",
                   "--workers", workers, "--json", "--quiet")  # fmt: skip
    assert done.code == 0, done.err
    assert [one["model"] for one in done.json["evaluations"]] == ["printing"]
    for what in ("import", "load", "classify", "metric"):
        assert f"user: {what}" in done.err
        assert f"raw: {what}" in done.err


@pytest.mark.parametrize(
    ("model", "setting", "told"),
    [
        (
            "digits-linear",
            "failing",
            r"The loader of data set 'failing' \(test\) failed in \S*plugin\.py \(JSONDecodeError",
        ),
        ("digits-linear", "picked", r"The idx_subsample_list of 'picked' failed in \S*plugin\.py \(IndexError"),
        ("lost", "digits", r"The function for the weights of model 'lost' failed in \S*plugin\.py \(RuntimeError"),
    ],
)
def test_an_exception_of_a_users_function_is_one_line(
    command: Command, tmp_path: Path, model: str, setting: str, told: str
) -> None:
    (tmp_path / "plugin.py").write_text(FAILING)
    done = command("eval.py", "--plugin", "plugin.py", "--models", model, "--eval-settings", setting, "--workers", 0)
    assert done.code == 2
    assert re.match(f"Error: {told}.*, line \\d+\\)", done.err)
    assert len(done.err.splitlines()) == 1


def test_users_code_that_leaves_the_program_is_an_error_like_any_other() -> None:
    def leave() -> None:
        sys.exit(0)

    with pytest.raises(DataError, match=r"The loader of 'mine' failed.*SystemExit: 0"):
        asked(leave, what="The loader of 'mine'")
