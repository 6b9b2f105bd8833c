"""Which model was made from which, as the user says."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from plotting.drawing.baselines import read_baselines, with_baselines

from testbed.errors import DataError


def test_given_baselines_come_before_known_ones() -> None:
    table = pd.DataFrame({"model": ["a", "b", "c"], "baseline": ["x", "y", pd.NA]}, index=[3, 1, 2])
    found = with_baselines(table, {"a": "z", "c": "b"})["baseline"]
    assert found.to_dict() == {3: "z", 1: "y", 2: "b"}
    assert with_baselines(table, {})["baseline"].isna().tolist() == [False, False, True]


def test_a_file_of_baselines_is_read(tmp_path: Path) -> None:
    path = tmp_path / "baselines.csv"
    path.write_text('model,baseline,note\n"a, b",c,\nd,,none\n')
    assert read_baselines(path) == {"a, b": "c"}


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "baselines.csv"
    with pytest.raises(DataError, match=r"cannot be read .* columns model,baseline"):
        read_baselines(path)
    path.write_text("model,parent\na,b\n")
    with pytest.raises(DataError, match="has no rows with the columns"):
        read_baselines(path)
