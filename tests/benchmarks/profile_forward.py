"""The share of an evaluation's time that goes into forward passes: python tests/benchmarks/profile_forward.py

ResNet-18 at 224 px on clean images, with one CPU worker of one thread per core, first with nothing decoded, then with
the decoded images in the cache. The share is that of the workers' seconds in forward passes, as stored with the logits,
in the wall-clock time of the whole command, start-up included, times the workers. The target of 85 % is that of the
second. `--profile` of `eval.py` tells where the rest goes; its table is printed below each run. The machine should be
idle, as everything but the forward passes waits longer where it is not.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from measuring import DEFINITIONS, RESULTS, Log, evaluate, print_table, write_table
from photos import make_photos

TARGET = 0.85


def main() -> None:
    """Prints and writes the table; the exit status is 1 where the target is missed, unless --quick."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1,000 images: start-up then weighs more")
    parser.add_argument("--images", type=int, default=4096, help="1,000 or more")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--output", type=Path, default=RESULTS / "profile_forward", help="of the table, .csv and .json")
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder by default")
    options = parser.parse_args()
    num_images = 1000 if options.quick else options.images
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        make_photos(Path(folder) / "photos", num_images, num_classes=1000)
        rows = []
        for images in ("not decoded yet", "decoded before"):
            log = run(Path(folder), images, options.workers)
            rows.append(row(log, images, num_images, options.workers))
            print(log.output, flush=True)
    print_table(rows)
    write_table(rows, options.output, target=TARGET, is_quick=options.quick)
    sys.exit(0 if options.quick or rows[-1]["share"] >= TARGET else 1)


def run(folder: Path, name: str, workers: int) -> Log:
    """One evaluation into a store of its own."""
    return evaluate(
        "--models", "photos-resnet18", "--eval-settings", "photos", "--batch-size", 32, "--workers", workers,
        "--profile", "--plugin", DEFINITIONS / "imagenet_like.py", "--data-root", folder,
        home=folder / "home", to=folder / f"{name}.sqlite",
    )  # fmt: skip


def row(log: Log, images: str, num_images: int, workers: int) -> dict[str, Any]:
    """What is told of a run."""
    forward = log.forward_seconds()
    return {
        "images": images,
        "number": num_images,
        "workers": workers,
        "wall s": round(log.seconds, 2),
        "forward s, all workers": round(forward, 2),
        "share": round(forward / (log.seconds * workers), 4),
        "images/s": round(num_images / log.seconds, 1),
    }


if __name__ == "__main__":
    main()
