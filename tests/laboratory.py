"""A store with evaluations that are right where a test says so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from sqlalchemy import update

from testbed.codec import checksum, encode
from testbed.engine.preflight import Ready
from testbed.fingerprint import fingerprint
from testbed.metrics.accuracy import predictions, target_ranks
from testbed.records import (
    DatasetVersion,
    EvaluationKey,
    ModelVersion,
    SettingVersion,
    Shard,
    ShardRange,
    Shift,
    WantedEvaluation,
)
from testbed.results import store_comparison, store_metrics
from testbed.run_split import RunSplit
from testbed.store.definitions import put_definitions
from testbed.store.evaluation import Evaluation
from testbed.store.schema import evaluations as evaluations_table
from testbed.store.store import Store

LEVELS = {"toy-mscr-linf": ("mscr", 0.1), "toy-noise-linf-0.05": ("noise", 0.05), "toy-mscr-l2": ("mscr", 0.7),
          "toy-mscr-linf-shared": ("mscr", 0.1)}  # fmt: skip
CORRUPTED = re.compile(r"toy-c\.([a-z_]+)(?:\.([1-5]))?_(in-memory|on-disk)(-[a-z0-9-]+)?(@limit\d+)?")


@dataclass
class Lab:
    """Puts evaluations of the data set 'toy' into a store: samples of two classes in turn."""

    store: Store
    num_samples: int
    test_fraction: float | None = None
    has_labels: bool = True  # of what is put next

    @property
    def url(self) -> str:
        return self.store.url

    def put(self, model: str, setting: str, right: ArrayLike, **seeds: Any) -> Evaluation:
        """An evaluation that is right on [draws, n] samples, with its metrics; `fit_seed`, `noise_seed`, numerics."""
        correct = np.atleast_2d(np.asarray(right, bool))
        seeds = {"fit_seed": 0, "noise_seed": 0, "threads": 1} | seeds
        evaluation_id = self._start(model, setting, correct, seeds)
        for draw, row in enumerate(correct):
            self.store.put_shards([(evaluation_id, self._shard(draw, row, seeds["fit_seed"]))])
        store_metrics(self.store, evaluation_id)
        return self.store.evaluation_by_id(evaluation_id)

    def pair(
        self, model: str, clean: ArrayLike, shifted: ArrayLike, *, setting: str = "toy-mscr-linf", **seeds: Any
    ) -> tuple[Evaluation, Evaluation]:
        """A shifted evaluation, compared with its clean one: (shifted, clean)."""
        parent = self.put(model, "toy", clean, **{**seeds, "noise_seed": 0})
        found = self.put(model, setting, shifted, **seeds)
        store_comparison(self.store, found, parent)
        return self.store.evaluation_by_id(found.id), parent

    def _start(self, model: str, setting: str, correct: np.ndarray, seeds: dict[str, Any]) -> int:
        content: dict[str, Any] = {"name": model, "label_space": "two", "spec": {}}
        model_version = ModelVersion(fingerprint=fingerprint(content), **content)
        ids = tuple(f"test/{index}" for index in range(self.num_samples))
        mark: Any = self.num_samples if self.has_labels else [self.num_samples, "no labels"]
        targets = np.arange(self.num_samples) % 2 if self.has_labels else np.full(self.num_samples, -1)
        dataset = DatasetVersion(name="toy", split="test", fingerprint=fingerprint(mark), sample_ids=ids,
                                 targets=targets, class_names=("even", "odd"))  # fmt: skip
        shift, spec = _corruption(setting), {}
        if setting in LEVELS:
            kind, epsilon = LEVELS[setting]
            norm: Any = "l2" if "l2" in setting else "linf"
            family = f"uniform-{norm}{'-shared' if setting.endswith('-shared') else ''}"
            shift = Shift(family=family, name=kind, norm=norm, epsilon=epsilon, clean_eval_setting="toy")
            spec["perturbation_fn_gpu"] = {"boundary": "truncate" if norm == "linf" else "clip"}
            if kind == "mscr":
                spec["separation"] = {"splits": ["test"], "num_points": 8, "min_distance": 2 * epsilon, "pair": [0, 1]}
        if self.test_fraction is not None:
            spec["run_split"] = {"test_fraction": self.test_fraction, "limit": None}
        version = SettingVersion(name=setting, fingerprint=fingerprint([setting, spec, self.num_samples]), spec=spec,
                                 dataset_fingerprint=dataset.fingerprint, shift=shift,
                                 sample_indices=_first(setting))  # fmt: skip
        self.store.put_model(model_version)
        self.store.put_dataset(dataset)
        self.store.put_setting(version)
        numerics = {name: value for name, value in seeds.items() if not name.endswith("_seed")}
        key = EvaluationKey(model_fingerprint=model_version.fingerprint, setting_fingerprint=version.fingerprint,
                            fit_seed=seeds["fit_seed"], noise_seed=seeds["noise_seed"],
                            numerics=numerics)  # fmt: skip
        run_id = self.store.start_run({})
        draws, n = correct.shape
        return self.store.put_evaluation(key, num_draws=draws, num_samples=n, shard_size=n, run_id=run_id).id

    def _shard(self, draw: int, right: np.ndarray, fit_seed: int) -> Shard:
        targets = self.targets(fit_seed)[: len(right)]
        logits = np.zeros((len(right), 2), np.float32)
        logits[np.arange(len(right)), np.where(right, targets, 1 - targets)] = 1
        payload = encode(logits)
        return Shard(where=ShardRange(draw=draw, start=0, stop=len(right)), predictions=predictions(logits),
                     target_ranks=target_ranks(logits, targets if self.has_labels else np.full(len(right), -1)),
                     payload=payload, codec="f32", num_outputs=2,
                     sha256=checksum(payload), num_nonfinite=0, batch_size=8, seconds=0.0, worker="cpu/0")  # fmt: skip

    def targets(self, fit_seed: int) -> np.ndarray:
        """The classes of the samples of a run."""
        indices = np.arange(self.num_samples)
        if self.test_fraction is not None:
            indices = RunSplit(test_fraction=self.test_fraction).test_indices(self.num_samples, seed=fit_seed)
        return indices % 2


def put_planned(store: Store, evaluations: Sequence[Ready]) -> None:
    """Stores the evaluations of a plan as if some of each had been run."""
    put_definitions(store, models=(one.model_version for one in evaluations),
                    datasets=(one.dataset_version for one in evaluations),
                    settings=(one.setting_version for one in evaluations))  # fmt: skip
    wanted = [
        WantedEvaluation(key=one.key, num_draws=1, num_samples=one.num_samples, shard_size=one.shard_size)
        for one in evaluations
    ]
    store.put_evaluations(wanted, run_id=None)
    with store.writing() as connection:
        connection.execute(update(evaluations_table).values(status="running"))


def _first(setting: str) -> np.ndarray | None:
    """The samples of a setting with a limit, the first ones; None for all."""
    _, _, limit = setting.partition("@limit")
    return np.arange(int(limit), dtype=np.int32) if limit else None


def _corruption(setting: str) -> Shift | None:
    """The shift of `toy-c.NAME.SEVERITY_in-memory` or `_on-disk`, both with a suffix, and with a limit."""
    if (found := CORRUPTED.fullmatch(setting)) is None:
        return None
    name, severity, kind, suffix, limit = found.groups()
    family = f"common-corruption{'-on-disk' if kind == 'on-disk' else ''}{suffix or ''}"
    return Shift(family=family, name=name, severity=int(severity) if severity else None,
                 clean_eval_setting=f"toy{limit or ''}")  # fmt: skip


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A store for eight samples that all runs see."""
    with Store.open(tmp_path / "lab.sqlite") as store:
        yield Lab(store, num_samples=8)


@pytest.fixture
def resplit_lab(tmp_path: Path) -> Iterator[Lab]:
    """A store for ten samples, of which each run sees other four."""
    with Store.open(tmp_path / "resplit.sqlite") as store:
        yield Lab(store, num_samples=10, test_fraction=0.4)
