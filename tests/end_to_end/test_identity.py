"""What changes a result is a new evaluation, and what does not is not; evaluations are completed in every order."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import ROOT, Command, Done, environment

PLUGIN = """
import torch
from registry import registry
from models.model_base import Model
from eval_settings.eval_setting_base import EvalSetting, StandardDataset

class Brightness(torch.nn.Module):
    def __init__(self, in_place=False):
        super().__init__()
        self.in_place = in_place
    def forward(self, images):
        mean = images.flatten(1).mean(1)
        if self.in_place:
            images.mul_(0)
        return -(mean[:, None] * 10 - torch.arange(10.)).abs()

for name, in_place in (('in-place', True), ('plain', False)):
    registry.add_model(Model(
        name=name, transform=None, classifier_loader=lambda in_place=in_place: Brightness(in_place),
        eval_batch_size=64, label_space='digits'))
registry.add_model(Model(name='cut', transform=None, classifier_loader=Brightness, eval_batch_size=64,
    label_space='digits', classify=lambda images, model, class_sublist:
        model(images) if class_sublist is None else model(images)[:, class_sublist]))

class Darker:
    def names(self, dataset):
        return (f'{dataset.name}-darker',)
    def build(self, dataset, name):
        if name == f'{dataset.name}-darker':
            return EvalSetting(name=name, dataset=StandardDataset(name=dataset.name),
                               perturbation_fn_gpu=lambda images: images * FACTOR)
registry.add_eval_setting_family(Darker())

def setting(name, **changes):
    registry.add_eval_setting(EvalSetting(name=name, dataset=StandardDataset(name='digits'), **changes))
