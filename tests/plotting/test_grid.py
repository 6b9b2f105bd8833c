"""The grid of models and settings: its order, what is hatched and marked, and what its columns are called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from plotting.drawing.grid_cells import DARK, SMALLEST, Grid, draw_grid, grid_of
from plotting.drawing.grids import spaces_to_draw
from plotting.drawing.setting_columns import Column, Known, chosen, columns_of, groups_of, known_settings, spaces_of
from plotting.drawing.style import new_figure, save

from testbed.errors import TestbedError, UnknownNameError
from testbed.records import PublishedResult, Shift
from testbed.store.store import Store

CLEAN = "val"
Draw = Callable[..., dict[str, Path]]


def known(setting: str, dataset: str = "imagenet", **shift: object) -> Known:
    made = Shift(clean_eval_setting=CLEAN, **shift) if shift else None  # type: ignore[arg-type]
    return Known(name=setting, dataset=dataset, shift=made)


def corruption(name: str, severity: int, kind: str = "in-memory") -> Known:
    family = "common-corruption" + ("-on-disk" if kind == "on-disk" else "")
    return known(f"imagenet-c.{name}.{severity}_{kind}", family=family, name=name, severity=severity)


SETTINGS = [
    known("pgd.l2.eps0.5", family="adversarial-l2", name="pgd", norm="l2", epsilon=0.5),
    known("pgd.l2.eps0.1", family="adversarial-l2", name="pgd", norm="l2", epsilon=0.1),
    *[corruption("fog", severity) for severity in (2, 1, 3, 5, 4)],
    *[corruption("gaussian_noise", severity) for severity in (1, 2, 3, 4, 5)],
    corruption("snow", 1, "on-disk"),
    known("imagenet-a", dataset="imagenet-a"),
    known("val-on-imagenet-a-classes"),
    known("mine", dataset=""),
    known(CLEAN),
    known("val-noise-linf-0.1", family="uniform-linf", name="noise", norm="linf", epsilon=0.1),
]


def test_columns_go_from_clean_over_other_data_to_corruptions_noise_and_attacks() -> None:
    columns = columns_of(SETTINGS)
    assert [column.label for column in columns] == [
        "val", "val-on-imagenet-a-classes", "imagenet-a", "snow 1", *[f"gaussian_noise {s}" for s in range(1, 6)],
        *[f"fog {s}" for s in range(1, 6)], "val-noise-linf-0.1", "pgd.l2.eps0.1", "pgd.l2.eps0.5", "mine",
    ]  # fmt: skip
    assert groups_of(columns) == {
        "clean": (0, 2), "other data sets": (2, 3), "corruptions read from disk": (3, 4),
        "corruptions simulated in memory": (4, 14), "uniform L∞ noise": (14, 15), "attacks": (15, 17),
        "of unknown shift": (17, 18),
    }  # fmt: skip


def test_aggregated_severities_are_one_column_of_their_mean() -> None:
    columns = columns_of(SETTINGS, is_aggregated=True)
    assert [(one.setting, one.label) for one in columns[4:6]] == [
        ("imagenet-c.gaussian_noise_in-memory", "gaussian_noise"), ("imagenet-c.fog_in-memory", "fog"),
    ]  # fmt: skip
    assert len(columns) == len(SETTINGS) - 2 * 4  # snow has one severity alone


def test_settings_of_one_set_of_classes_share_a_grid() -> None:
    spaces = spaces_of([known("val"), known("imagenet-a", "imagenet-a"), known("digits", "digits"), known("x", "new")])
    assert {name: [one.name for one in found] for name, found in spaces.items()} == {
        "imagenet-1k": ["val", "imagenet-a"], "digits": ["digits"], "new": ["x"],
    }  # fmt: skip


def test_an_unknown_setting_is_told_with_the_nearest_name() -> None:
    assert [one.name for one in chosen(SETTINGS, ["pgd*", CLEAN])] == ["pgd.l2.eps0.5", "pgd.l2.eps0.1", CLEAN]
    with pytest.raises(UnknownNameError, match="Did you mean imagenet-a"):
        chosen(SETTINGS, ["imagenet-b"])


def points(*rows: tuple[str, str, float, str | None]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["entry", "eval_setting", "value", "flag"])


def columns(*names: str) -> list[Column]:
    return [Column(setting=name, label=name, group="all") for name in names]


def test_models_stand_by_their_clean_accuracy_and_those_without_it_below() -> None:
    table = points(
        ("bad", "val", 50.0, None), ("good", "val", 90.0, None), ("good", "other", 10.0, "suspect"),
        ("without", "other", 99.0, None), ("also bad", "val", 50.0, None),
    )  # fmt: skip
    grid = grid_of(table, columns("nothing", "val", "other"))
    assert list(grid.values.index) == ["good", "also bad", "bad", "without"]
    assert list(grid.values) == ["val", "other"]  # a setting that nobody has is no column
    assert grid.values["other"].isna().tolist() == [False, True, True, False]
    assert grid.is_flagged.to_numpy().tolist() == [[False, True], [False, False], [False, False], [False, False]]


def test_a_grid_of_hundreds_of_models_keeps_cells_that_can_be_told_apart_and_a_picture_that_can_be_opened() -> None:
    shape = (1800, 213)
    values = pd.DataFrame(np.zeros(shape), index=[f"model {i}" for i in range(shape[0])])
    grid = Grid(values, values.astype(bool), columns(*map(str, range(shape[1]))))
    width, height = grid.size
    assert not grid.has_numbers
    assert min(grid.cell) >= SMALLEST
    assert width * height * grid.resolution**2 < 60e6
    assert max(width, height) * grid.resolution <= 20e3


def test_large_cells_hold_their_numbers_missing_ones_are_hatched_and_suspect_ones_crossed(tmp_path: Path) -> None:
    table = points(
        ("a <b>$x_1$", "val", 99.96, None), ("a <b>$x_1$", "other", 12.34, "suspect"), ("🦆", "val", 7.0, None)
    )
    with new_figure(width=4, height=3) as figure:
        draw_grid(figure, grid_of(table, columns("val", "other")))
        axes = figure.axes[0]
        shown = {text.get_text() for text in axes.texts}
        names = [label.get_text() for label in axes.get_yticklabels()]
        crosses = [np.asarray(line.get_xydata()).tolist() for line in axes.lines if line.get_marker() == "x"]
        hatched = [patch for patch in axes.patches if patch.get_hatch()]
        image = axes.images[0].get_array()
        save(figure, table, tmp_path / "grid", caption="A grid.")
    assert {"100", "12.3", "7.0"} < shown
    assert names == [r"a <b>\$x_1\$", "□"]
    assert crosses == [[[1.0, 0.0]]]
    assert len(hatched) == 1
    assert image is not None
    assert image[:, :, 3].tolist() == [[255, 255], [255, 0]]  # the hatches behind show through


@pytest.mark.parametrize("rows", [2, 10, 30])
def test_the_bar_of_colours_begins_with_the_cells_and_is_as_long_up_to_a_limit(rows: int) -> None:
    table = points(*[(f"model {row}", name, 50.0, None) for row in range(rows) for name in ("val", "other")])
    grid = grid_of(table, columns("val", "other"))
    width, height = grid.size
    with new_figure(width=width, height=height) as figure:
        draw_grid(figure, grid)
        figure.draw_without_rendering()
        cells = figure.axes[0].get_window_extent()
        bar = figure.axes[0].child_axes[0].get_window_extent()
    assert bar.y1 == pytest.approx(cells.y1)
    assert bar.height / cells.height == pytest.approx(min(1, 3 / (rows * grid.cell[1])))


def test_numbers_have_the_ink_with_more_contrast() -> None:
    from matplotlib import colormaps

    red, green, blue = (np.array(colormaps["cividis"](np.array([DARK - 4, DARK + 4]) / 100))[:, :3] ** 2.2).T
    dark, light = 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
    assert 1.05 / dark > dark / 0.05
    assert 1.05 / light < light / 0.05


def published(model: str, setting: str, value: float, flag: str = "") -> PublishedResult:
    return PublishedResult(
        source="grid", model=model, eval_setting=setting, metric="top1", value=value, protocol="theirs", flag=flag,
        source_sha256="0" * 64, input_size=None,
    )  # fmt: skip


@pytest.fixture
def store(database: Path) -> Store:
    results = [published("net", "val", 76.0), published("net", "imagenet-c.fog.1_in-memory", 76.0, "suspect")]
    with Store.open(database) as store:
        store.put_published([*results, published("other", "val", 70.0), published("net", "2d-b", 99.0)])
    return Store.open(database, read_only=True, create=False)


def test_settings_of_a_source_are_known_by_their_definitions(store: Store) -> None:
    with store:
        found = {one.name: one for one in known_settings(store, ["grid"])}
        assert not known_settings(store, [])
    assert found["imagenet-c.fog.1_in-memory"].shift is not None
    assert (found["val"].dataset, found["2d-b"].dataset) == ("imagenet", "2d-b")


def test_the_figure_of_a_label_space_has_the_same_bytes_again(draw: Draw, store: Store, database: Path) -> None:
    store.close()
    files = draw("grid", database, "--with-published", "grid", "--label-space", "imagenet-1k")
    table = pd.read_csv(files["csv"])
    assert table[["entry", "eval_setting", "value"]].to_numpy().tolist() == [
        ["net", "val", 76.0], ["net", "imagenet-c.fog.1_in-memory", 76.0], ["other", "val", 70.0],
    ]  # fmt: skip
    before = files["png"].read_bytes(), files["pdf"].read_bytes()
    files = draw("grid", database, "--with-published", "grid", "--label-space", "imagenet-1k")
    assert (files["png"].read_bytes(), files["pdf"].read_bytes()) == before


def test_nothing_stored_names_the_command_and_an_unknown_label_space_the_known_ones(store: Store) -> None:
    from plotting.drawing.comparison import Comparison

    with store:
        with pytest.raises(TestbedError, match=r"python eval\.py"):
            spaces_to_draw(Comparison(store=store), [], None)
        with pytest.raises(UnknownNameError, match="There are 2d-b, imagenet-1k"):
            spaces_to_draw(Comparison(store=store, sources=["grid"]), [], "cifar10")
