"""From the long table of stored metrics to a row per model, noise level and run, with the clean accuracy beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# What an evaluation is, in any store.
KEY = ["model_fingerprint", "setting_fingerprint", "numerics_fingerprint", "fit_seed", "noise_seed"]
# What an evaluation shares with the clean one that it is compared with.
_SHARED = ["model_fingerprint", "fit_seed"]
# What it has of its own.
_OF_CLEAN = ["clean_setting_fingerprint", "clean_numerics_fingerprint"]
_COLUMNS = ["model", "label_space", "dataset", "eval_setting", "epsilon", "accuracy", "n", "num_draws", *KEY]


def run_table(long: pd.DataFrame, shift_family: str) -> pd.DataFrame:
    """The evaluations under one family of noise and the clean ones that they are compared with.

    Args:
        long: of `testbed.results.table`.
        shift_family: of the noise.
    Returns: a row per evaluation, complete and of today's definitions: `seed` of the run, `epsilon` (0 when clean),
        `accuracy` and `clean_accuracy` in percent, model, setting and samples, and the columns of `KEY`, for the clean
        evaluation with `clean_` before them.
    """
    import pandas as pd

    current = long[(long["status"] == "complete") & ~long["is_stale"].fillna(True)]
    accuracies = current[current["metric"] == "top1"].rename(columns={"value": "accuracy"})
    noisy = accuracies[(accuracies["shift_family"] == shift_family) & accuracies["epsilon"].notna()]
    compared = current.loc[current["metric"] == "mscr", [*KEY, *_OF_CLEAN]]
    pairs = _with_clean(noisy[_COLUMNS].merge(compared, on=KEY), accuracies[_COLUMNS])
    clean = pairs[[f"clean_{name}" for name in _COLUMNS]].set_axis(_COLUMNS, axis=1).drop_duplicates(KEY)
    clean = clean.assign(epsilon=0.0, **{f"clean_{name}": clean[name] for name in ("accuracy", *KEY)})
    rows = pd.concat([clean, pairs[list(clean.columns)]], ignore_index=True)
    return rows.assign(seed=rows[["fit_seed", "noise_seed"]].max(axis=1))


def _with_clean(noisy: pd.DataFrame, accuracies: pd.DataFrame) -> pd.DataFrame:
    """Each noisy evaluation with the clean one of its run; what draws nothing at random has one for all runs."""
    clean = accuracies.add_prefix("clean_")
    here, there = [*_SHARED, *_OF_CLEAN], [*(f"clean_{name}" for name in _SHARED), *_OF_CLEAN]
    pairs = noisy.merge(clean, left_on=here, right_on=there)
    is_its = (pairs["clean_noise_seed"] == 0) | (pairs["clean_noise_seed"] == pairs["noise_seed"])
    return pairs[is_its].sort_values([*KEY, "clean_noise_seed"]).drop_duplicates(KEY, keep="last")


def training_levels(
    models: Mapping[tuple[str, str], Mapping[str, Any]], *, norm: str, is_shared: bool
) -> dict[tuple[str, str], float | None]:
    """The noise level that each model was fitted at: 0 without noise, None for half the minimal class separation.

    Models that were fitted on noise of another norm, or on independent instead of shared offsets, are left out.

    Args:
        models: definitions by (name, label space), as the store keeps them.
    """
    levels: dict[tuple[str, str], float | None] = {}
    for key, spec in models.items():
        noise = spec.get("fit_noise")
        if noise is None:
            levels[key] = 0.0
        elif (noise["norm"], noise["is_shared"]) == (norm, is_shared):
            levels[key] = noise["epsilon"]
    return levels
