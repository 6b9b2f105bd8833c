"""Models that are random or adapt by design give the same bytes with and without workers, and their results say so."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Command

PLUGIN = """
import torch
from torch import nn
from models.model_base import Model
from registry import registry

class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(10, 64))

    def forward(self, images):
        return nn.functional.dropout(images.flatten(1) @ self.weight.T, 0.5)

class Adapting(Dropping):
    def forward(self, images):
        logits = images.flatten(1) @ self.weight.T
        self.weight.data += 0.01 * images.mean()
        return logits

registry.add_model(Model(name="dropping", transform=None, classifier_loader=Dropping, eval_batch_size=32,
                         label_space="digits"))
registry.add_model(Model(name="adapting", transform=None, classifier_loader=Adapting, eval_batch_size=32,
                         label_space="digits", adapts="per-evaluation"))
"""


def test_what_is_declared_gives_the_same_bytes_for_any_number_of_workers(command: Command, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(PLUGIN)
    asked = ("--models", "dropping", "adapting", "--stochastic", "dropping", "--plugin", "own.py", "--quiet", "--json",
             "--eval-settings", "digits-noise-linf-0.1", "--draws", 2, "--limit", 300)  # fmt: skip
    done = [command("eval.py", *asked, "--workers", n, "--logdir", f"log{n}") for n in (0, 2)]
    assert [one.code for one in done] == [0, 0], done[0].err
    first, second = (one.json["evaluations"] for one in done)
    assert first == second
    said = {(one["model"], one.get("stochastic"), one.get("adapts")) for one in first}
    assert said == {("dropping", True, None), ("adapting", None, "per-evaluation")}
    assert "dropping draws random numbers by design" in done[0].err
    assert "adapting changes with what it is shown" in done[0].err


def test_what_is_not_declared_fails_and_leaves_nothing_that_a_second_run_would_take_for_done(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(PLUGIN)
    asked = ("--models", "dropping", "digits-linear", "--plugin", "own.py", "--quiet", "--json", "--workers", 0,
             "--eval-settings", "digits", "--logdir", "log")  # fmt: skip
    for _ in range(2):
        done = command("eval.py", *asked)
        assert done.code == 1
        assert {one["model"]: one["status"] for one in done.json["evaluations"]} == {
            "dropping": "failed", "digits-linear": "complete",
        }  # fmt: skip
        assert "--stochastic dropping" in done.err
