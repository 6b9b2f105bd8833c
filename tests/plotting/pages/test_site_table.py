"""Tables of a site: what is read, what is sorted by, and what a file has."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest
from plotting.pages.tables import (
    MISSING,
    Column,
    Table,
    count_cell,
    heat_cell,
    metric_cell,
    number_cell,
    text_cell,
)

from testbed.records import MetricValue


def test_a_number_is_read_with_two_digits_and_its_interval_and_sorted_by_all_of_them() -> None:
    cell = number_cell(97.304, 96.1, 98)
    assert (cell.text, cell.interval, cell.value) == ("97.30", "[96.10, 98.00]", 97.304)


@pytest.mark.parametrize(("value", "text"), [(1.234, "+1.23"), (-1.234, "−1.23"), (-0.001, "0.00"), (0.0, "0.00")])
def test_differences_carry_a_sign_but_zero_does_not(value: float, text: str) -> None:
    assert number_cell(value, is_signed=True).text == text


@pytest.mark.parametrize("value", [None, float("nan"), pd.NA, np.nan])
def test_an_absent_number_is_missing_and_never_zero(value: object) -> None:
    assert number_cell(value).value is None
    assert number_cell(value).text == ""
    assert count_cell(value) == MISSING
    assert heat_cell(value) == MISSING


def test_an_undefined_metric_tells_why() -> None:
    undefined = MetricValue(name="mscr", value=None, n=5, reason="no image is right when clean")
    assert metric_cell(undefined).title == "no image is right when clean"
    assert metric_cell(None) == MISSING


def test_half_an_interval_is_none() -> None:
    assert number_cell(50.0, 40.0, None).interval == ""


@pytest.mark.parametrize(
    ("value", "look"), [(0, "h0"), (4.99, "h0"), (5, "h1"), (99.9, "h19"), (100, "h20"), (-3, "h0")]
)
def test_heat_goes_in_steps_of_five_percent(value: float, look: str) -> None:
    assert heat_cell(value).look == look


def test_a_file_has_all_digits_and_bounds_in_columns_of_their_own() -> None:
    columns = [Column("model", "text"), Column("clean %", has_interval=True), Column("n")]
    rows = [
        [text_cell('a, "b"\n'), number_cell(1 / 3, 0.25, 0.5), count_cell(1000)],
        [text_cell("c"), MISSING, MISSING],
    ]
    text = Table(name="t", columns=columns, rows=rows).as_csv()
    header, first, second = csv.reader(io.StringIO(text))
    assert header == ["model", "clean %", "clean % (low)", "clean % (high)", "n"]
    assert first == ['a, "b"\n', repr(1 / 3), "0.25", "0.5", "1000"]
    assert second == ["c", "", "", "", ""]


def test_columns_that_nothing_stands_in_go_but_the_first_stays() -> None:
    columns = [Column("model", "text"), Column("type", "text"), Column("n")]
    table = Table(name="t", columns=columns, rows=[[text_cell(""), text_cell(None), count_cell(2)]])
    assert [column.name for column in table.shown.columns] == ["model", "n"]
    assert [len(row) for row in table.shown.rows] == [2]


@pytest.mark.parametrize(
    ("counts", "name", "headers"), [((5, 5), "t, n = 5", ["model"]), ((5, 6), "t", ["model", "n"])]
)
def test_one_n_for_all_rows_stands_in_the_name_of_the_table_and_still_in_its_file(
    counts: tuple[int, int], name: str, headers: list[str]
) -> None:
    rows = [[text_cell(letter), count_cell(count)] for letter, count in zip("ab", counts, strict=True)]
    table = Table(name="t", columns=[Column("model", "text"), Column("n")], rows=rows)
    assert table.shown.name == name
    assert [column.name for column in table.shown.columns] == headers
    assert table.as_csv().splitlines()[0] == "model,n"
