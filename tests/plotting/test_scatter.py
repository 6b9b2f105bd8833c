"""Axes on a scale of accuracies, points by type, and names that hide none of each other."""

from __future__ import annotations

from itertools import combinations, pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from plotting.drawing.labels import label_points
from plotting.drawing.scatter import (
    KINDS,
    draw_identity,
    draw_line,
    draw_models,
    label_kinds,
    scale_axes,
    scale_axis,
    ticks,
)
from plotting.drawing.style import new_figure

from testbed.metrics.scales import SCALES

TABLE = pd.DataFrame({
    "x": [50.0, 60.0, 100 / (1 + np.exp(-1)), 90.0], "y": [40.0, 0.0, 60.0, 80.0],
    "model_type": ["STANDARD", "LP_ADV", None, "STANDARD"], "is_own": [False, False, False, True],
})  # fmt: skip
TABLE = TABLE.assign(x_low=TABLE["x"] - 5, x_high=TABLE["x"] + 5, y_low=TABLE["y"] - 5, y_high=TABLE["y"] + 5)
TABLE.loc[0, ["y_low", "y_high"]] = np.nan
TABLE.loc[1, "y_low"] = 0.0


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("low", "high"), [(30, 88), (97, 99.2), (0.4, 0.9), (0.01, 99.9), (55, 56), (10, 90)])
def test_ticks_are_few_round_numbers_that_stand_apart(low: float, high: float, scale: str) -> None:
    chosen = ticks(low, high, scale=scale)
    assert 3 <= len(chosen) <= 9
    assert chosen == sorted(set(chosen))
    assert all(low <= tick <= high and float(f"{tick:g}") == tick for tick in chosen)
    start, end = SCALES[scale].of_percent([low, high])
    places = (SCALES[scale].of_percent(chosen) - start) / (end - start)
    assert min(np.diff(places)) > 0.1


def test_rounder_ticks_come_first() -> None:
    assert ticks(25, 85, scale="linear") == [30, 40, 50, 60, 70, 80]
    assert ticks(0.05, 99.95, scale="logit")[0] == 0.1


def test_equal_steps_of_the_logit_are_equally_long_and_ticks_stand_where_they_belong() -> None:
    with new_figure(height=2.0) as figure:
        axes = figure.subplots()
        scale_axis(axes, "x", "logit", [20.0, 95.0, 0.0, 100.0])
        figure.draw_without_rendering()
        places = axes.transData.transform([(100 / (1 + np.exp(-u)), 0) for u in (-1, 0, 1, 2)])[:, 0]
        shown = {label.get_text(): label.get_position()[0] for label in axes.get_xticklabels()}
        limits = axes.get_xlim()
    assert np.ptp(np.diff(places)) < 1e-6
    assert all(float(text) == where for text, where in shown.items())
    assert limits[0] < 20
    assert limits[1] > 95


def test_a_type_has_a_colour_and_a_shape_of_its_own_and_one_that_is_not_known_is_told() -> None:
    assert len({kind.color for kind in KINDS}) == len({kind.marker for kind in KINDS}) == len(KINDS)
    with new_figure(height=2.0) as figure:
        axes = figure.subplots()
        label_kinds(axes, TABLE)
        assert axes.get_legend_handles_labels()[1] == ["type not known", "standard training", "adversarially trained"]


def test_intervals_are_drawn_where_there_are_some_also_down_to_0_percent() -> None:
    with new_figure(height=2.0) as figure:
        axes = figure.subplots()
        scale_axes(axes, "logit", TABLE)
        draw_identity(axes)
        draw_models(axes, TABLE, is_highlighted=np.array([False, True, False, False]))
        figure.draw_without_rendering()
        bars = [path for one in axes.collections for path in one.get_paths() if np.isfinite(path.vertices).all()]
        drawn = {float(np.ravel(line.get_xdata())[0]): line for line in axes.lines if np.size(line.get_xdata())}
        points = {x: line for x, line in drawn.items() if line.get_marker() != "None"}
    assert len(bars) == 2 * len(TABLE) - 1
    rims = {x: line.get_markeredgecolor() for x, line in points.items()}
    assert rims == {50.0: "white", 60.0: "black", TABLE["x"][2]: "white", 90.0: "black"}
    assert points[50.0].get_marker() == points[90.0].get_marker()
    assert len({line.get_marker() for line in points.values()}) == 3


def test_a_line_is_dashed_beyond_the_models_that_it_was_fitted_to() -> None:
    x = np.linspace(10, 90, 81)
    curve = pd.DataFrame({"line": np.repeat([0, 1], [41, 40]), "x": x, "y": x, "y_low": x - 1, "y_high": x + 1})
    lines = [SimpleNamespace(x_low=30, x_high=50), SimpleNamespace(x_low=60, x_high=75)]
    with new_figure(height=2.0) as figure:
        axes = figure.subplots()
        draw_line(axes, cast(Any, SimpleNamespace(curve=lambda: curve, lines=lines)))
        reach = {
            (line.get_linestyle(), float(np.min(line.get_xdata())), float(np.max(line.get_xdata())))
            for line in axes.lines
        }
    assert reach == {("--", 10, 50), ("--", 51, 90), ("-", 30, 50), ("-", 60, 75)}


def _boxes(names: list[str], points: Any) -> tuple[list[Any], Any]:
    with new_figure(width=4.0, height=3.0) as figure:
        axes = figure.subplots()
        axes.plot(*points.T, "o")
        named = points[: len(names)]
        label_points(axes, named[:, 0], named[:, 1], names, avoid=points)
        figure.draw_without_rendering()
        boxes = [box.get_window_extent() for text in axes.texts if (box := text.get_bbox_patch()) is not None]
        return boxes, axes.bbox.frozen()


@pytest.mark.parametrize("seed", range(3))
def test_names_hide_neither_each_other_nor_leave_the_axes(seed: int) -> None:
    points = np.random.default_rng(seed).uniform(size=(60, 2)) ** [1, 0.5]
    boxes, frame = _boxes([f"resnet{number}_augmix" for number in range(10)], points)
    assert not any(one.shrunk(0.98, 0.8).overlaps(other.shrunk(0.98, 0.8)) for one, other in combinations(boxes, 2))
    assert all(frame.padded(3).contains(*corner) for box in boxes for corner in box.corners())


def test_a_name_in_an_empty_place_is_near_its_point() -> None:
    boxes, frame = _boxes(["a"], np.array([[0.5, 0.5], [0.0, 0.0], [1.0, 1.0]]))
    middle = (frame.min + frame.max) / 2
    assert np.hypot(*(np.clip(middle, boxes[0].min, boxes[0].max) - middle)) < 15


def test_a_name_without_a_free_place_is_left_out_and_counted() -> None:
    with new_figure(width=1.0, height=1.0) as figure:
        axes = figure.subplots()
        points = np.full((9, 2), 0.5)
        left_out = label_points(axes, points[:, 0], points[:, 1], [f"name {n}" for n in range(9)], avoid=points)
        assert 0 < left_out < 9
        assert len(axes.texts) == 9 - left_out


def test_points_at_one_place_have_names_at_several() -> None:
    boxes, _ = _boxes(["one", "two", "three"], np.full((3, 2), 0.5))
    assert all(not one.overlaps(other) for one, other in pairwise(boxes))
