"""What checking decoded images costs: python tests/benchmarks/bank_checks.py [--images N] [--output FILE]

A bank that is in the page cache is read batch by batch, twice by turns: with every sample checked, as at its first use,
and with none, as at any later one. Told is the difference as a share of what a worker takes for the same images and a
small network on one core, from the bank to encoded logits. It has to stay below 3 % from 32 px on; of smaller images it
is a larger share of next to nothing, below a second for a million.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from measuring import RESULTS, Row, print_table, write_table
from torch import nn
from torchvision.models import resnet18

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "src"), str(Path(__file__).resolve().parents[2])]

from tests.workbench import Workbench, logits, unit, whole_bank  # noqa: E402

BATCH, REPEATS = 64, 5


@dataclass(frozen=True, kw_only=True)
class Case:
    """Images of one shape, for a small network that takes them."""

    name: str
    shape: tuple[int, ...]
    network: Callable[[], nn.Module]
    num_classes: int


CASES = (
    Case(
        name="linear-8px",
        shape=(1, 8, 8),
        network=lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 10)),
        num_classes=10,
    ),
    Case(name="resnet18-32px", shape=(3, 32, 32), network=resnet18, num_classes=1000),
    Case(name="resnet18-224px", shape=(3, 224, 224), network=resnet18, num_classes=1000),
)


def seconds(work: Callable[[], Any]) -> float:
    """How long it takes."""
    begin = perf_counter()
    work()
    return perf_counter() - begin


def read(samples: Any, num_images: int) -> None:
    """All samples, a batch at a time."""
    for start in range(0, num_images, BATCH):
        samples[np.arange(start, min(start + BATCH, num_images))]


def unit_seconds(case: Case, bank: Any, bench: Workbench) -> float:
    """What a worker takes per image, beside reading it for the first time."""
    size = bank.shape[0]
    model, task = bench.model(case.name, lambda: case.network()), bench.task(num_samples=size)
    bench.tasks[task] = replace(bench.tasks[task], bank=bank, num_classes=case.num_classes)
    worker, whole = bench.worker(), unit(task, model, stop=min(size, 4 * BATCH), batch_size=BATCH)
    logits(worker.run(whole), model)  # loads the network, and fails where it has none
    return median(seconds(lambda: worker.run(whole)) for _ in range(REPEATS)) / whole.num_samples


def measured(case: Case, bench: Workbench, num_images: int) -> Row:
    """What a check and the rest of the work take per image."""
    images = np.random.default_rng(0).integers(0, 256, (num_images, *case.shape), np.uint8)
    bank = whole_bank(bench.folder / f"{case.name}.npy", images)
    checked, unchecked = [], []
    for _ in range(REPEATS):
        samples = bank.open()
        checked.append(seconds(lambda: read(samples, num_images)))  # noqa: B023
        unchecked.append(seconds(lambda: read(samples, num_images)))  # noqa: B023
    check, rest = (median(checked) - median(unchecked)) / num_images, unit_seconds(case, bank, bench)
    return {
        "images": case.name,
        "check_us": 1e6 * check,
        "rest_us": 1e6 * rest,
        "percent": 100 * check / (rest + check),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1_000)
    parser.add_argument("--output", type=Path, default=RESULTS / "bank_checks")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        bench = Workbench(Path(folder))
        rows = [measured(case, bench, options.images) for case in CASES]
    print_table(rows)
    write_table(rows, options.output, images=options.images)


if __name__ == "__main__":
    main()
