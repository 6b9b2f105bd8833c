"""How long it takes to say what is done of 400 models on 400 settings: `python tests/benchmarks/store_status.py`."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from sqlalchemy import insert

from testbed.store import schema
from testbed.store.status import STATES, status
from testbed.store.store import Store

MODELS, SETTINGS, REPEATS = 400, 400, 15
OUTCOMES = ("complete", "complete", "complete", "complete", "failed", "running", "partial")


def fill(store: Store) -> None:
    """Every model on every setting; a tenth of the settings have changed since."""
    ids = range(1, max(MODELS, SETTINGS) + 1)
    models, settings = ids[:MODELS], ids[:SETTINGS]
    version = {"is_current": True, "spec": {}}
    shared = {"fit_seed": 0, "noise_seed": 0, "numerics_fingerprint": "0" * 64, "n": 50_000, "num_draws": 1}
    shared |= {"shard_size": 1024, "reason": "", "attempts": 1, "numerics": {"dtype": "float32", "device": "cpu"}}
    rows = {
        schema.datasets: [
            {"name": "data", "split": "test", "fingerprint": "d", "n": 1, "class_names": [], "targets": [0],
             "sample_ids": b"", "sha256": ""}
        ],
        schema.models: [{"name": f"model-{i}", "label_space": "x", "hidden": False} for i in models],
        schema.model_versions: [{**version, "model_id": i, "fingerprint": f"m{i}"} for i in models],
        schema.eval_settings: [{"name": f"setting-{i}", "hidden": False} for i in settings],
        schema.setting_versions: [
            {**version, "setting_id": i, "dataset_id": 1, "fingerprint": f"s{i}", "is_current": i % 10 > 0}
            for i in settings
        ],
        schema.evaluations: [
            {**shared, "model_version_id": m, "setting_version_id": s, "status": OUTCOMES[(m * s) % len(OUTCOMES)]}
            for m in models for s in settings
        ],
    }  # fmt: skip
    with store.writing() as connection:
        for table, values in rows.items():
            connection.execute(insert(table), values)


def main() -> None:
    """Prints the counts and the median time of one look."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "store.sqlite") as store:
        fill(store)
        seconds = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            found = status(store, limit=20)
            seconds.append(time.perf_counter() - begin)
        counts = ", ".join(f"{found.total(state):,} {state}" for state in STATES)
        print(f"{MODELS} x {SETTINGS} evaluations: {counts}")
        print(f"what is done: median {1e3 * statistics.median(seconds):.0f} ms, fastest {1e3 * min(seconds):.0f} ms")


if __name__ == "__main__":
    main()
