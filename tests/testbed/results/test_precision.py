"""Clusters from a table of samples, and what is wrong with tables that users have."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from testbed.errors import DataError
from testbed.results import Precision

CLEAN = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
ROWS = [f"test/{index},p{index // 2},x" for index in range(8)]


def table(folder: Path, rows: list[str], *, header: str = "sample_id,patient,other", encoding: str = "utf-8") -> Path:
    file = folder / "samples.csv"
    file.write_text("\n".join([header, *rows]), encoding=encoding)
    return file


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_clusters_are_looked_up_by_sample_id(lab: Any, tmp_path: Path, encoding: str) -> None:
    shifted, _ = lab.pair("net", CLEAN, CLEAN[None])
    file = table(tmp_path, [*reversed(ROWS), "train/7,p9,x"], encoding=encoding)
    factors = Precision.of_table(file, "patient", confidence=0.9).factors([shifted])
    assert factors.clusters == ["p0", "p0", "p1", "p1", "p2", "p2", "p3", "p3"]
    assert factors.confidence == 0.9
    assert Precision().factors([shifted]).clusters is None


def test_clusters_of_resplits_are_of_the_distinct_samples(resplit_lab: Any, tmp_path: Path) -> None:
    fits = [resplit_lab.pair("net", [1, 1, 1, 1], [[1, 1, 1, 0]], fit_seed=seed)[0] for seed in (0, 1)]
    file = table(tmp_path, [f"test/{index},p{index}" for index in range(10)], header="sample_id,patient")
    factors = Precision.of_table(file, "patient", confidence=0.9).factors(fits)
    assert factors.confidence == 0.9
    distinct = sorted({index for fit in fits for index in fit.sample_indices().tolist()})
    assert factors.clusters == [f"p{index}" for index in distinct]
    assert factors.samples is not None
    for row, fit in zip(factors.samples, fits, strict=True):
        assert [distinct[place] for place in row] == fit.sample_indices().tolist()
    assert factors.resplit == pytest.approx(0.4 / 0.6)


def test_missing_samples_are_named(lab: Any, tmp_path: Path) -> None:
    shifted, _ = lab.pair("net", CLEAN, CLEAN[None])
    precision = Precision.of_table(table(tmp_path, ROWS[:3]), "patient")
    with pytest.raises(DataError, match=r"5 of 8 samples .* test/3, test/4, test/5"):
        precision.factors([shifted])


def test_a_single_cluster_is_refused(lab: Any, tmp_path: Path) -> None:
    shifted, _ = lab.pair("net", CLEAN, CLEAN[None])
    precision = Precision.of_table(table(tmp_path, ROWS), "other")
    with pytest.raises(DataError, match="All 8 samples have other x"):
        precision.factors([shifted])


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        (ROWS, "sample_id,patients", "no column 'patient'. Did you mean patients"),
        (ROWS, "id,patient", "no column 'sample_id'"),
        ([], "", "Its columns: none"),
        ([*ROWS, "test/0,p7,x"], "sample_id,patient,other", "test/0 has patient p0 and p7"),
        (["test/0,,x"], "sample_id,patient,other", "test/0 has no patient"),
        (["test/0"], "sample_id,patient", "test/0 has no patient"),
    ],
)
def test_tables_that_do_not_tell_are_refused(tmp_path: Path, rows: list[str], header: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Precision.of_table(table(tmp_path, rows, header=header), "patient")


def test_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        Precision.of_table(tmp_path / "none.csv", "patient")


def test_one_bound_is_asked_for_on_the_side_that_matters() -> None:
    assert Precision().side("lower") == "both"
    assert Precision(is_one_sided=True).side("lower") == "lower"
    with pytest.raises(DataError, match="Confidence is 95"):
        Precision(confidence=95)


def test_frames_belong_together_by_sequence_where_there_are_several() -> None:
    def factors(sequences: list[int] | None) -> Any:
        found = None if sequences is None else np.array(sequences)
        evaluation: Any = SimpleNamespace(test_fraction=None, sequences=lambda: found)
        return Precision().factors([evaluation]).clusters

    assert factors([0, 0, 1]).tolist() == [0, 0, 1]
    assert factors([0, 0, 0]) is factors(None) is None
