"""The ImageNet Testbed's published grid as points, read where it lies beside the project, and what it gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from testbed.results.aggregates import settings_of
from testbed.results.model_families import family_of
from testbed.results.points import ENTRY

SHARED = Path(__file__).resolve().parents[2] / "shared"
GRID = SHARED / "data/imagenet-testbed/robustness_top1s.csv"
needs_grid = pytest.mark.skipif(not GRID.exists(), reason="the ImageNet Testbed's grid is not beside the project")


def expected(name: str) -> Any:
    """What a file of worked numbers holds."""
    return json.loads((SHARED / "expected" / name).read_text())


@cache
def _grid() -> tuple[pd.DataFrame, pd.Series[Any]]:
    types = pd.read_csv(GRID.with_name("model_types.csv")).set_index("model")["type"]
    return pd.read_csv(GRID).set_index("model"), types


def points(settings: Sequence[str], *, sizes: dict[str, int] | None = None) -> pd.DataFrame:
    """The models' accuracies on settings and aggregates, in the grid's order; numbers of images where given."""
    grid, types = _grid()
    found = []
    for name in settings:
        weights = settings_of(name, set(grid.columns))
        values = grid[list(weights)].mul(pd.Series(weights)).sum(axis=1, skipna=False).dropna()
        rows = pd.DataFrame({"model": values.index, "value": values.to_numpy(), "eval_setting": name})
        found.append(rows.assign(n=sizes[name] if sizes else np.nan))
    table = pd.concat(found, ignore_index=True)
    models = table["model"]
    table = table.assign(entry=models, model_type=models.map(types), family=models.map(family_of), source="grid")
    table = table.assign(is_own=False, ci_low=np.nan, ci_high=np.nan)
    return table.reindex(columns=[*ENTRY, "eval_setting", "value", "ci_low", "ci_high", "n", "flag"])
