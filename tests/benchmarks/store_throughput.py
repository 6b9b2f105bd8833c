"""Writing and reading 50,000 x 1,000 logits: the store, checksums included, beside np.save with fsync in one run.

    python tests/benchmarks/store_throughput.py [--folder DIR] [--repeats N]

The store should reach 0.15 of np.save's MB/s. "store write" encodes and hashes as well, which workers do beside the
driver in an evaluation; "driver's part" is what is left for the one process that writes. The machine should be idle:
the store takes more of the processor than np.save does, so that other programs slow it down more.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from testbed.codec import checksum, encode
from testbed.records import DatasetVersion, EvaluationKey, ModelVersion, SettingVersion, Shard, ShardRange
from testbed.store.store import Store
from testbed.store.views import planned_ranges

NUM_SAMPLES, NUM_CLASSES, SHARD_SIZE = 50_000, 1_000, 1_000  # shards of 4 MB
TARGET = 0.15
KEY = EvaluationKey(model_fingerprint="m" * 64, setting_fingerprint="s" * 64, fit_seed=0, noise_seed=0, numerics={})


def main() -> None:
    """Prints MB/s of each way, the median of the repeats."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where to write; a temporary folder by default")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    logits = np.random.default_rng(0).normal(size=(NUM_SAMPLES, NUM_CLASSES)).astype(np.float32)
    rates: dict[str, list[float]] = {}
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for name, work in ways(Path(folder), logits):
                rates.setdefault(name, []).append(logits.nbytes / 1e6 / seconds(work))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    for name, rate in medians.items():
        print(f"{name:20s} {rate:8,.0f} MB/s")
    for name in ("store write", "driver's part"):
        print(f"{name} / np.save and fsync: {medians[name] / medians['np.save and fsync']:.2f} (target {TARGET})")


def seconds(work: Callable[[], None]) -> float:
    """Wall-clock time of `work`."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ways(folder: Path, logits: NDArray[np.float32]) -> list[tuple[str, Callable[[], None]]]:
    """Names and functions, to be called in this order."""
    file, database, second = folder / "logits.npy", folder / "store.sqlite", folder / "second.sqlite"
    put_definitions(database)
    put_definitions(second)
    places = planned_ranges(num_draws=1, num_samples=NUM_SAMPLES, shard_size=SHARD_SIZE)
    made = [shard(where, logits) for where in places]
    return [
        ("np.save and fsync", lambda: save(file, logits)),
        ("np.load", lambda: check(np.load(file), logits)),
        ("store write", lambda: write(database, (shard(where, logits) for where in places))),
        ("driver's part", lambda: write(second, made)),
        ("store read", lambda: read(database, logits)),
        ("store predictions", lambda: read_predictions(database, logits)),
    ]


def save(file: Path, logits: NDArray[np.float32]) -> None:
    """The baseline: one file, durable when it returns."""
    with open(file, "wb") as stream:
        np.save(stream, logits)
        stream.flush()
        os.fsync(stream.fileno())


def write(database: Path, shards: Iterable[Shard]) -> None:
    """One complete evaluation, one transaction per shard, each made when its turn comes."""
    with Store.open(database) as store:
        state = store.put_evaluation(KEY, num_draws=1, num_samples=NUM_SAMPLES, shard_size=SHARD_SIZE, run_id=None)
        for finished in shards:
            store.put_shards([(state.id, finished)])
        store.complete_evaluation(state.id, [])


def shard(where: ShardRange, logits: NDArray[np.float32]) -> Shard:
    """A shard as a worker makes it: encoded, with its checksum."""
    part = logits[where.start : where.stop]
    payload, labels = encode(part), part[:, 0].astype(np.int32)
    return Shard(
        where=where, predictions=labels, target_ranks=labels, payload=payload, codec="f32",
        num_outputs=NUM_CLASSES, sha256=checksum(payload), num_nonfinite=0, batch_size=100, seconds=0.0, worker="0",
    )  # fmt: skip


def put_definitions(database: Path) -> None:
    """Makes a store that holds the model, the data set and the setting of `KEY`."""
    dataset = DatasetVersion(
        name="data",
        split="test",
        fingerprint="d" * 64,
        targets=np.zeros(NUM_SAMPLES, np.int32),
        sample_ids=tuple(f"test/{index}" for index in range(NUM_SAMPLES)),
        class_names=tuple(map(str, range(NUM_CLASSES))),
    )
    with Store.open(database) as store:
        store.put_model(ModelVersion(name="model", label_space="space", fingerprint="m" * 64, spec={}))
        store.put_dataset(dataset)
        store.put_setting(SettingVersion(name="data", fingerprint="s" * 64, dataset_fingerprint="d" * 64, spec={}))


def read(database: Path, logits: NDArray[np.float32]) -> None:
    """All logits, checksums verified."""
    with Store.open(database, read_only=True) as store:
        check(store.evaluation("model", "data").logits(), logits)


def read_predictions(database: Path, logits: NDArray[np.float32]) -> None:
    """What metrics need: predictions and ranks, checksums verified; the rate counts the logits they stand for."""
    with Store.open(database, read_only=True) as store:
        check(store.evaluation("model", "data").predictions()[0, :10], logits[:10, 0].astype(np.int32))


def check(found: NDArray[np.generic], expected: NDArray[np.generic]) -> None:
    """Stops unless what was read is what was written, by a look at the first and last rows."""
    if found[0].tobytes() != expected[0].tobytes() or found[-1].tobytes() != expected[-1].tobytes():
        raise SystemExit("what was read is not what was written")


if __name__ == "__main__":
    main()