setting('own', metrics_fn=lambda logits, targets: {'mine': 42.0})
setting('odd', class_sublist=[1, 3, 5, 7, 9])
setting('parent', version='1')
setting('child', parent_eval_setting='parent', version='1')
"""


def evaluate(command: Command, *arguments: object, models: str = "plain", settings: str = "digits") -> Done:
    return command("eval.py", "--models", *models.split(), "--eval-settings", *settings.split(), "--workers", 0,
                   "--quiet", "--json", "--db", "--plugin", "plugin.py", *arguments)  # fmt: skip


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "plugin.py"
    path.write_text(PLUGIN.replace("FACTOR", "0.9"))
    return path


def top1(done: Done, model: str = "plain") -> float:
    assert done.code == 0, done.err
    return float(next(e["metrics"]["top1"]["value"] for e in done.json["evaluations"] if e["model"] == model))


def test_a_model_that_writes_into_its_input_leaves_the_others_alone(command: Command) -> None:
    alone = top1(evaluate(command, "--db-url", "sqlite:///alone.sqlite"))
    together = top1(evaluate(command, "--db-url", "sqlite:///both.sqlite", models="in-place plain"))
    assert alone == together


def test_another_canonical_size_is_another_setting(command: Command, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 16, 16), dtype=np.uint8)
    np.savez(tmp_path / "noise.npz", x=pixels, y=np.arange(40) % 10)
    mine = ("--dataset", "noise=noise.npz", "--canonical-size")
    first = evaluate(command, *mine, 16, settings="noise")
    second = evaluate(command, *mine, 8, settings="noise")
    assert first.code == second.code == 0, second.err
    assert "are stored already" not in second.err


def test_changed_code_of_a_family_is_another_setting(command: Command, plugin: Path) -> None:
    bright = top1(evaluate(command, settings="digits-darker"))
    plugin.write_text(PLUGIN.replace("FACTOR", "0.1"))
    assert top1(evaluate(command, settings="digits-darker")) != bright


def test_other_training_data_are_another_evaluation(command: Command, tmp_path: Path) -> None:
    from eval_settings.digits import load_digits_split

    train, test = (load_digits_split(split) for split in ("train", "test"))
    found = []
    for count in (1000, 60):
        arrays = {"x_train": train.items[:count], "y_train": train.targets[:count], "x_test": test.items}
        np.savez(tmp_path / "mine.npz", y_test=test.targets, **arrays)
        done = evaluate(command, "--dataset", "mine=mine.npz", models="digits-random-forest", settings="mine")
        found.append(top1(done, "digits-random-forest"))
    assert found[0] > found[1] + 5


def test_a_limit_keeps_the_settings_own_metrics(command: Command) -> None:
    (record,) = evaluate(command, "--limit", 10, settings="own").json["evaluations"]
    assert record["metrics"]["mine"]["value"] == 42.0
    assert record["n"] == 10


def test_samples_of_other_classes_count_as_wrong_and_in_no_class(command: Command) -> None:
    done = evaluate(command, settings="odd")
    assert done.code == 0, done.err
    metrics = done.json["evaluations"][0]["metrics"]
    assert metrics["top1"]["n"] == 597
    assert metrics["top1"]["value"] < 55
    assert [row["class"] for row in metrics["worst_class_accuracy"]["detail"]["classes"]] == list("13579")


def test_a_model_that_cuts_the_classes_itself_may_be_asked_for_any(command: Command) -> None:
    for settings in ("digits", "odd", "digits-darker", "odd digits"):
        done = evaluate(command, models="cut", settings=settings)
        assert done.code == 0, done.err
    whole, cut = (evaluate(command, models=name, settings="odd").json["evaluations"][0] for name in ("plain", "cut"))
    assert whole["metrics"] == cut["metrics"]


def test_a_known_model_with_another_number_of_classes_is_refused_before_anything_runs(
    command: Command, tmp_path: Path
) -> None:
    np.savez(tmp_path / "three.npz", x=np.zeros((6, 8, 8), np.uint8), y=np.arange(6) % 3)
    mine = ("--dataset", "three=three.npz")
    for _ in range(2):  # unknown the first time, known the second
        done = evaluate(command, *mine, models="digits-linear", settings="digits three")
        assert done.code == 2
        assert "10 outputs" in done.err
        assert "'three' has 3 classes" in done.err
        with sqlite3.connect(tmp_path / "results" / "testbed.sqlite") as database:
            assert database.execute("select count(*) from logit_shards").fetchone() == (0,)
        evaluate(command, models="digits-linear", settings="digits@limit5")
        with sqlite3.connect(tmp_path / "results" / "testbed.sqlite") as database:
            database.execute("delete from logit_payloads")
            database.execute("delete from logit_shards")


def test_a_child_is_not_run_where_its_parent_is_complete_nor_taken_up_again(command: Command) -> None:
    assert evaluate(command, settings="child", models="plain").code == 0
    assert evaluate(command, settings="parent", models="in-place").code == 0
    done = evaluate(command, settings="child parent", models="in-place plain")
    assert done.code == 0, done.err
    assert "'parent' is complete for in-place and stands for child" in done.err
    assert ("in-place", "child") not in {(e["model"], e["eval_setting"]) for e in done.json["evaluations"]}


def test_fewer_draws_than_were_begun_are_completed(command: Command, tmp_path: Path, cache_home: Path) -> None:
    line = [sys.executable, str(ROOT / "eval.py"), "--models", "digits-resnet", "--eval-settings", "digits-mscr-linf",
            "--draws", "60", "--workers", "1", "--db", "--quiet"]  # fmt: skip
    started = subprocess.Popen(line, cwd=tmp_path, env=environment(cache_home), stderr=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
    path = tmp_path / "results" / "testbed.sqlite"
    while started.poll() is None and _num_shards(path) < 5 + 3 * 5 + 2:
        time.sleep(0.01)
    os.killpg(started.pid, signal.SIGINT)
    assert started.wait() == 130
    done = evaluate(command, "--draws", 2, models="digits-resnet", settings="digits-mscr-linf")
    assert done.code == 0, done.err
    assert {e["status"] for e in done.json["evaluations"]} == {"complete"}
    assert done.json["evaluations"][1]["num_draws"] >= 2


def _num_shards(path: Path) -> int:
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            return int(database.execute("select count(*) from logit_shards").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def test_recompute_needs_no_checkpoint(command: Command, tmp_path: Path) -> None:
    import torch

    (tmp_path / "net.py").write_text(
        "import torch\ndef build():\n    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))\n"
    )
    torch.save(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)).state_dict(), tmp_path / "net.pt")
    done = evaluate(command, "--arch", "net.py:build", models="local:net.pt")
    assert done.code == 0, done.err
    (tmp_path / "net.pt").unlink()
    assert command("db.py", "--recompute").code == 0


def test_several_runs_are_one_row_whose_accuracy_is_their_mean_in_any_order(command: Command) -> None:
    runs = ("--seeds", 0, 1, 2)
    evaluations = evaluate(command, *runs, models="digits-random-forest").json["evaluations"]
    single = [evaluation["metrics"]["top1"]["value"] for evaluation in evaluations]
    tables = []
    for seeds in ((0, 1, 2), (2, 0, 1)):
        done = command("eval.py", "--models", "digits-random-forest", "--eval-settings", "digits", "--db", "--seeds",
                       *seeds, "--workers", 0)  # fmt: skip
        tables.append(done.out)
    assert tables[0] == tables[1]
    assert f"{np.mean(single):.2f} [" in tables[0]
    assert "digits (3 runs)" in tables[0]


def test_a_level_from_the_separation_needs_a_perturbation_with_a_level() -> None:
    from eval_settings.eval_setting_base import EvalSetting, Shift, StandardDataset
    from testbed.errors import DefinitionError

    shift = Shift(family="own", name="own", norm="linf", clean_eval_setting="digits")
    with pytest.raises(DefinitionError, match="a dataclass with a field `epsilon`"):
        EvalSetting(name="x", dataset=StandardDataset(name="digits"), shift=shift,
                    perturbation_fn_gpu=lambda images: images)  # fmt: skip


def test_the_results_of_a_limit_are_compared_with_the_clean_setting_on_the_same_samples(command: Command) -> None:
    done = evaluate(command, "--limit", 20, models="digits-linear", settings="digits-mscr-linf")
    assert {c["clean_eval_setting"] for c in done.json["comparisons"]} == {"digits@limit20"}
    record = command("db.py", "--print-eval", "digits-linear", "digits-mscr-linf@limit20", "--json")
    assert json.loads(record.out)["n"] == 20
