"""Times decoding in threads and in processes: python tests/benchmarks/decoding.py [--images N] [--output FILE]

Generated JPEGs of 500 x 375 px are resized and cropped to 224 px, as a bank has them. Beside images per second, the
table tells which share of a thread's CPU time may hold Python's interpreter lock (GIL): all of it but Pillow's decoding
and resizing, which let other threads run. One over that share bounds how many threads are of use; decoding in threads
is the better choice as long as that is more than a machine's cores, since a user's transforms cannot be sent to other
processes, and every process would have to import what defines them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any

from measuring import RESULTS, Row, print_table, write_table
from photos import make_photos
from PIL import Image, ImageFile

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from models.model_base import StandardTransform
from testbed.data.decoding import decode

REPEATS = 5


def decode_all(paths: Sequence[Path]) -> None:
    """Decodes images and forgets them."""
    transform = StandardTransform(256, 224)
    for path in paths:
        transform.to_pixels(decode(path, color_mode="RGB"))


@contextmanager
def timed(owner: type, name: str, seconds: list[float]) -> Iterator[None]:
    """Appends the CPU seconds of every call of a method to `seconds`."""
    method: Callable[..., Any] = getattr(owner, name)

    def call(*arguments: Any, **keywords: Any) -> Any:
        begin = thread_time()
        try:
            return method(*arguments, **keywords)
        finally:
            seconds.append(thread_time() - begin)

    setattr(owner, name, call)
    try:
        yield
    finally:
        setattr(owner, name, method)


def lock_share(paths: Sequence[Path]) -> tuple[float, float]:
    """(CPU seconds per image, share of them outside Pillow's decoding and resizing)."""
    unlocked: list[float] = []
    begin = thread_time()
    with timed(ImageFile.ImageFile, "load", unlocked), timed(Image.Image, "resize", unlocked):
        decode_all(paths)
    seconds = thread_time() - begin
    return seconds / len(paths), 1 - sum(unlocked) / seconds


def rate(pool: Executor, workers: int, paths: Sequence[Path]) -> float:
    """Images per second of `workers` that decode at once."""
    begin = perf_counter()
    list(pool.map(decode_all, [paths[start::workers] for start in range(workers)]))
    return len(paths) / (perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--output", type=Path, default=RESULTS / "decoding")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        make_photos(Path(folder), options.images, num_classes=2)
        paths = sorted(Path(folder).rglob("*.jpg"))
        decode_all(paths)
        seconds, share = lock_share(paths)
        rates: dict[tuple[str, int], list[float]] = {}
        counts = sorted({1, cores, 2 * cores})
        context = multiprocessing.get_context("spawn")
        for workers in counts:
            with ThreadPoolExecutor(workers) as threads, ProcessPoolExecutor(workers, context) as processes:
                rate(processes, workers, paths[: 2 * workers])  # starts them
                for _ in range(REPEATS):  # in turn, so that other work on the machine slows both
                    for kind, pool in (("threads", threads), ("processes", processes)):
                        rates.setdefault((kind, workers), []).append(rate(pool, workers, paths))
    rows: list[Row] = [
        {"workers": f"{workers} {kind}", "images_per_second": median(found), "best": max(found)}
        for (kind, workers), found in rates.items()
    ]
    print_table(rows)
    print(f"{1e3 * seconds:.2f} ms of CPU per image; at most {100 * share:.0f} % of it with the interpreter's lock.")
    write_table(rows, options.output, cpu_ms_per_image=1e3 * seconds, lock_share=share, images=options.images)


if __name__ == "__main__":
    main()
