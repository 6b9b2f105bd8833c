"""How long `eval.py` takes to its first unit with 400 models and 500 settings registered, and `--help`.

`python tests/benchmarks/startup.py [--many MODELS]`: the median of three runs for one model on one setting, and one run
for so many models on all settings, which is mostly preparation. Told is the time from the start of the process to the
first unit that a worker has answered, as the log of events has it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODELS, SETTINGS, PER_FILE, REPEATS = 400, 500, 10, 3
PATIENCE = 600.0  # seconds

MODEL_FILE = """
from registry import registry
from models.model_base import Model

def load(number):
    import torch
    torch.manual_seed(number)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))

for number in range({first}, {last}):
    registry.add_model(Model(
        name=f"tiny-{{number}}", transform=None, classifier_loader=lambda number=number: load(number),
        eval_batch_size=128, label_space="digits",
    ))
"""
SETTING_FILE = """
from registry import registry
from eval_settings.eval_setting_base import EvalSetting, Shift, StandardDataset

def brighter(level):
    return lambda images: (images + level).clamp(0, 1)

for number in range({first}, {last}):
    registry.add_eval_setting(EvalSetting(
        name=f"bright-{{number}}", dataset=StandardDataset(name="digits"), limit=32,
        perturbation_fn_gpu=brighter(number / 1000),
        shift=Shift(family="brightness", name=f"bright-{{number}}", clean_eval_setting="digits@limit32"),
    ))
"""


def write_definitions(folder: Path, *, models: int = MODELS, settings: int = SETTINGS) -> None:
    """Writes files of models `tiny-N` and settings `bright-N` for the digits, ten in each."""
    folder.mkdir()
    for kind, text, count in (("models", MODEL_FILE, models), ("settings", SETTING_FILE, settings)):
        for first in range(0, count, PER_FILE):
            content = text.format(first=first, last=min(first + PER_FILE, count))
            (folder / f"{kind}_{first}.py").write_text(content)


def seconds_of_help(home: Path) -> float:
    """Time of `eval.py --help`."""
    begin = time.time()
    subprocess.run(
        [sys.executable, ROOT / "eval.py", "--help"], env=_environment(home), stdout=subprocess.DEVNULL, check=True
    )
    return time.time() - begin


def seconds_to_first_unit(folder: Path, *, models: Sequence[str], settings: Sequence[str]) -> float:
    """Time from the start of the process to the first unit that a worker has answered; the rest is not waited for."""
    log = Path(tempfile.mkdtemp(dir=folder))
    names = ["--models", *models, "--eval-settings", *settings]
    places = ["--plugin", str(folder / "definitions"), "--logdir", str(log)]
    begin = time.time()
    process = subprocess.Popen(
        [sys.executable, ROOT / "eval.py", *names, *places, "--quiet"],
        env=_environment(folder),
        stdout=subprocess.DEVNULL,
    )
    try:
        while time.time() - begin < PATIENCE:
            if (at := _first_unit(log / "evaluations.events.jsonl")) is not None:
                return at - begin
            if process.poll() is not None:
                raise SystemExit(f"eval.py ended with {process.returncode} before any unit")
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    raise SystemExit(f"no unit within {PATIENCE:.0f} s")


def _first_unit(file: Path) -> float | None:
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    events = (json.loads(line) for line in lines if line.endswith("\n"))
    return next((datetime.fromisoformat(e["at"]).timestamp() for e in events if e["event"] == "unit"), None)


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "TESTBED_HOME": str(home), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}


def main() -> None:
    """Prints the three times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--many", type=int, default=20, metavar="MODELS", help="Models on all settings; 0 for none.")
    many: int = parser.parse_args().many
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_definitions(folder / "definitions")
        helps = [seconds_of_help(folder) for _ in range(REPEATS)]
        print(f"--help: {statistics.median(helps):.2f} s")
        ones = [seconds_to_first_unit(folder, models=["tiny-7"], settings=["bright-3"]) for _ in range(REPEATS)]
        print(f"one model on one setting of {MODELS} and {SETTINGS}: {statistics.median(ones):.1f} s to the first unit")
        if many:
            names = [f"tiny-{number}" for number in range(many)]
            seconds = seconds_to_first_unit(folder, models=names, settings=["bright-*"])
            print(f"{many} models on all settings, {many * SETTINGS:,} evaluations: {seconds:.1f} s to the first unit")


if __name__ == "__main__":
    main()
