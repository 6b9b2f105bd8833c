"""The stored evaluations that a selection finds, by what the store knows of them: nobody parses names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from plotting.drawing.counts import counted
from plotting.drawing.run_table import KEY, run_table, training_levels
from plotting.drawing.selection import Selection

from testbed.errors import TestbedError
from testbed.fingerprint import fingerprint
from testbed.records import MetricValue
from testbed.report import NORM_SYMBOLS, separation_words
from testbed.results import Run, result_of
from testbed.store.evaluation import Evaluation
from testbed.store.reader import Reader
from testbed.store.transfer import slug

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Stored:
    """The complete evaluations of today's definitions that a selection finds.

    Args:
        store: that holds them.
        wanted: the selection.
        dataset: of all of them.
        table: of `run_table`, with `is_separation`, whether the level is half the minimal class separation, and with
            the `training_epsilon` of the model, 0 without noise.
        setting: the definition of one of the noise settings, as the store keeps it; one with a separation if there is
            one.
    """

    store: Reader
    wanted: Selection
    dataset: str
    table: pd.DataFrame
    setting: Mapping[str, Any]

    @property
    def separation(self) -> Mapping[str, Any] | None:
        """The separation that a noise level is half of, as its definition keeps it; None where no level is."""
        found: Mapping[str, Any] | None = self.setting.get("separation")
        return found

    @property
    def epsilon_min(self) -> float | None:
        """Half the minimal class separation; None where no evaluation is at that level."""
        return None if self.separation is None else float(self.separation["min_distance"]) / 2

    @property
    def models(self) -> list[str]:
        """The models, by training noise and then by name."""
        first = self.table.drop_duplicates("model").sort_values(["training_epsilon", "model"])
        return list(first["model"])

    @property
    def test_fraction(self) -> float | None:
        """The part of the data that a run evaluates, where every run splits them anew."""
        split = self.setting.get("run_split")
        return None if split is None else float(split["test_fraction"])

    @property
    def resplit(self) -> float:
        """Samples that a run tests over those it is fitted on, where every run splits the data anew; else 0."""
        return 0.0 if self.test_fraction is None else self.test_fraction / (1 - self.test_fraction)

    @cached_property
    def runs(self) -> dict[tuple[str, float], list[Run]]:
        """By model and noise level, the evaluations of all runs with their clean parents, by seed."""
        stored = self.store.list_evaluations(status="complete", is_stale=False)
        found = {_key(evaluation): evaluation for evaluation in stored}
        runs: dict[tuple[str, float], list[Run]] = {}
        for row in self.table.sort_values(["model", "epsilon", "seed"]).to_dict("records"):
            key, clean = (tuple(row[f"{prefix}{name}"] for name in KEY) for prefix in ("", "clean_"))
            one = Run(seed=row["seed"], evaluation=found[key], clean=None if clean == key else found[clean])
            runs.setdefault((row["model"], row["epsilon"]), []).append(one)
        return runs

    def require_separation(self) -> float:
        """`epsilon_min`. Raises: TestbedError: there is none, with the command for it."""
        if self.epsilon_min is None:
            raise TestbedError(
                f"No evaluation of {self.dataset} at half the minimal class separation is stored in {self.store.url}. "
                f"Evaluate it: {self.command()}"
            )
        return self.epsilon_min

    def metrics(self, name: str, *, epsilon: float | None = None) -> pd.DataFrame:
        """One metric of every model over all its runs, as `eval.py` prints it.

        Args:
            name: of an accuracy such as 'top1', or at a level above 0 of a comparison with clean, such as 'mscr'.
            epsilon: the noise level; all levels if None.
        Returns: a row per model and level; `value`, `ci_low` and `ci_high` in percent, missing where the metric is
            undefined, and how many samples, draws of the noise in each run, and runs stand behind them.
        """
        import pandas as pd

        levels = self.table.set_index("model")["training_epsilon"].to_dict()
        rows = []
        for (model, level), runs in self.runs.items():
            if epsilon is None or level == epsilon:
                result = result_of(runs)
                metric = {**result.accuracies, **result.comparisons}[name]
                row = {"model": model, "training_epsilon": levels[model], "epsilon": level, "metric": name}
                row |= number(metric) | {"n": metric.n, "num_draws": result.evaluation.num_draws, "runs": len(runs)}
                rows.append(row)
        return pd.DataFrame(rows).astype(dict.fromkeys(("value", "ci_low", "ci_high"), float))

    def model_by_training_level(self) -> dict[float, str]:
        """The model that was fitted at each level, 0 without noise, by level.

        Raises: TestbedError: several models were fitted at one level, or at one that is not known.
        """
        if self.table["training_epsilon"].isna().any():
            self.require_separation()  # which some models were fitted at
        found: dict[float, str] = {}
        for level in sorted(set(self.table["training_epsilon"])):
            names = sorted(set(self.table.loc[self.table["training_epsilon"] == level, "model"]))
            if len(names) > 1:
                raise TestbedError(
                    f"{' and '.join(names)} were all fitted at noise level {level:g}. Choose one family of models with "
                    f"--models, for example --models '{names[0]}*'."
                )
            found[level] = names[0]
        return found

    def command(self, *options: str) -> str:
        """The command that stores evaluations of these models at half the minimal class separation."""
        return self.wanted.command(self.store.url, dataset=self.dataset, models=self.models, options=options)

    def path(self, out: Path, figure: str) -> Path:
        """Where the files of a figure go, without their endings."""
        return out / slug(f"{figure}-{self.dataset}-{self.wanted.suffix}")

    # Words for captions and axes

    @property
    def unit(self) -> str:
        """The unit of noise levels."""
        noise = self.setting.get("perturbation_fn_gpu") or {}
        return "units of the data" if noise.get("boundary") == "none" else "pixels in [0, 1]"

    @property
    def noise_words(self) -> str:
        """The noise, for a caption."""
        shared = " with the same offsets for all samples" if self.wanted.is_shared else ""
        return f"uniform {NORM_SYMBOLS[self.wanted.norm]} noise{shared}"

    @property
    def sample_words(self) -> str:
        """n with the draws of the noise and the runs, for a caption."""
        again = "" if self.test_fraction is None else f", another random {100 * self.test_fraction:g} % in every run"
        noisy = self.table[self.table["epsilon"] > 0]
        draws, runs = counted(noisy["num_draws"], "draw"), counted(noisy.groupby(["model", "epsilon"]).size(), "run")
        return f"n = {counted(self.table['n'], 'sample')}{again}, {draws} of the noise, {runs}"

    @property
    def separation_sentence(self) -> str:
        """What `epsilon_min` is half of, for a caption; empty where there is none."""
        if self.separation is None:
            return ""
        return f" ε$_{{min}}$ = {self.epsilon_min:.4g} is half of {separation_words(self.separation)}."


def stored(store: Reader, wanted: Selection) -> Stored:
    """What the store holds of a selection.

    Raises: TestbedError: there is nothing, with a command that would fill it; or there are several data sets, sample
        counts, settings or numerics, which a figure must not mix.
    """
    table = _selected(run_table(store.results(), wanted.shift_family), store, wanted)
    _check(table, store, wanted)
    definitions = {setting.fingerprint: setting.spec for setting in store.list_settings()}
    is_separation = [definitions[mark].get("separation") is not None for mark in table["setting_fingerprint"]]
    table = table.assign(is_separation=is_separation)
    setting = definitions[table.sort_values(["is_separation", "epsilon"])["setting_fingerprint"].iloc[-1]]
    if (separation := setting.get("separation")) is not None:
        table = table.fillna({"training_epsilon": separation["min_distance"] / 2})
    return Stored(store=store, wanted=wanted, dataset=table["dataset"].iloc[0], table=table, setting=setting)


def _selected(table: pd.DataFrame, store: Reader, wanted: Selection) -> pd.DataFrame:
    """The rows that are asked for, with the level that each model was fitted at."""
    models = {(model.name, model.label_space): model.spec for model in store.list_models()}
    levels = training_levels(models, norm=wanted.norm, is_shared=wanted.is_shared)
    owners = zip(table["model"], table["label_space"], strict=True)
    table = table[np.array([owner in levels and wanted.has_model(owner[0]) for owner in owners], np.bool_)]
    for column, value in (("dataset", wanted.dataset), ("n", wanted.num_samples)):
        table = table if value is None else table[table[column] == value]
    training = [levels[owner] for owner in zip(table["model"], table["label_space"], strict=True)]
    return table.assign(training_epsilon=np.array(training, np.float64))


def _check(table: pd.DataFrame, store: Reader, wanted: Selection) -> None:
    if table.empty:
        raise TestbedError(_nothing(store, wanted))
    for column, option in (("dataset", "--dataset"), ("n", "--samples")):
        if len(values := sorted(set(table[column]))) > 1:
            raise TestbedError(
                f"{store.url} has {wanted.shift_family} noise with several values of {column}: "
                f"{', '.join(map(str, values))}. Choose one with {option}."
            )
    for (model, epsilon), rows in table.groupby(["model", "epsilon"]):
        for column in ("eval_setting", "label_space", "numerics_fingerprint"):
            if len(values := sorted(set(rows[column]))) > 1:
                raise TestbedError(
                    f"{model} at noise level {epsilon:g} is stored with several values of {column} "
                    f"({', '.join(values)}), which one point of a figure must not mix. Use a database with one of them."
                )


def _nothing(store: Reader, wanted: Selection) -> str:
    """That nothing was found, and a command that would change it."""
    dataset = wanted.dataset or next((setting.dataset for setting in store.list_settings()), "digits")
    stored = [one for one in store.list_evaluations(status="complete", is_stale=False) if one.dataset == dataset]
    models = wanted.models or sorted({one.model for one in stored}) or ["digits-resnet"]
    kinds = sorted({one.shift.family for one in stored if one.shift})
    others = f" Stored is {', '.join(kinds)} noise: see --norm and --shared." if kinds else ""
    asked = [f" of {wanted.dataset}"] if wanted.dataset else []
    asked += [f" by {' '.join(wanted.models)}"] if wanted.models else []
    asked += [f" on {wanted.num_samples} samples"] if wanted.num_samples else []
    return (
        f"{store.url} holds no complete evaluation{''.join(asked)} under {wanted.shift_family} noise with its clean "
        f"parent. Evaluate some: {wanted.command(store.url, dataset=dataset, models=models)}{others}"
    )


def _key(evaluation: Evaluation) -> tuple[Any, ...]:
    numerics = fingerprint(dict(evaluation.numerics))
    seeds = evaluation.fit_seed, evaluation.noise_seed
    return (evaluation.model_fingerprint, evaluation.setting_fingerprint, numerics, *seeds)


def number(metric: MetricValue) -> dict[str, Any]:
    """A metric as columns of a table, without its n, which may count samples or runs."""
    return {"value": metric.value, "ci_low": metric.ci_low, "ci_high": metric.ci_high, "method": metric.method}
