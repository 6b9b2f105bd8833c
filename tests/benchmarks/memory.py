"""The most memory that an evaluation of 50,000 images at 224 px takes: python tests/benchmarks/memory.py

Anonymous memory (that of programs themselves, not of mapped files, which the system can drop at any time) of `eval.py`
and all processes below it, driver and one worker, looked at every half second. The images are hard links to 1,000
generated JPEGs in 1,000 class folders, and the network costs nothing. To stay under: 2 GB.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measuring import DEFINITIONS, RESULTS, evaluate, print_table, write_table
from photos import link_photos, make_photos

LIMIT = 2e9  # bytes
SECONDS = 0.5  # between two looks


def main() -> None:
    """Prints and writes the peak; the exit status is 1 where it is too high."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2,000 images")
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--output", type=Path, default=RESULTS / "memory", help="of the table, .csv and .json")
    parser.add_argument("--folder", type=Path, help="where to work, 8 GB; a temporary folder by default")
    options = parser.parse_args()
    num_images = 2000 if options.quick else options.images
    watch = Watch()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        make_photos(folder / "source", 1000, num_classes=1000)
        link_photos(folder / "source", folder / "photos", num_images)
        log = evaluate(
            "--models", "photos-patches", "--eval-settings", "photos", "--workers", 1,
            "--plugin", DEFINITIONS / "imagenet_like.py", "--data-root", folder,
            home=folder / "home", to=folder / "log", watch=watch,
        )  # fmt: skip
    rows = [watch.row(num_images, log.seconds)]
    print_table(rows)
    write_table(rows, options.output, limit=LIMIT, is_quick=options.quick, every_look=watch.looks)
    sys.exit(0 if watch.peak < LIMIT else 1)


class Watch:
    """Looks at a process and all below it until it ends.

    Attributes:
        looks: (seconds since the first, bytes of each process, the first one being the driver).
    """

    def __init__(self) -> None:
        self.looks: list[tuple[float, list[int]]] = []

    def __call__(self, process: subprocess.Popen[bytes]) -> None:
        begin = time.monotonic()
        while process.poll() is None:
            self.looks.append((round(time.monotonic() - begin, 1), [anonymous(pid) for pid in tree(process.pid)]))
            time.sleep(SECONDS)

    @property
    def peak(self) -> int:
        """The most bytes of all processes together."""
        return max(sum(parts) for _, parts in self.looks)

    def row(self, num_images: int, seconds: float) -> dict[str, Any]:
        """What is told of a run."""
        when = max(self.looks, key=lambda look: sum(look[1]))
        return {
            "images": num_images,
            "seconds": round(seconds, 1),
            "peak GB": round(self.peak / 1e9, 3),
            "peak of the driver GB": round(max(parts[0] for _, parts in self.looks) / 1e9, 3),
            "peak of the others GB": round(max(sum(parts[1:]) for _, parts in self.looks) / 1e9, 3),
            "peak at s": when[0],
            "looks": len(self.looks),
        }


def tree(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    try:
        children = [child for task in Path(f"/proc/{pid}/task").iterdir()
                    for child in (task / "children").read_text().split()]  # fmt: skip
    except OSError:  # it has ended meanwhile
        return
    for child in children:
        yield from tree(int(child))


def anonymous(pid: int) -> int:
    """Bytes of anonymous memory of a process; 0 of one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Anonymous:")), 0)


if __name__ == "__main__":
    main()
