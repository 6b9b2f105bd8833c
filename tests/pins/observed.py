"""What stored results are found by, as the code computes it now: `test_pins.py` compares it with what was written down.

PYTHONPATH=src:. python tests/pins/observed.py
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = Path(__file__).resolve().parent / "plugin"
MODELS = (
    ("digits-linear", None), ("digits-resnet", None), ("digits-odenet", None), ("digits-random-forest", None),
    ("digits-1nn", None), ("1-nn", None), ("random-forest", None), ("1-nn-noise-linf-0.1", None),
    ("linear-pixels", None), ("digits-linear-smoothed-0.25", None), ("fashion-mnist-cnn", None),
    ("fashion-mnist-cnn-mscr-linf", None), ("fashion-mnist-odenet", None), ("pinned-pixels", None),
)  # fmt: skip
SETTINGS = (
    "digits", "digits-noise-linf-0.1", "digits-noise-l2-0.5", "digits-c.fog.3_in-memory", "digits-pgd-linf-0.1",
    "cifar10-mscr-linf", "cifar10-noise-linf-0.03", "cifar10.1-v6", "cifar10-p.tilt", "val", "imagenet-a", "imagenet-r",
    "imagenetv2-matched-frequency", "imagenet-c.fog.2_in-memory", "imagenet-c.fog.2_on-disk", "pgd.linf.eps2",
    "objectnet-1.0", "imagenet-sketch", "2d-a", "pinned-upside-down",
)  # fmt: skip
STREAMS = ("uniform-linf", "uniform-l2", "uniform-l1", "gaussian", "snow/field")


def fingerprints() -> dict[str, str]:
    """SHA-256 by name of models and settings; the data of a setting are left out."""
    from registry import registry
    from testbed.definitions import Sources, load_definitions
    from testbed.engine.identity import model_version, setting_version

    load_definitions(Sources(plugins=(PLUGIN,)))
    models = {name: model_version(registry.model(name, space)).fingerprint for name, space in MODELS}
    settings = {}
    for name in SETTINGS:
        setting = registry.eval_setting(name)
        settings[f"setting {name}"] = setting_version(
            setting,
            dataset_fingerprint="d" * 64,
            sample_indices=None,
            separation=None,
            canonical_size=32,
            source=registry.setting_source(name),
        ).fingerprint
    return models | settings


def noise_streams() -> dict[str, str]:
    """SHA-256 by stream and kind of number of what 20 streams draw for three samples."""
    from testbed.randomness import normal, stream_key, uniform

    digests = {}
    for stream in STREAMS:
        for seed, draw in ((0, 0), (7, 3)):
            key = stream_key(seed, purpose="eval", dataset="digits", stream=stream)
            units = uniform(key, [0, 5, 1796], draw=draw, shape=(2, 8, 8))
            digests[f"{stream} uniform {seed} {draw}"] = sha256(units.numpy().tobytes())
            normals = normal(key, [0, 5, 1796], draw=draw, shape=(2, 8, 8))
            # the inverse distribution function may differ in its last bit between releases of SciPy
            digests[f"{stream} normal {seed} {draw}"] = sha256(np.round(normals.numpy() * 1e4).astype("<i4").tobytes())
    return digests


def bank_keys() -> dict[str, str]:
    """Keys by transform of the decoded images that lie under a user's cache folder, for libraries of version 1."""
    from eval_settings.objectnet import CutBorder
    from models._image_transform import ImageTransform
    from models.model_base import StandardTransform
    from testbed.data import imagebank
    from testbed.data.imagepipeline import Pipeline
    from testbed.records import Samples

    samples = Samples(
        dataset="photos", split="test", items=[Path("a.png")], targets=np.zeros(1, np.int32), sample_ids=("a.png",),
        class_names=("a",), fingerprint="f" * 64,
    )  # fmt: skip
    transforms: dict[str, dict[str, Any]] = {
        "none": {"canonical_size": 32, "setting_transform": None, "model_transform": None},
        "standard": {"canonical_size": None, "setting_transform": None, "model_transform": StandardTransform(256, 224)},
        "image": {
            "canonical_size": None,
            "setting_transform": None,
            "model_transform": ImageTransform(crop_size=(224, 224), resize_size=(232, 232)),
        },
        "cut border": {
            "canonical_size": None,
            "setting_transform": CutBorder(2),
            "model_transform": StandardTransform(256, 224),
        },
    }
    with mock.patch.object(imagebank, "_installed", return_value="1"):
        return {
            name: imagebank.bank_fingerprint(Pipeline(samples=samples, **fields), "identity")
            for name, fields in transforms.items()
        }


def evaluations(home: Path, workers: int) -> tuple[list[list[Any]], dict[str, Any]]:
    """Rows of the store and the --json object of a run of the plugin's model, with this number of workers.

    Each row has names, fingerprints, seeds, the keys of numerics, and the hashes of one shard.
    """
    database = home / f"{workers}.sqlite"
    program(
        home, "eval.py", "--workers", workers, "--quiet", "--db", "--db-url", f"sqlite:///{database}",
        "--plugin", PLUGIN,
        "--models", "pinned-pixels", "--eval-settings", "pinned-upside-down", "digits-noise-linf-0.1", "--limit", "50",
        "--draws", "2", "--json", out=(answer := home / f"{workers}.json"),
    )  # fmt: skip
    with sqlite3.connect(database) as connection:
        rows = connection.execute(
            "SELECT m.name, mv.fingerprint, s.name, sv.fingerprint, e.fit_seed, e.noise_seed, e.numerics, e.n, "
            "e.num_draws, l.draw, l.start, l.stop, l.codec, l.sha256, l.labels_sha256 "
            "FROM logit_shards l JOIN evaluations e ON e.id = l.evaluation_id "
            "JOIN model_versions mv ON mv.id = e.model_version_id JOIN models m ON m.id = mv.model_id "
            "JOIN setting_versions sv ON sv.id = e.setting_version_id JOIN eval_settings s ON s.id = sv.setting_id "
            "ORDER BY s.name, l.draw, l.start"
        ).fetchall()
    printed = json.loads(answer.read_text())
    del printed["store"]  # a path
    return [list(row) for row in rows], printed


def program(home: Path, script: str, *arguments: object, out: Path) -> None:
    """Runs a script of the product; its standard output goes to a file."""
    variables = {"TESTBED_HOME": str(home), "TESTBED_NO_DOWNLOAD": "1", "CUDA_VISIBLE_DEVICES": ""}
    with open(out, "w") as stream:
        subprocess.run(
            [sys.executable, str(ROOT / script), *map(str, arguments)],
            stdout=stream,
            env={**os.environ, **variables},
            cwd=home,
            check=True,
        )


def sha256(content: bytes) -> str:
    """SHA-256 (hex)."""
    return hashlib.sha256(content).hexdigest()


def observed(home: Path) -> dict[str, Any]:
    """All of it, by subject; `home` is an empty folder."""
    rows, answer = evaluations(home, 0)
    return {
        "fingerprints": fingerprints(),
        "noise streams": noise_streams(),
        "bank keys": bank_keys(),
        "evaluations": rows,
        "json": answer,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(observed(Path(folder)), indent=1))
