"""Heat maps and curves of models under common corruptions: their numbers are worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.axes import Axes
from plotting.drawing.corruption_cells import draw_tables, tables_size
from plotting.drawing.corruption_panels import draw_panels, panels_of
from plotting.drawing.corruption_table import Corruptions, corruptions
from plotting.drawing.style import new_figure
from tests.plotting.conftest import Draw, Filler

from testbed.errors import TestbedError, UnknownNameError
from testbed.store.store import Store

FOG = {("fog", severity): 90 - 10 * severity for severity in range(1, 6)}
SHARP = {("fog", 1): 96, ("fog", 2): 95, ("fog", 4): 88, ("fog", 5): 80}  # severity 3 is not there
SNOW = {("snow", severity): 88 for severity in range(1, 6)}


@pytest.fixture
def stored(filler: Filler) -> Store:
    """Two models of 100 samples: 80 and 90 right when clean."""
    filler.corruptions(filler.model("blunt"), 80, {**SNOW, **FOG, ("greyscale", None): 40})
    filler.corruptions(filler.model("sharp"), 90, SHARP)
    return filler.store


def table_of(stored: Store, metric: str = "A_rel_c") -> pd.DataFrame:
    return selected(stored, metric).table


def selected(stored: Store, metric: str = "A_rel_c", variant: str = "") -> Corruptions:
    return corruptions(stored, dataset=None, models=(), is_on_disk=False, variant=variant, metric=metric)


def value(table: pd.DataFrame, model: str, corruption: str, severity: int) -> float:
    rows = table[(table["model"] == model) & (table["corruption"] == corruption) & (table["severity"] == severity)]
    assert len(rows) == 1
    return float(rows["value"].iloc[0])


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("A_rel_c", (100 * 40 / 80, 100.0)), ("A_c", (40.0, 96.0)), ("q", (0.0, 60.0))],
)
def test_a_cell_has_the_metric_that_is_asked_for(stored: Store, metric: str, expected: tuple[float, float]) -> None:
    """40 of 80 stay right; 96 are right of which 90 were: all of them stay, 6 of 10 come back."""
    table = table_of(stored, metric)
    assert (value(table, "blunt", "fog", 5), value(table, "sharp", "fog", 1)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("metric", "share"),
    [("A_rel_c", " (80 to 90 right when clean)"), ("A_c", ""), ("q", " (10 to 20 wrong when clean)")],
)
def test_n_is_told_with_the_samples_that_the_metric_is_a_share_of(stored: Store, metric: str, share: str) -> None:
    words = f"n = 100 samples{share}, 1 fit of each model, 1 draw of each corruption"
    assert selected(stored, metric).sample_words == words


def test_all_severities_together_need_all_severities(stored: Store) -> None:
    table = table_of(stored)
    together = table[table["is_mean"]]
    assert list(zip(together["model"], together["corruption"], strict=True)) == [("blunt", "snow"), ("blunt", "fog")]
    assert together["value"].tolist() == pytest.approx([100.0, 100 * (80 + 70 + 60 + 50 + 40) / 5 / 80])
    assert together["severity"].isna().all()


def test_corruptions_are_in_the_order_of_the_benchmark_and_missing_cells_have_names(stored: Store) -> None:
    found = selected(stored)
    assert list(dict.fromkeys(name for name, _ in found.wanted)) == ["snow", "fog", "greyscale"]
    assert found.missing_sentence.startswith(" sharp lacks ")
    assert "severity 3 of fog" in found.missing_sentence
    assert "all of snow" in found.missing_sentence
    assert "blunt" not in found.missing_sentence


def test_a_trial_with_a_limit_is_left_out_and_told(stored: Store) -> None:
    trial = Filler(stored, n=50)
    trial.corruptions(trial.model("blunt"), 40, {("fog", 1): 30})
    found = selected(stored)
    assert value(found.table, "blunt", "fog", 1) == pytest.approx(100)
    assert found.missing_sentence.endswith("; 1 setting of points@limit50 not shown.")
    assert found.source_words == "points under corruptions simulated in memory"


@pytest.mark.parametrize("figure", ["corruption_heatmap", "corruption_curves"])
def test_a_variant_is_a_figure_of_its_own(
    figure: str, stored: Store, filler: Filler, database: Path, draw: Draw
) -> None:
    filler.corruptions(filler.model("blunt"), 80, FOG, variant="-mnist28")
    filler.corruptions(filler.model("blunt"), 80, {("fog", 1): 20}, variant="-mnist28-jpeg85")
    files = draw(figure, database, "--variant", "mnist28")
    assert files["csv"].name == f"{figure.replace('_', '-')}-points-A_rel_c-mnist28.csv"
    assert set(pd.read_csv(files["csv"])["corruption"]) == {"fog"}
    found = selected(stored, variant="mnist28-jpeg85")
    assert value(found.table, "blunt", "fog", 1) == pytest.approx(25)
    assert found.source_words == "points under corruptions simulated in memory, variant mnist28-jpeg85"
    with pytest.raises(UnknownNameError, match=r"Stored: the plain ones, --variant mnist28, --variant mnist28-jpeg"):
        draw(figure, database, "--variant", "uint8")


def test_what_is_undefined_is_said_with_the_reason(filler: Filler) -> None:
    filler.corruptions(filler.model("perfect"), 100, FOG)
    found = selected(filler.store, "q")
    assert found.table["value"].isna().all()
    assert found.undefined_sentence == " perfect has no value in 5 cells, as no image is wrong when clean."


@pytest.fixture
def tables(stored: Store) -> Iterator[list[Axes]]:
    found = selected(stored)
    width, height = tables_size(found)
    with new_figure(width=width, height=height) as figure:
        draw_tables(figure, found)
        yield figure.axes


def test_cells_show_their_number_and_cells_without_one_are_hatched(tables: list[Axes]) -> None:
    blunt, sharp, _ = tables
    assert sorted(text.get_text() for text in blunt.texts) == sorted([
        *["100"] * 6, "100", "87.5", "75.0", "62.5", "50.0", "75.0", "50.0",
    ])  # fmt: skip
    hatched = {(patch.get_x() + 0.5, patch.get_y() + 0.5) for patch in sharp.patches if patch.get_hatch()}
    assert hatched == {*((x, 0) for x in range(6)), (2, 1), (5, 1), (5, 2)}
    assert not any(patch.get_hatch() for patch in blunt.patches)


def test_darker_is_a_smaller_accuracy(tables: list[Axes]) -> None:
    fog = [patch.get_facecolor()[0] for patch in tables[0].patches if patch.get_y() == 0.5]
    assert fog[:5] == sorted(fog[:5], reverse=True)
    assert fog[0] > fog[4]


def test_the_label_of_the_scale_fits_beside_few_corruptions(tables: list[Axes]) -> None:
    figure = tables[-1].figure
    label = tables[-1].yaxis.label.get_window_extent()
    assert figure.bbox.y0 <= label.y0 < label.y1 <= figure.bbox.y1


def test_curves_have_a_panel_for_each_corruption_with_severities(stored: Store) -> None:
    found = selected(stored)
    names = panels_of(found)
    with new_figure(width=7, height=2) as figure:
        draw_panels(figure, found, names)
        fog = figure.axes[1]
        blunt, sharp = fog.lines
        assert [axes.get_title() for axes in figure.axes] == names == ["snow", "fog"]
        assert fog.get_shared_y_axes().joined(fog, figure.axes[0])
    assert blunt.get_label() == "blunt (clean 80.0 %)"
    assert list(blunt.get_ydata()) == pytest.approx([100, 87.5, 75, 62.5, 50])
    assert pd.isna(sharp.get_ydata()[2])  # and no line across what is not there
    assert len(fog.collections) == 2


@pytest.mark.parametrize("figure", ["corruption_heatmap", "corruption_curves"])
def test_the_csv_has_all_cells_with_intervals_counts_and_seeds(
    figure: str, stored: Store, database: Path, draw: Draw
) -> None:
    files = draw(figure, database)
    assert files["csv"].name == f"{figure.replace('_', '-')}-points-A_rel_c.csv"
    table = pd.read_csv(files["csv"])
    pd.testing.assert_frame_equal(table[["corruption", "value"]], table_of(stored)[["corruption", "value"]])
    assert (table["ci_low"] <= table["value"]).all()
    assert table.loc[table["model"] == "sharp", "n"].tolist() == [90] * 4  # of A_rel_c: right when clean
    assert set(table["seeds"]) == {0}
    again = draw(figure, database)
    assert all(again[ending].read_bytes() == files[ending].read_bytes() for ending in files)


def test_nothing_stored_and_several_data_sets_are_told(filler: Filler, database: Path, draw: Draw) -> None:
    filler.setting(0.0)
    for options, kind in ([], "in-memory"), (["--on-disk"], "on-disk"):
        with pytest.raises(
            TestbedError, match=rf"python eval.py --models digits-resnet .*'digits-c.\*_{kind}' --db-url"
        ):
            draw("corruption_heatmap", database, *options)
    filler.corruptions(filler.model("net"), 90, {("greyscale", None): 50})
    with pytest.raises(TestbedError, match="No corruption of points that is stored has severities"):
        draw("corruption_curves", database)
