"""Prints how much faster the separation is than scikit-learn's neighbours: python tests/benchmarks/separation.py

The baseline is the paper's way: for each class, the nearest neighbour by brute force among the other classes, in
float64. It is measured on a slice of queries and scaled to all of them. Both sides use one thread; CPU seconds count,
with the compilation of our loops (or reading them from disk) left out and all else included. Memory is the most that
the minimum, the distances of all points and the report of `db.py --separation` took, images included, beyond what the
imports had taken before. No device is used.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time

os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy is imported

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from testbed.records import NORMS, Norm
from testbed.separation import minimal_class_separation, nearest_other_class, separation_report

METRICS = {"linf": "chebyshev", "l2": "euclidean", "l1": "manhattan"}
QUERIES = {"linf": 200, "l2": 4000, "l1": 200}  # euclidean distances are cheap, and cheaper still for many at once
TARGETS = {"linf": (100, 300), "l2": (3, None), "l1": (20, None)}
MOST_MEMORY = 1000  # MB

Images = NDArray[np.uint8]
Labels = NDArray[np.integer]


def fashion_mnist(folder: Path) -> tuple[Images, Labels]:
    """The 60,000 training images as rows, from the gzipped idx files."""
    labels = gzip.decompress((folder / "train-labels-idx1-ubyte.gz").read_bytes())[8:]
    images = gzip.decompress((folder / "train-images-idx3-ubyte.gz").read_bytes())[16:]
    return np.frombuffer(images, np.uint8).reshape(len(labels), -1), np.frombuffer(labels, np.uint8)


def cifar_sized() -> tuple[Images, Labels]:
    """50,000 smooth random images of 3,072 values in ten classes."""
    rng = np.random.default_rng(0)
    images = np.empty((50_000, 3, 32, 32), np.uint8)
    for start in range(0, len(images), 2000):
        waves = np.fft.rfft2(rng.normal(size=(2000, 3, 32, 32)))
        frequency = np.hypot(np.fft.fftfreq(32)[:, None], np.fft.rfftfreq(32)[None, :])
        smooth = np.fft.irfft2(waves / np.maximum(frequency, 1 / 32), s=(32, 32))
        images[start : start + 2000] = np.clip(128 + 12 * smooth, 0, 255)
    return images.reshape(len(images), -1), rng.integers(0, 10, len(images))


def seconds(function: Callable[[], object]) -> tuple[float, object]:
    """CPU seconds of all threads of a call, and what it returned."""
    start = process_time()
    result = function()
    return process_time() - start, result


def baseline_seconds(images: Images, labels: Labels, norm: Norm, num_queries: int) -> tuple[float, NDArray[np.float64]]:
    """CPU seconds of scikit-learn for all points, scaled from a slice of each class, and the slices' distances."""
    total, distances = 0.0, np.full(len(labels), np.nan)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        few = own[: max(1, num_queries // len(np.unique(labels)))]
        search = NearestNeighbors(n_neighbors=1, algorithm="brute", metric=METRICS[norm], n_jobs=1)
        search.fit(images[labels != label] / 255.0)
        queries = images[few] / 255.0
        taken, (found, _) = seconds(lambda search=search, queries=queries: search.kneighbors(queries))
        total += taken * len(own) / len(few)
        distances[few] = found[:, 0]
    return total, distances


def compile_searches(norms: list[Norm]) -> None:
    """Compiles all that the measured calls use."""
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (2000, 200)).astype(np.uint8), rng.integers(0, 3, 2000)
    for norm in norms:
        minimal_class_separation(images, labels, norm=norm)
        separation_report(images, labels, norm=norm)


def main() -> None:
    """Prints the table; the exit status is 1 where a target is missed or a distance differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fashion-mnist", type=Path, default=Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument(
        "--cifar-sized",
        action="store_true",
        help="a synthetic set of CIFAR-10's size instead (takes minutes; without structure it is the worst case)",
    )
    parser.add_argument("--norms", nargs="+", choices=NORMS, default=list(NORMS))
    arguments = parser.parse_args()
    compile_searches(arguments.norms)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    images, labels = cifar_sized() if arguments.cifar_sized else fashion_mnist(arguments.fashion_mnist)
    print(f"{len(images):,} x {images.shape[1]}, one thread, CPU seconds; the baseline is scaled from some queries.")
    print("norm   minimum               pair  min s  all s  report s    MB  sklearn (queries)  min ratio  all ratio")
    rows = []
    for norm in arguments.norms:
        how = {"norm": norm, "device": "cpu"}
        min_seconds, separation = seconds(partial(minimal_class_separation, images, labels, **how))
        all_seconds, (distances, _) = seconds(partial(nearest_other_class, images, labels, **how))
        report_seconds, report = seconds(partial(separation_report, images, labels, **how))
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        rows.append((norm, separation, distances, report, min_seconds, all_seconds, report_seconds, memory))
    is_good = True
    for norm, separation, distances, report, min_seconds, all_seconds, report_seconds, memory in rows:
        expected, slices = baseline_seconds(images, labels, norm, QUERIES[norm])
        is_known = ~np.isnan(slices)
        is_equal = np.allclose(slices[is_known], distances[is_known], rtol=1e-7)
        is_equal &= separation.min_distance == distances.min() and separation == report.separation
        ratios = expected / all_seconds, expected / min_seconds
        print(
            f"{norm:5}  {separation.min_distance:<9.6f} {separation.pair!s:>16} {min_seconds:6.1f} {all_seconds:6.1f} "
            f"{report_seconds:9.1f} {memory:5.0f} {expected:10.0f} ({QUERIES[norm]:5}) {ratios[1]:10.0f} "
            f"{ratios[0]:10.0f}  {'equal' if is_equal else 'DIFFERENT'}",
            flush=True,
        )
        met = [ratio >= target for ratio, target in zip(ratios, TARGETS[norm], strict=True) if target]
        is_good &= is_equal and all(met) and memory < MOST_MEMORY
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
