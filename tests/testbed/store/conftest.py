"""Stores to test, and small records to put into them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.postgresql import Server

from testbed.codec import checksum, encode
from testbed.fingerprint import fingerprint
from testbed.records import DatasetVersion, EvaluationKey, ModelVersion, SettingVersion, Shard, ShardRange, Shift
from testbed.store.store import Store
from testbed.store.views import EvaluationState

BACKENDS = ("sqlite", "postgresql")


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new store may be made; one parameter per kind of database."""
    if request.param == "postgresql":
        server: Server = request.getfixturevalue("postgresql")
        return server.new_database()
    return f"sqlite:///{tmp_path / 'results' / 'store.sqlite'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened


@dataclass(frozen=True)
class Samples:
    """Records about a data set of ten samples and three classes."""

    num_samples: int = 10
    num_classes: int = 3
    shard_size: int = 4

    def model(self, name: str = "net", **changes: Any) -> ModelVersion:
        content = {"name": name, "label_space": "three", "spec": {"width": 8}} | changes
        return ModelVersion(fingerprint=fingerprint(content), **content)

    def dataset(self, name: str = "data") -> DatasetVersion:
        ids = tuple(f"test/{index}" for index in range(self.num_samples))
        targets = np.arange(self.num_samples) % self.num_classes
        return DatasetVersion(
            name=name, split="test", fingerprint=fingerprint(name), targets=targets, sample_ids=ids,
            class_names=tuple("abc"),
        )  # fmt: skip

    def setting(self, name: str = "data", **changes: Any) -> SettingVersion:
        content = {"name": name, "dataset_fingerprint": self.dataset().fingerprint, "spec": {}} | changes
        return SettingVersion(fingerprint=fingerprint(repr(content)), **content)

    @property
    def shift(self) -> Shift:
        return Shift(family="uniform-linf", name="noise", clean_eval_setting="data", norm="linf", epsilon=0.1)

    def key(self, model: ModelVersion | None = None, setting: SettingVersion | None = None, **changes: Any) -> Any:
        key = EvaluationKey(
            model_fingerprint=(model or self.model()).fingerprint,
            setting_fingerprint=(setting or self.setting()).fingerprint,
            fit_seed=0,
            noise_seed=0,
            numerics={"dtype": "float32", "device": "cpu"},
        )
        return replace(key, **changes)

    def logits(self, draw: int = 0) -> NDArray[np.float32]:
        values = np.random.default_rng(draw).normal(size=(self.num_samples, self.num_classes))
        return values.astype(np.float32)

    def shard(self, where: ShardRange, logits: NDArray[np.float32] | None = None, **changes: Any) -> Shard:
        part = (self.logits(where.draw) if logits is None else logits)[where.start : where.stop]
        payload = encode(part)
        shard = Shard(
            where=where,
            predictions=part.argmax(1).astype(np.int32),
            target_ranks=np.arange(where.start, where.stop, dtype=np.int32) % self.num_classes,
            payload=payload,
            codec="f32",
            num_outputs=part.shape[1],
            sha256=checksum(payload),
            num_nonfinite=0,
            batch_size=2,
            seconds=0.5,
            worker="worker 0",
        )
        return replace(shard, **changes)

    def put_definitions(self, store: Store, *settings: SettingVersion) -> None:
        store.put_model(self.model())
        store.put_dataset(self.dataset())
        for setting in settings or (self.setting(),):
            store.put_setting(setting)

    def begin(self, store: Store, key: EvaluationKey | None = None, *, num_draws: int = 1) -> EvaluationState:
        self.put_definitions(store)
        return self.take_up(store, key, num_draws=num_draws)

    def take_up(self, store: Store, key: EvaluationKey | None = None, *, num_draws: int = 1) -> EvaluationState:
        return store.put_evaluation(
            key or self.key(),
            num_draws=num_draws,
            num_samples=self.num_samples,
            shard_size=self.shard_size,
            run_id=None,
        )

    def fill(self, store: Store, state: EvaluationState) -> None:
        store.put_shards((state.id, self.shard(where)) for where in state.missing())

    def completed(self, store: Store, key: EvaluationKey | None = None, *, num_draws: int = 1) -> int:
        state = self.begin(store, key, num_draws=num_draws)
        self.fill(store, state)
        store.complete_evaluation(state.id, [])
        return state.id

    def supersede(self, store: Store, model: ModelVersion) -> None:
        """Puts the model and completes an evaluation of it, which leaves earlier ones of its name behind."""
        self.put_definitions(store)
        store.put_model(model)
        state = self.take_up(store, self.key(model))
        self.fill(store, state)
        store.complete_evaluation(state.id, [])


@pytest.fixture
def samples() -> Samples:
    return Samples()


Execute = Callable[..., Any]


@pytest.fixture
def execute(store: Store) -> Execute:
    """Runs one SQL statement on the store behind its back, with `?` for each value."""

    def run(statement: str, *values: Any) -> Any:
        with store.database.engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                statement = statement.replace("?", "%s")
            result = connection.exec_driver_sql(statement, values)
            rows = result.fetchall() if result.returns_rows else None
            connection.commit()
            return rows

    return run


@pytest.fixture
def rewrite(store: Store, execute: Execute) -> Execute:
    """As `execute`, for what the testbed itself could have written: the rows that are changed get their digests."""

    def run(statement: str, *values: Any) -> None:
        execute(statement, *values)
        table = re.split(r"update |from ", statement)[1].split()[0]
        execute(f"update {table} set digest = null")  # noqa: S608
        execute("update evaluations set digest = null")
        with store.writing():
            pass

    return run
