"""What a user can see of a run: where the time went, the log of events, and what the driver does not load."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT, Command, environment

BROKEN = """
from registry import registry
from models.model_base import Model

def broken(images, model):
    raise ValueError('broken on purpose')

registry.add_model(Model(name='broken', transform=None, classifier_loader=lambda: None, classify=broken,
                         eval_batch_size=32, label_space='digits'))
"""


def events(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("workers", [0, 1])
def test_the_profile_adds_up_and_the_log_tells_the_run(command: Command, tmp_path: Path, workers: int) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    done = command(
        "eval.py", "--models", "digits-linear", "broken", "--eval-settings", "digits-noise-linf-0.1", "--draws", 1,
        "--limit", 40, "--workers", workers, "--profile", "--logdir", "log", "--plugin", "broken.py",
    )  # fmt: skip
    assert done.code == 1, done.err
    found = events(tmp_path / "log" / "evaluations.events.jsonl")
    kinds = [event["event"] for event in found]
    assert kinds[:2] == ["run", "plan"]
    assert kinds[-2:] == ["end", "profile"]
    assert found[0]["argv"][1] == "--models"
    assert {(e["model"], e["missing_samples"]) for e in found[1]["evaluations"]} == {
        ("digits-linear", 40),
        ("broken", 40),
    }
    units = [event for event in found if event["event"] == "unit"]
    assert {"read", "forward", "encode"} <= {stage for unit in units for stage in unit["seconds"]}
    failed = next(event for event in found if event["event"] == "failed")
    assert failed["model"] == "broken"
    assert "broken on purpose" in failed["traceback"].splitlines()[-1]
    assert "in broken" in failed["traceback"]

    columns = found[-1]["seconds"]
    assert list(columns) == (["driver", "cpu"] if workers else ["cpu"])
    walls = {round(sum(column.values()), 6) for column in columns.values()}
    assert len(walls) == 1
    assert {"start-up", "preflight", "worker start", "forward", "idle"} <= set(columns["cpu"])
    told = done.err.split("Where the time went:\n")[1].splitlines()
    assert told[0].split() == list(columns)
    assert next(line for line in told if line.startswith("total")).count("100 %") == len(columns)


def test_one_unit_needs_one_worker_and_nobody_asked_for_a_profile(command: Command, tmp_path: Path) -> None:
    done = command("eval.py", "--models", "digits-linear", "--eval-settings", "digits", "--workers", 2, "--limit", 9,
                   "--logdir", "log")  # fmt: skip
    assert done.code == 0, done.err
    assert "Where the time went" not in done.err
    assert events(tmp_path / "log" / "evaluations.events.jsonl")[0]["devices"] == ["cpu"]


def test_a_driver_with_workers_loads_nothing_heavy(tmp_path: Path, cache_home: Path) -> None:
    """Seconds before the first unit: what runs models is loaded by workers, while the driver goes on."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / "src")!r})
sys.argv = ["eval.py", "--models", "digits-linear", "--eval-settings", "digits", "--logdir", "log", "--quiet"]
import runpy
main = runpy.run_path({str(ROOT / "eval.py")!r})["main"]
if __name__ == "__main__":
    main(standalone_mode=False)
    heavy = {{"torch", "torchvision", "sklearn", "numba", "timm", "pandas", "alembic"}}
    print("loaded:", *sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(cache_home),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "loaded:\n" in done.stdout.replace("loaded: \n", "loaded:\n")
