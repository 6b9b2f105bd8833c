"""The matrix of accuracies over test and training noise: means over runs, and the best of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from plotting.drawing.published import COLUMNS

from testbed.metrics.published import PUBLISHED_Z, mscr_of_means
from testbed.metrics.significance import holm

if TYPE_CHECKING:
    import pandas as pd

    Runs = dict[float, pd.Series[float]]

ALPHA = 0.05


def accuracy_cells(table: pd.DataFrame, *, resplit: float = 0.0) -> pd.DataFrame:
    """The cells of the matrix, by test and training level.

    Args:
        table: of `plotting.drawing.stored.Stored`; one model for each training level.
        resplit: as in `paired_p_value`.
    Returns: `test_eps`, `train_eps`, the mean `acc_percent`, `std_percent` and `ci95_percent` of `published_spread`,
        `runs`, and `is_best`: the largest mean of its row, or not distinguishable from it.
    """
    import pandas as pd

    rows = []
    for test_eps, row in table.groupby("epsilon"):
        levels = sorted(set(row["training_epsilon"]))
        runs = {level: row[row["training_epsilon"] == level].set_index("seed")["accuracy"] for level in levels}
        best = best_of(runs, resplit=resplit)
        for train_eps, values in runs.items():
            spread = published_spread(values)
            rows.append((test_eps, train_eps, values.mean(), *spread, len(values), train_eps in best))
    return pd.DataFrame(rows, columns=[*COLUMNS, "runs", "is_best"])


def mscr_cells(table: pd.DataFrame) -> pd.DataFrame:
    """MSCR by training level as published: the ratio of the means over runs, with the spread of the runs' differences.

    Args:
        table: as for `accuracy_cells`; the rows at half the minimal class separation count.
    Returns: `train_eps`, `mscr_percent`, `std_percent` and `ci95_percent` of `published_spread` in percentage points
        (not divided by the clean accuracy), `runs`. None is marked as best: a model that is bad when clean has little
        to lose.
    Source: Siedel et al. 2022, their sheets for 2D data.
    """
    import pandas as pd

    rows = []
    for train_eps, cell in table[table["is_separation"]].groupby("training_epsilon"):
        clean, noisy = cell["clean_accuracy"], cell["accuracy"]
        mscr = float(mscr_of_means(clean.mean(), noisy.mean()))
        rows.append((train_eps, mscr, *published_spread(noisy - clean), len(cell)))
    return pd.DataFrame(rows, columns=["train_eps", "mscr_percent", "std_percent", "ci95_percent", "runs"])


def published_spread(values: ArrayLike) -> tuple[float, float]:
    """Standard deviation of runs (n in the denominator), and 1.96 of it over the root of n; NaN for a single run.

    Source: the authors' result sheets for Siedel et al. 2022.
    """
    array = np.asarray(values, np.float64)
    if len(array) < 2:
        return np.nan, np.nan
    return float(array.std()), float(PUBLISHED_Z * array.std() / np.sqrt(len(array)))


def best_of(runs: Runs, *, resplit: float = 0.0) -> set[float]:
    """The largest mean and all that are not distinguishable from it: paired over runs, corrected by Holm's method.

    Args:
        runs: by what is compared, the values of its runs with their seeds as index.
        resplit: as in `paired_p_value`.
    """
    largest = max(runs, key=lambda level: runs[level].mean())
    others = [level for level in runs if level != largest]
    p_values = [paired_p_value(runs[largest] - runs[level], resplit=resplit) for level in others]
    kept = [level for level, p in zip(others, holm(p_values), strict=True) if p > ALPHA]
    return {largest, *kept}


def paired_p_value(differences: pd.Series[float], *, resplit: float = 0.0) -> float:
    """Two-sided p-value of Student's test that the mean difference over runs is 0; NaN with fewer than two runs.

    Args:
        differences: by run; a run that one side lacks is missing.
        resplit: samples tested over samples fitted on where every run splits the data anew, and else 0. Such runs have
            samples in common, which would make the test too sure.
    Source: Nadeau & Bengio, Machine Learning 52, 2003.
    """
    from scipy.stats import t

    values = differences.dropna().to_numpy()
    if len(values) < 2:
        return float("nan")
    error = values.std(ddof=1) * np.sqrt(1 / len(values) + resplit)
    if error == 0:
        return float(values.mean() == 0)
    return float(2 * t.sf(abs(values.mean()) / error, len(values) - 1))
