"""Tables as files and as a grid: every digit, every missing value, and never half a file."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from testbed.data.published import read_published
from testbed.errors import DataError, TestbedError
from testbed.store.store import Store
from testbed.store.table import COLUMNS
from testbed.tables import wide, write_table

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
GRID = SHARED / "imagenet-testbed" / "robustness_top1s.csv"
SMALL = """model,a setting,val,zoo
net,,76.13,0.1
other,86.50200653076172,0,
third,,,
"""


def table(*rows: dict[str, Any]) -> pd.DataFrame:
    """Rows of top-1 accuracies of complete, current evaluations, unless they say otherwise."""
    shared = {"status": "complete", "is_stale": False, "metric": "top1", "label_space": "ten"}
    frame = pd.DataFrame([shared | row for row in rows]).reindex(columns=list(COLUMNS))
    return frame.astype(dict(COLUMNS))


def cells(path: Path) -> dict[tuple[str, str], str]:
    with open(path, newline="") as stream:
        header, *rows = csv.reader(stream)
    return {(row[0], name): text for row in rows for name, text in zip(header[1:], row[1:], strict=True)}


# Files

ODD = table(
    {"model": 'a,"b"\n', "eval_setting": "ü", "value": 0.1 + 0.2, "n": 10, "severity": None, "ci_low": 1e-17},
    {"model": "c", "eval_setting": "x", "value": None, "reason": "no class", "n": 2**40},
)


def test_csv_keeps_every_digit_and_leaves_missing_values_empty(tmp_path: Path) -> None:
    write_table(ODD, tmp_path / "new" / "t.csv")
    with open(tmp_path / "new" / "t.csv", newline="") as stream:
        first, second = csv.DictReader(stream)
    assert (first["model"], first["value"], first["ci_low"]) == ('a,"b"\n', "0.30000000000000004", "1e-17")
    assert (first["severity"], first["n"], first["is_stale"]) == ("", "10", "False")
    assert (second["value"], second["reason"], second["n"]) == ("", "no class", str(2**40))


def test_json_is_a_list_of_objects_with_null_for_what_is_missing(tmp_path: Path) -> None:
    write_table(ODD, tmp_path / "t.json")
    first, second = json.loads((tmp_path / "t.json").read_text())
    assert list(first) == list(COLUMNS)
    assert (first["model"], first["value"], first["severity"], first["is_stale"]) == ('a,"b"\n', 0.1 + 0.2, None, False)
    assert (second["value"], second["n"]) == (None, 2**40)


def test_parquet_comes_back_as_it_was(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    write_table(ODD, tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "t.parquet"), ODD)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ImportError("no pyarrow")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", refuse)
    with pytest.raises(TestbedError, match="pip install pyarrow"):
        write_table(ODD, tmp_path / "t.parquet")
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_only_when_told_and_never_by_half_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("precious")
    with pytest.raises(DataError, match=r"is there already\. Give --override"):
        write_table(ODD, path)

    def fail(_: pd.DataFrame, path: Path, **__: Any) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pd.DataFrame, "to_csv", fail)
        with pytest.raises(DataError, match="cannot be written: No space left on device"):
            write_table(ODD, path, override=True)
    assert path.read_text() == "precious"
    write_table(ODD, path, override=True)
    assert len(path.read_text()) > 100
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.CSV.gz"])
def test_another_ending_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"ends in .csv, .json, .parquet"):
        write_table(ODD, tmp_path / name)


# The grid


def test_the_grid_has_a_row_per_model_and_a_column_per_setting_both_by_name() -> None:
    grid = wide(
        table(
            {"model": "b", "eval_setting": "y", "value": 2.0},
            {"model": "b", "eval_setting": "x", "value": 1.0},
            {"model": "a", "eval_setting": "y", "value": 3.0},
            {"model": "a", "eval_setting": "y", "value": 4.0, "metric": "top5"},
        )
    )
    assert list(grid) == ["model", "x", "y"]
    assert grid["model"].tolist() == ["a", "b"]
    assert grid[["x", "y"]].fillna(-1).values.tolist() == [[-1, 3], [1, 2]]


def test_seeds_are_averaged_and_stale_or_incomplete_evaluations_left_out() -> None:
    row = {"model": "a", "eval_setting": "x"}
    grid = wide(
        table(
            row | {"value": 1.0, "noise_seed": 0},
            row | {"value": 2.0, "noise_seed": 1},
            row | {"value": 50.0, "is_stale": True},
            row | {"value": 60.0, "status": "running"},
        )
    )
    assert grid.values.tolist() == [["a", 1.5]]


@pytest.mark.parametrize("distinction", ["label_space", "numerics_fingerprint", "source", "protocol", "input_size"])
def test_no_cell_mixes_what_is_not_the_same(distinction: str) -> None:
    values: tuple[Any, Any] = (224, 288) if distinction == "input_size" else (None, "other")
    row = {"model": "a", "eval_setting": "x"}
    grid = wide(table(row | {"value": 1.0, distinction: values[0]}, row | {"value": 2.0, distinction: values[1]}))
    assert list(grid) == ["model", distinction, "x"]
    assert sorted(grid["x"]) == [1.0, 2.0]


def test_frames_of_videos_stand_in_the_grid_with_their_neighbourhoods() -> None:
    """As in the published grid: pm-10 in the column ..._pm10, and not the accuracy of all frames."""
    frames = [{"metric": metric, "value": value} for metric, value in (("top1", 70.0), ("pm0", 72.0), ("pm10", 60.0))]
    rows = [{"model": "net", "eval_setting": "vid_pm10", **row} for row in frames]
    grid = wide(table(*rows, {"model": "net", "eval_setting": "vid_pm0", "value": 72.0}))
    assert grid.loc[0].to_dict() == {"model": "net", "vid_pm0": 72.0, "vid_pm10": 60.0}


def test_models_of_different_numerics_share_a_grid() -> None:
    values = ({"model": name, "eval_setting": "x", "value": 1.0, "numerics_fingerprint": name} for name in "ab")
    assert list(wide(table(*values))) == ["model", "x"]


def test_a_grid_of_nothing_has_no_rows() -> None:
    assert wide(table()).shape == (0, 1)


def _round_trip(source: Path, folder: Path) -> Path:
    with Store.open(folder / "store.sqlite") as store:
        store.put_published(read_published(source, source="paper"))
        write_table(wide(store.results(published=["paper"])), folder / "grid.csv")
    return folder / "grid.csv"


def test_an_imported_grid_comes_back_cell_by_cell(tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_text(SMALL)
    assert cells(_round_trip(tmp_path / "small.csv", tmp_path)) == {
        key: "0.0" if text == "0" else text for key, text in cells(tmp_path / "small.csv").items()
    }


@pytest.mark.skipif(not GRID.is_file(), reason="the published grid is not in shared/data")
def test_the_published_grid_comes_back_cell_by_cell(tmp_path: Path) -> None:
    before, after = cells(GRID), cells(_round_trip(GRID, tmp_path))
    assert after == before
    assert sum(not text for text in after.values()) == 26220
