"""Stores whose accuracies are written down here: what a figure shows can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from testbed.codec import checksum
from testbed.fingerprint import fingerprint
from testbed.logit_policy import NO_LOGITS
from testbed.records import DatasetVersion, EvaluationKey, ModelVersion, SettingVersion, Shard, Shift
from testbed.results import store_comparison, store_metrics
from testbed.store.evaluation import Evaluation
from testbed.store.store import Store

N = 100  # samples, so that a count is a percentage
EPSILON_MIN = 0.004
SEPARATION = {"splits": ["all"], "num_points": 500, "min_distance": 2 * EPSILON_MIN, "pair": [0, 1]}

Right = Mapping[float, Sequence[Sequence[int]]]  # by noise level, for every run, how many are right in each draw


@dataclass(frozen=True)
class Filler:
    """Puts evaluations with given numbers of right answers into a store.

    Args:
        n: samples of each evaluation; less than there are is a subset.
        test_fraction: where every run splits the data anew.
        class_names: of the two classes.
    """

    store: Store
    n: int = N
    test_fraction: float | None = None
    class_names: tuple[str, str] = ("a", "b")

    def model(self, name: str, *, level: float | None = 0.0, **noise: Any) -> ModelVersion:
        """A model that was fitted at a noise level: 0 without noise, None for half the separation."""
        fit_noise = {"norm": "linf", "epsilon": level, "is_shared": False, "num_copies": 10} | noise
        spec = {} if level == 0 else {"fit_noise": fit_noise}
        model = ModelVersion(name=name, label_space="any", fingerprint=fingerprint([name, spec]), spec=spec)
        self.store.put_model(model)
        return model

    def setting(self, epsilon: float, *, dataset: str = "points") -> SettingVersion:
        """Clean at level 0, else under noise; at half the separation the definition keeps that."""
        size = N if self.test_fraction is None else round(N / self.test_fraction)
        samples = DatasetVersion(
            name=dataset, split="all", fingerprint=fingerprint([dataset, size]), targets=np.arange(size) % 2,
            sample_ids=tuple(f"all/{index}" for index in range(size)), class_names=self.class_names,
        )  # fmt: skip
        self.store.put_dataset(samples)
        subset = "" if self.n == N else f"@limit{self.n}"
        clean, name = f"{dataset}{subset}", f"{dataset}-noise-{epsilon:g}{subset}"
        shift = Shift(family="uniform-linf", name="noise", norm="linf", epsilon=epsilon, clean_eval_setting=clean)
        separation = SEPARATION if epsilon == EPSILON_MIN else None
        spec: dict[str, Any] = {"separation": separation, "perturbation_fn_gpu": {"boundary": "none"}}
        if self.test_fraction is not None:
            spec["run_split"] = {"test_fraction": self.test_fraction, "limit": None}
        setting = SettingVersion(
            name=name if epsilon else clean, fingerprint=fingerprint([name, spec]), spec=spec,
            dataset_fingerprint=samples.fingerprint, shift=shift if epsilon else None,
            sample_indices=np.arange(self.n, dtype=np.int32) if subset else None,
        )  # fmt: skip
        self.store.put_setting(setting)
        return setting

    def corruption(self, name: str, severity: int | None, *, variant: str = "") -> SettingVersion:
        """A corruption of the samples of `setting(0.0)`, which is stored first. Args: variant: such as `-mnist28`."""
        clean = self.setting(0.0)
        dataset, limit, subset = clean.name.partition("@limit")
        called = f"{dataset}-c.{name}.{severity}_in-memory{variant}{limit}{subset}"
        family = f"common-corruption{variant}"
        shift = Shift(family=family, name=name, severity=severity, clean_eval_setting=clean.name)
        setting = replace(clean, name=called, fingerprint=fingerprint(called), shift=shift)
        self.store.put_setting(setting)
        return setting

    def corruptions(
        self, model: ModelVersion, clean: int, right: Mapping[tuple[str, int | None], int], *, variant: str = ""
    ) -> None:
        """A model with so many right when clean, and under each corruption and severity."""
        parent = self.put(model, self.setting(0.0), [clean], is_fitted=False)
        for (name, severity), count in right.items():
            self.put(model, self.corruption(name, severity, variant=variant), [count], is_fitted=False)
        assert parent.status == "complete"

    def put(
        self, model: ModelVersion, setting: SettingVersion, right: Sequence[int], *, seed: int = 0,
        is_fitted: bool = True, numerics: str = "float32",
    ) -> Evaluation:  # fmt: skip
        """An evaluation in which the first so many samples of each draw are right."""
        key = EvaluationKey(
            model_fingerprint=model.fingerprint, setting_fingerprint=setting.fingerprint,
            fit_seed=seed if is_fitted else 0, noise_seed=0 if setting.shift is None else seed,
            numerics={"dtype": numerics},
        )  # fmt: skip
        state = self.store.put_evaluation(key, num_draws=len(right), num_samples=self.n, shard_size=N, run_id=None)
        for where in state.missing():
            ranks = (np.arange(self.n) >= right[where.draw]).astype(np.int32)
            shard = Shard(
                where=where, predictions=ranks, target_ranks=ranks, payload=b"", codec=NO_LOGITS, num_outputs=2,
                sha256=checksum(b""), num_nonfinite=0, batch_size=N, seconds=0.0, worker="none",
            )  # fmt: skip
            self.store.put_shards([(state.id, shard)])
        store_metrics(self.store, state.id)
        return self.store.evaluation_by_id(state.id)

    def runs(self, model: ModelVersion, right: Right, *, dataset: str = "points", **how: Any) -> None:
        """Runs with the seeds 0, 1, ... of a model, each compared with the clean one of its seed, or the only one."""
        settings = {epsilon: self.setting(epsilon, dataset=dataset) for epsilon in sorted(right)}
        clean = [self.put(model, settings[0.0], draws, seed=seed, **how) for seed, draws in enumerate(right[0.0])]
        for epsilon, counts in right.items():
            for seed, draws in enumerate(counts) if epsilon else ():
                noisy = self.put(model, settings[epsilon], draws, seed=seed, **how)
                store_comparison(self.store, noisy, clean[seed % len(clean)])


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "results.sqlite"


@pytest.fixture
def filler(database: Path) -> Iterator[Filler]:
    with Store.open(database) as store:
        yield Filler(store)


# Four runs each of three models; the last of their means over draws and runs are 84, 93 and 80 at half the separation.
FITTED: dict[str, float | None] = {"forest": 0.0, "forest-mscr": None, "forest-noise": 0.01}
MATRIX: dict[str, Right] = {
    "forest": {
        0.0: [[90], [92], [94], [96]],
        EPSILON_MIN: [[78, 82], [80, 84], [82, 86], [88, 92]],
        0.01: [[70], [70], [70], [70]],
    },
    "forest-mscr": {
        0.0: [[91], [92], [95], [95]],
        EPSILON_MIN: [[90, 90], [92, 92], [94, 94], [96, 96]],
        0.01: [[60], [61], [62], [63]],
    },
    "forest-noise": {
        0.0: [[80], [80], [80], [80]],
        EPSILON_MIN: [[80, 80], [80, 80], [80, 80], [80, 80]],
        0.01: [[70], [71], [72], [73]],
    },
}


@pytest.fixture(scope="session")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a matrix of three training and three test levels; nobody writes to it."""
    database = tmp_path_factory.mktemp("matrix") / "results.sqlite"
    with Store.open(database) as store:
        filler = Filler(store)
        for name, right in MATRIX.items():
            filler.runs(filler.model(name, level=FITTED[name]), right)
    return database


