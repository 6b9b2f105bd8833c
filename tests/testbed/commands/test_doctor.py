"""`eval.py --doctor` names what is wrong, stores nothing, and is pointed to where an accuracy is suspicious."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Command
from tests.laboratory import Lab

from eval_settings.eval_setting_base import EvalSetting, Shift, StandardDataset
from registry import registry
from testbed.commands import evaluate
from testbed.commands.doctor import _text, clean_name, suspicions
from testbed.definitions import load_definitions
from testbed.doctor.examination import Examination
from testbed.interruption import Terminated
from testbed.records import MetricValue
from testbed.store.store import Store

PLUGIN = """
from dataclasses import replace
from models.model_base import StandardNormalization
from registry import registry
import models.digits
half = StandardNormalization((0.5,), (0.25,))
registry.add_model(replace(registry.model("digits-resnet"), name="twice", normalization=half))
"""


def test_a_fault_is_told_with_its_fix_and_nothing_is_stored(command: Command, tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(PLUGIN)
    arguments = ("eval.py", "--doctor", "--models", "twice", "digits-resnet", "--plugin", "twice.py", "--limit", 150)
    done = command(*arguments, "--eval-settings", "digits-mscr-linf")
    assert done.code == 1, done.err
    assert "twice on digits: 1 found." in done.out
    assert "Fix: Give the Model normalization=None." in done.out
    assert "digits-resnet on digits: nothing found." in done.out
    assert "clean images are examined in place of what is done to them: digits." in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["twice.py"]
    assert re.search(r"Trying \d+ changes: up to \d+ passes over 150 images, the \d+ wrong ones first", done.err)


def test_an_interrupted_examination_says_that_nothing_is_stored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: Any, **options: Any) -> int:
        raise Terminated

    monkeypatch.setattr(evaluate, "examine_all", interrupted)
    nothing: Any = None
    assert evaluate._doctor(nothing, nothing, nothing, {"as_json": False, "quiet": True}) == 143
    assert "the doctor stores nothing" in capsys.readouterr().err


def test_noise_and_corruptions_are_examined_on_their_clean_images() -> None:
    load_definitions()
    names = ("digits-noise-linf-0.1", "digits@8px", "digits-c.fog.3_in-memory", "digits", "digits@limit50")
    found = [clean_name(registry.eval_setting(name)) for name in names]
    assert found == ["digits", "digits", "digits", "digits", "digits@limit50"]


def test_only_clean_accuracies_are_suspicious(tmp_path: Path) -> None:
    shift = Shift(family="uniform-linf", name="mscr", clean_eval_setting="toy", epsilon=0.1)
    settings = [
        EvalSetting(name=name, dataset=StandardDataset(name="toy"), shift=shift if "-" in name else None)
        for name in ("toy", "toy-mscr-linf")
    ]
    with Store.open(tmp_path / "lab.sqlite") as store:
        lab = Lab(store, num_samples=40)
        found = [lab.put("bad", setting.name, [False] * 40) for setting in settings]
        found.append(lab.put("good", "toy", [True] * 40))
        (told,) = suspicions(found, settings)
    assert told.startswith("bad on toy: top-1 is 0.00 %, no better than chance")
    assert "--doctor" in told


def test_few_right_answers_to_images_that_were_chosen_for_that_are_not_suspicious(tmp_path: Path) -> None:
    load_definitions()
    setting = registry.eval_setting("imagenet-a")
    with Store.open(tmp_path / "lab.sqlite") as store:
        wrong = Lab(store, num_samples=40).put("bad", "toy", [False] * 40)
        assert not list(suspicions([replace(wrong, setting="imagenet-a")], [setting]))


def test_too_few_images_are_not_taken_for_a_sound_model() -> None:
    half = MetricValue(name="top1", value=50.0, n=300, ci_low=20.0, ci_high=80.0)
    few, many = (
        " ".join(_text("a", "b", Examination(accuracy=half, findings=(), num_tries=tries, num_needed=needed)).split())
        for tries, needed in ((0, 12), (26, 0))
    )
    assert few.endswith("at least 12 more images right, but fewer are wrong: give more images.")
    assert many.endswith("26 changes were tried, and one counts with at least 12 more images right.")
