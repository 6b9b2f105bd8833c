"""What every figure has: its files, the same bytes every time, and text that can be read."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from plotting.drawing.style import (
    COLUMN,
    MARKERS,
    PAGE,
    PALETTE,
    add_legend,
    bars,
    draw_curves,
    looks,
    new_figure,
    save,
)

from testbed.errors import DataError, TestbedError

ROOT = Path(__file__).resolve().parents[2]
CAPTION = "Accuracy of some models under noise, n = 597 samples. Bars: 95 % intervals. ε$_{min}$ = 0.2. " * 3
MODELS = [f"random-forest-noise-linf-0.0{number:02}" for number in range(20)]
TABLE = pd.DataFrame({
    "model": [model for model in MODELS for _ in range(3)], "epsilon": [0.0, 0.1, 0.2] * 20, "value": range(60),
    "ci_low": range(-1, 59), "ci_high": range(2, 62),
})  # fmt: skip


def draw(path: Path) -> list[Path]:
    """A figure with everything that figures share."""
    with new_figure(height=2.0) as figure:
        draw_curves(figure.subplots(), TABLE, "epsilon", {model: model for model in MODELS})
        add_legend(figure)
        return save(figure, TABLE, path, caption=CAPTION)


def test_files_are_a_pdf_a_png_and_the_numbers(tmp_path: Path) -> None:
    pdf, png, csv = draw(tmp_path / "new" / "digits-noise-0.1")
    assert (pdf.name, png.name, csv.name) == tuple(f"digits-noise-0.1.{end}" for end in ("pdf", "png", "csv"))
    assert pdf.read_bytes().startswith(b"%PDF")
    assert png.read_bytes().startswith(b"\x89PNG")
    pd.testing.assert_frame_equal(pd.read_csv(csv), TABLE)
    assert not list(tmp_path.rglob("*.tmp"))


def test_bytes_depend_on_no_date_no_hash_seed_and_no_setting_of_the_user(tmp_path: Path) -> None:
    here = [file.read_bytes() for file in draw(tmp_path / "here")]
    (tmp_path / "matplotlibrc").write_text("font.size: 30\nxtick.labelsize: 20\nfigure.facecolor: 0.5\n")
    code = (
        f"from pathlib import Path; from tests.plotting.test_style import draw; draw(Path({str(tmp_path)!r}, 'there'))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "MATPLOTLIBRC": str(tmp_path), "SOURCE_DATE_EPOCH": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)
    assert [(tmp_path / f"there.{ending}").read_bytes() for ending in ("pdf", "png", "csv")] == here
    assert b"CreationDate" not in here[0]


def test_bytes_do_not_depend_on_the_last_digits_of_the_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settled = draw(tmp_path / "settled")[0].read_bytes()
    execute = ConstrainedLayoutEngine.execute

    def unsettled(self: ConstrainedLayoutEngine, fig: Figure) -> object:
        found = execute(self, fig)
        for axes in fig.axes:
            axes.set_position(axes.get_position(original=True).translated(4e-9, 4e-9), which="original")
            axes.set_in_layout(True)
        return found

    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", unsettled)
    assert draw(tmp_path / "unsettled")[0].read_bytes() == settled


@pytest.mark.parametrize("width", [COLUMN, PAGE])
def test_legend_curves_and_caption_stand_one_above_the_other(width: float, tmp_path: Path) -> None:
    """Also with twenty models of long names, and in a figure that is as wide as it was asked for."""
    with new_figure(width=width, height=2.0) as figure:
        axes = figure.subplots()
        draw_curves(axes, TABLE, "epsilon", {model: model for model in MODELS})
        axes.set_xlabel("noise level")
        add_legend(figure)
        save(figure, TABLE, tmp_path / "figure", caption=CAPTION)
        figure.draw_without_rendering()  # at the resolution that boxes are told in
        caption, legend = figure.texts[0].get_window_extent(), figure.legends[0].get_window_extent()
        middle, whole = axes.get_tightbbox(), figure.bbox
    assert figure.get_figwidth() == width
    assert middle is not None
    assert whole.y0 <= caption.y0 < caption.y1 <= middle.y0 < middle.y1 <= legend.y0 < legend.y1 <= whole.y1
    assert all(whole.x0 <= box.x0 < box.x1 <= whole.x1 for box in (caption, middle, legend))
    assert middle.height > 0.5 * 2.0 * figure.dpi


@pytest.mark.parametrize("name", ["m", "W" * 8, "model-with-a-name-0", "M" * 40])
def test_legend_has_as_many_columns_as_fit(name: str) -> None:
    names = [f"{name}{number}" for number in range(6)]
    with new_figure(height=2.0) as figure:
        draw_curves(figure.subplots(), TABLE.iloc[:0], "epsilon", {one: one for one in names})
        add_legend(figure)
        figure.draw_without_rendering()
        legend = figure.legends[0].get_window_extent()
    assert figure.bbox.x0 <= legend.x0 < legend.x1 <= figure.bbox.x1
    assert figure.get_figheight() == pytest.approx(2.0 + legend.height / figure.dpi)
    assert (legend.height / figure.dpi < 0.2) == (name == "m")


def test_a_models_look_is_its_own_and_differs_from_its_neighbours_in_colour_and_shape() -> None:
    pairs = [(look["color"], look["marker"]) for look in looks([str(number) for number in range(56)]).values()]
    assert len(set(pairs)) == len(PALETTE) * len(MARKERS) == 56
    assert all(one[0] != other[0] and one[1] != other[1] for one, other in pairwise(pairs))


def test_bars_reach_from_the_value_to_the_bounds() -> None:
    rows = pd.DataFrame({"value": [5.0, 1.0], "ci_low": [3.0, None], "ci_high": [6.0, None]})
    assert bars(rows)[:, 0].tolist() == [2.0, 1.0]
    assert pd.isna(bars(rows)[:, 1]).all()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"file/figure.csv cannot be written"):
        draw(tmp_path / "file" / "figure")


def test_without_matplotlib_the_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(TestbedError, match="pip install matplotlib"), new_figure(height=1.0):
        pass


def test_a_caption_parts_neither_a_name_at_its_hyphens_nor_a_number_from_its_sign(tmp_path: Path) -> None:
    with new_figure(height=1.0) as figure:
        figure.subplots()
        save(figure, TABLE, tmp_path / "figure", caption="random-forest-mscr-linf n = 597 samples, 20 % each; " * 9)
        lines = figure.texts[0].get_text().split("\n")
    assert len(lines) > 1
    for whole in ("random-forest-mscr-linf", "n\u00a0=\u00a0597", "20\u00a0%"):
        assert sum(line.count(whole) for line in lines) == 9


def test_thin_shapes_are_larger_than_full_ones() -> None:
    sizes = {
        look["marker"]: look["markersize"] for look in looks([str(number) for number in range(8)], size=3).values()
    }
    assert sizes["o"] == sizes["s"] == 3
    assert min(sizes["P"], sizes["X"], sizes["*"]) > 3.5