Draw = Callable[..., dict[str, Path]]


def draw_figure(figure: str, database: Path, out: Path, *arguments: object) -> dict[str, Path]:
    """The files of a figure by their endings, and the second table of the matrix as 'mscr'."""
    command = import_module(f"plotting.{figure}").main
    given = ["--db-url", database, "--out", out, *arguments]
    result = CliRunner().invoke(command, list(map(str, given)), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    files = [Path(line) for line in result.stdout.splitlines() if line.startswith(str(out))]
    return {"mscr" if "mscr." in file.name else file.name.partition(".")[2]: file for file in files}


@pytest.fixture
def draw(tmp_path: Path) -> Draw:
    """Draws over any database: `draw('convergence', database, '--models', 'a')` -> files by ending."""
    return lambda figure, database, *arguments: draw_figure(figure, database, tmp_path / "figures", *arguments)


@pytest.fixture
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lays figures out without drawing them, which takes most of the time of a test that wants their numbers."""
    from matplotlib.figure import Figure

    def savefig(figure: Figure, part: Path, **how: Any) -> None:
        figure.draw_without_rendering()
        part.write_bytes(b"")

    monkeypatch.setattr(Figure, "savefig", savefig)


@pytest.fixture(scope="session")
def drawn(matrix: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Path]]:
    """Draws over the matrix, each figure once: `drawn('convergence')` -> files by ending."""
    out = tmp_path_factory.mktemp("figures")
    return cache(lambda figure: draw_figure(figure, matrix, out))
